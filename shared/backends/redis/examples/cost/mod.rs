//! A server whose costs are measured.

use swirl_redis::{Options, Redis};
use swirl_servers::{RedisOptions, RedisServer};

/// The options of our deployment files that change what a command costs.
const ARGS: [&str; 4] = [
    "--hash-max-listpack-entries",
    "32",
    "--hash-max-listpack-value",
    "1024",
];

pub fn options() -> RedisOptions {
    RedisOptions {
        appendonly: true,
        appendfsync: Some("everysec"),
        args: ARGS.map(str::to_owned).into(),
        ..RedisOptions::default()
    }
}

pub async fn connect(server: &RedisServer) -> anyhow::Result<Redis> {
    Ok(Redis::connect(Options::single(server.url())).await?)
}
