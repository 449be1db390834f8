//! The servers of one run, which are started for it. Floor and system use the same servers with the same settings,
//! through the same crates.

use anyhow::{Context, Result};
use redis::aio::MultiplexedConnection;
use swirl_servers::{NatsServer, RedisOptions, RedisServer};

use crate::usage::Meter;

/// The settings with which `deploy/redis/redis.conf` stores small instances compactly.
const COMPACT: [&str; 4] = [
    "--hash-max-listpack-entries",
    "32",
    "--hash-max-listpack-value",
    "1024",
];

pub struct Servers {
    pub redis: RedisServer,
    pub nats: NatsServer,
    pub redis_link: MultiplexedConnection,
    pub nats_link: async_nats::Client,
}

impl Servers {
    /// `always`: Redis answers after writes are on disk; otherwise it syncs every second.
    pub async fn start(always: bool) -> Result<Servers> {
        let redis = RedisServer::start_with(RedisOptions {
            appendonly: true,
            appendfsync: Some(if always { "always" } else { "everysec" }),
            args: COMPACT.map(str::to_owned).to_vec(),
            ..RedisOptions::default()
        })?;
        let nats = NatsServer::start()?;
        let redis_link = connect(&redis).await?;
        let nats_link = async_nats::connect(nats.url()).await?;
        Ok(Servers {
            redis,
            nats,
            redis_link,
            nats_link,
        })
    }

    /// Measures the servers, and this process as the client.
    pub fn meter(&self) -> Meter {
        let pid = |pid: Option<u32>| pid.unwrap_or_default();
        Meter {
            processes: vec![
                ("client".to_owned(), std::process::id()),
                ("NATS".to_owned(), pid(self.nats.pid())),
                ("Redis".to_owned(), pid(self.redis.pid())),
            ],
            redis: Some(self.redis_link.clone()),
        }
    }

    /// The bytes of memory that Redis has allocated.
    pub async fn redis_memory(&self) -> Result<u64> {
        let info: String = redis::cmd("INFO")
            .arg("memory")
            .query_async(&mut self.redis_link.clone())
            .await?;
        let mut lines = info.lines();
        let line = lines.find_map(|line| line.strip_prefix("used_memory:"));
        let line = line.context("Redis reports nothing about its memory")?;
        Ok(line.trim().parse()?)
    }
}

async fn connect(redis: &RedisServer) -> Result<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new()
        .set_response_timeout(Some(std::time::Duration::from_secs(10)));
    let client = redis::Client::open(redis.url())?;
    Ok(client
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}
