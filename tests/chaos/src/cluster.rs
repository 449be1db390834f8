//! The servers and processes of a run.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use swirl_servers::{NatsServer, RedisCluster, RedisServer};
use tempfile::TempDir;

use crate::processes::{Process, Role};

pub struct Cluster {
    pub processes: Vec<Process>,
    pub redis: RedisServer,
    /// Used instead, if it is there.
    pub redis_cluster: Option<RedisCluster>,
    pub nats: NatsServer,
    // Last, because it contains the processes' logs.
    _folder: TempDir,
}

impl Cluster {
    /// Starts all servers and processes. Redis writes to disk before it answers. `skewed`: the first coordinator's
    /// clock is ten seconds ahead.
    pub fn start(
        binary: &Path,
        workers: usize,
        coordinators: usize,
        lease: Duration,
        skewed: bool,
    ) -> Result<Cluster> {
        Cluster::start_with(binary, workers, coordinators, lease, skewed, &[])
    }

    /// As [`start_with`](Cluster::start_with), on a Redis Cluster of three masters with a replica each.
    pub fn start_on_redis_cluster(
        binary: &Path,
        workers: usize,
        coordinators: usize,
        lease: Duration,
        skewed: bool,
        flags: &[String],
    ) -> Result<Cluster> {
        let redis = Some(RedisCluster::with_replicas(3)?);
        Cluster::start_on(redis, binary, workers, coordinators, lease, skewed, flags)
    }

    /// As [`start`](Cluster::start), with additional flags for each process.
    pub fn start_with(
        binary: &Path,
        workers: usize,
        coordinators: usize,
        lease: Duration,
        skewed: bool,
        flags: &[String],
    ) -> Result<Cluster> {
        Cluster::start_on(None, binary, workers, coordinators, lease, skewed, flags)
    }

    fn start_on(
        redis_cluster: Option<RedisCluster>,
        binary: &Path,
        workers: usize,
        coordinators: usize,
        lease: Duration,
        skewed: bool,
        flags: &[String],
    ) -> Result<Cluster> {
        let redis = RedisServer::durable()?;
        let nats = NatsServer::start()?;
        let folder = tempfile::tempdir()?;
        let servers = (redis.address(), nats.address());
        let mut processes = Vec::new();
        let roles = std::iter::repeat_n(Role::Coordinator, coordinators)
            .chain(std::iter::repeat_n(Role::Worker, workers));
        for (number, role) in roles.enumerate() {
            let servers = (servers.0.as_str(), servers.1.as_str());
            let mut process = Process::new(role, number, binary, folder.path(), servers, lease)?;
            process.ahead = skewed && number == 0;
            process.flags = flags.to_vec();
            process.nodes = redis_cluster
                .as_ref()
                .map_or(Vec::new(), RedisCluster::urls);
            processes.push(process);
        }
        let mut cluster = Cluster {
            processes,
            redis,
            redis_cluster,
            nats,
            _folder: folder,
        };
        for process in &mut cluster.processes {
            process.start()?;
        }
        for process in &mut cluster.processes {
            process.wait()?;
        }
        Ok(cluster)
    }

    /// Names and ids of all running processes, including the servers.
    pub fn pids(&self) -> Vec<(String, u32)> {
        let own = self.processes.iter();
        let own = own.filter_map(|process| Some((process.name.clone(), process.pid()?)));
        let servers = [("redis", self.redis.pid()), ("nats", self.nats.pid())];
        let servers = servers.into_iter();
        own.chain(servers.filter_map(|(name, pid)| Some((name.to_owned(), pid?))))
            .collect()
    }

    /// Copies the logs of all processes to a folder.
    pub fn copy_logs(&self, into: &Path) -> Result<()> {
        std::fs::create_dir_all(into)?;
        for process in &self.processes {
            process.copy_log(into)?;
        }
        Ok(())
    }

    /// The URLs of the API.
    pub fn apis(&self) -> Vec<String> {
        let all = self.processes.iter();
        all.filter(|process| process.role == Role::Coordinator)
            .map(|process| format!("http://{}", process.address))
            .collect()
    }

    /// The addresses on which the processes listen and expose metrics.
    pub fn listeners(&self) -> Vec<String> {
        let all = self.processes.iter();
        all.map(|process| format!("http://{}", process.address))
            .collect()
    }

    pub fn redis_url(&self) -> String {
        self.redis.url()
    }

    pub fn of(&self, role: Role) -> Vec<usize> {
        let all = self.processes.iter().enumerate();
        all.filter(|(_, process)| process.role == role)
            .map(|(index, _)| index)
            .collect()
    }

    /// The first process that ended by itself.
    pub fn ended(&mut self) -> Option<String> {
        self.processes.iter_mut().find_map(Process::ended)
    }
}
