//! A master, its replicas, and sentinels that watch them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::process::START_LIMIT;
use crate::redis::{Mode, RedisOptions, RedisServer};

/// A private set. Dropping it kills all of its servers.
#[derive(Debug)]
pub struct RedisSentinels {
    /// Dropped first, because otherwise they would notice the end of the others.
    sentinels: Vec<RedisServer>,
    servers: Vec<RedisServer>,
}

impl RedisSentinels {
    /// The sentinels' name for the master.
    pub const NAME: &'static str = "swirl";

    /// The first server begins as the master. A master that doesn't answer for three seconds is replaced.
    pub fn start(replicas: usize, sentinels: usize) -> Result<RedisSentinels> {
        let master = RedisServer::start()?;
        let mut servers = Vec::new();
        for _ in 0..replicas {
            let port = master.port().to_string();
            let args = [
                "--replicaof",
                "127.0.0.1",
                &port,
                "--repl-diskless-sync-delay",
                "0",
            ];
            servers.push(RedisServer::start_with(RedisOptions {
                args: args.map(str::to_owned).to_vec(),
                ..RedisOptions::default()
            })?);
        }
        let config = config(master.port(), sentinels / 2 + 1);
        servers.insert(0, master);
        let sentinels = (0..sentinels).map(|_| {
            RedisServer::start_as(RedisOptions::default(), |_| {
                Ok(Mode::Sentinel(config.clone()))
            })
        });
        let set = RedisSentinels {
            sentinels: sentinels.collect::<Result<_>>()?,
            servers,
        };
        set.wait_until_complete()?;
        Ok(set)
    }

    /// Waits until each sentinel knows all others and all replicas.
    fn wait_until_complete(&self) -> Result<()> {
        let begun = Instant::now();
        let others = format!("num-other-sentinels\n{}\n", self.sentinels.len() - 1);
        let slaves = format!("num-slaves\n{}\n", self.servers.len() - 1);
        while !self.sentinels.iter().all(|sentinel| {
            sentinel
                .cli(&["SENTINEL", "MASTER", Self::NAME])
                .is_ok_and(|found| found.contains(&others) && found.contains(&slaves))
        }) {
            if begun.elapsed() > START_LIMIT {
                bail!(
                    "the sentinels don't find each other within {} s",
                    START_LIMIT.as_secs()
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// The server that began as the master, then those that began as replicas.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// For killing, pausing and restarting a server.
    pub fn server_mut(&mut self, index: usize) -> Option<&mut RedisServer> {
        self.servers.get_mut(index)
    }

    /// The master's port according to the first sentinel.
    pub fn master_port(&self) -> Result<u16> {
        let found = self.sentinels[0].cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::NAME])?;
        Ok(found.lines().nth(1).unwrap_or_default().parse()?)
    }

    /// `redis://127.0.0.1:PORT` of each sentinel.
    pub fn urls(&self) -> Vec<String> {
        self.sentinels.iter().map(RedisServer::url).collect()
    }
}

fn config(master: u16, quorum: usize) -> String {
    let name = RedisSentinels::NAME;
    format!(
        "sentinel monitor {name} 127.0.0.1 {master} {quorum}\n\
         sentinel down-after-milliseconds {name} 3000\n\
         sentinel failover-timeout {name} 5000\n"
    )
}
