//! A Redis Cluster of masters, with or without replicas.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::port::free_port;
use crate::process::{START_LIMIT, output};
use crate::redis::{Mode, RedisOptions, RedisServer};

const SLOTS: usize = 16_384;

/// A private cluster. Dropping it kills all of its servers.
#[derive(Debug)]
pub struct RedisCluster {
    /// The masters, then a replica of each if there are replicas.
    nodes: Vec<RedisServer>,
    masters: usize,
}

impl RedisCluster {
    /// Starts masters, assigns a share of the slots to each, and waits until all report that the cluster is healthy.
    /// This takes two to three seconds, because a new master waits before it participates.
    pub fn start(masters: usize) -> Result<RedisCluster> {
        RedisCluster::start_with(masters, &RedisOptions::default())
    }

    pub fn start_with(masters: usize, options: &RedisOptions) -> Result<RedisCluster> {
        ensure!(
            masters > 0 && options.port.is_none(),
            "ports are chosen for each node"
        );
        RedisCluster::start_nodes(masters, masters, options)
    }

    /// Starts masters, and a replica for each, which takes over when its master has been silent for about two seconds.
    pub fn with_replicas(masters: usize) -> Result<RedisCluster> {
        let args = [
            ["--cluster-node-timeout", "2000"],
            ["--repl-diskless-sync-delay", "0"],
        ];
        let options = RedisOptions {
            args: args.concat().into_iter().map(str::to_owned).collect(),
            ..RedisOptions::default()
        };
        let cluster = RedisCluster::start_nodes(masters, masters * 2, &options)?;
        for (index, replica) in cluster.nodes.iter().enumerate().skip(masters) {
            let master = cluster.id(index - masters)?;
            replica.cli(&["CLUSTER", "REPLICATE", &master])?;
        }
        cluster.wait_until_replicated()?;
        Ok(cluster)
    }

    /// Waits until half of the nodes are replicas, and each follows its master.
    pub fn wait_until_replicated(&self) -> Result<()> {
        let begun = Instant::now();
        let following = || {
            let infos = self.nodes.iter();
            let infos = infos.filter_map(|node| node.cli(&["INFO", "replication"]).ok());
            infos
                .filter(|info| info.contains("master_link_status:up"))
                .count()
        };
        while following() != self.nodes.len() - self.masters {
            ensure!(begun.elapsed() < START_LIMIT, "the replicas don't follow");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn start_nodes(masters: usize, count: usize, options: &RedisOptions) -> Result<RedisCluster> {
        let nodes = (0..count)
            .map(|_| RedisServer::start_as(options.clone(), |_| Ok(Mode::Cluster(free_port()?))));
        let cluster = RedisCluster {
            nodes: nodes.collect::<Result<_>>()?,
            masters,
        };
        cluster.join()?;
        cluster.wait_until_well()?;
        Ok(cluster)
    }

    fn join(&self) -> Result<()> {
        let share = SLOTS.div_ceil(self.masters);
        for (index, node) in self.nodes.iter().enumerate() {
            let epoch = (index + 1).to_string();
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
            if index >= self.masters {
                continue;
            }
            let (first, end) = (index * share, ((index + 1) * share).min(SLOTS));
            let (first, last) = (first.to_string(), (end - 1).to_string());
            node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
        }
        for node in &self.nodes[1..] {
            let (port, bus) = (node.port().to_string(), node.bus_port().to_string());
            self.nodes[0].cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
        }
        Ok(())
    }

    /// Waits until all nodes know all others and serve all slots.
    pub fn wait_until_well(&self) -> Result<()> {
        let begun = Instant::now();
        let known = format!("cluster_known_nodes:{}\r", self.nodes.len());
        while !self.nodes.iter().all(|node| {
            node.cli(&["CLUSTER", "INFO"])
                .is_ok_and(|info| info.contains("cluster_state:ok") && info.contains(&known))
        }) {
            if begun.elapsed() > START_LIMIT {
                bail!("the cluster isn't well within {} s", START_LIMIT.as_secs());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn id(&self, index: usize) -> Result<String> {
        self.nodes[index].cli(&["CLUSTER", "MYID"])
    }

    /// Whether a node is a master, by its own view.
    pub fn is_master(&self, index: usize) -> bool {
        let role = self.nodes[index].cli(&["ROLE"]);
        role.is_ok_and(|role| role.starts_with("master"))
    }

    /// The replica takes over from its master, in agreement with it.
    pub fn fail_over(&self, replica: usize) -> Result<()> {
        self.nodes[replica].cli(&["CLUSTER", "FAILOVER"])?;
        Ok(())
    }

    /// Moves slots from one master to another, with their keys. Returns when that is done.
    pub fn move_slots(&self, from: usize, to: usize, count: usize) -> Result<()> {
        let (from_id, to_id) = (self.id(from)?, self.id(to)?);
        let (address, count) = (self.nodes[to].address(), count.to_string());
        let args = [
            "--cluster",
            "reshard",
            &address,
            "--cluster-from",
            &from_id,
            "--cluster-to",
            &to_id,
            "--cluster-slots",
            &count,
            "--cluster-yes",
        ];
        output("redis-cli", "redis-tools", &args)?;
        Ok(())
    }

    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// For killing, pausing and restarting a node.
    pub fn node_mut(&mut self, index: usize) -> Option<&mut RedisServer> {
        self.nodes.get_mut(index)
    }

    /// `redis://127.0.0.1:PORT` of each node.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }
}
