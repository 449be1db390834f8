//! A Redis Cluster of masters without replicas.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::port::free_port;
use crate::process::START_LIMIT;
use crate::redis::{Mode, RedisOptions, RedisServer};

const SLOTS: usize = 16_384;

/// A private cluster. Dropping it kills all of its servers.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
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
        let nodes = (0..masters)
            .map(|_| RedisServer::start_as(options.clone(), |_| Ok(Mode::Cluster(free_port()?))));
        let cluster = RedisCluster {
            nodes: nodes.collect::<Result<_>>()?,
        };
        cluster.join()?;
        cluster.wait_until_well()?;
        Ok(cluster)
    }

    fn join(&self) -> Result<()> {
        let share = SLOTS.div_ceil(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let epoch = (index + 1).to_string();
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
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
