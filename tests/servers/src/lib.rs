//! Servers for tests: Redis (single, cluster, sentinels), NATS, Mosquitto, RabbitMQ, mock Kafka brokers, and a proxy
//! whose connections can be cut.
//!
//! Each server is a separate process on free ports of the loopback interface, with its data in a temporary folder.
//! Dropping the value kills that process and no other, so don't put a server into a `static`, which is never dropped.
//! All calls block, with a time limit; only [`eventually`] needs an async runtime.
//!
//! Tests that wait for something use [`until`] or [`eventually`], so they pass on slow machines too.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! let mut redis = swirl_servers::RedisServer::durable()?;
//! assert_eq!(redis.cli(&["SET", "a", "1"])?, "OK");
//! redis.kill()?;
//! redis.restart()?; // the same port, the same data
//! assert_eq!(redis.cli(&["GET", "a"])?, "1");
//! # Ok(())
//! # }
//! ```

mod cluster;
mod instructions;
mod kafka;
mod mosquitto;
mod nats;
mod port;
mod process;
mod proxy;
mod rabbitmq;
mod redis;
mod sentinel;
mod server;
mod wait;

pub use cluster::RedisCluster;
pub use kafka::KafkaMock;
pub use mosquitto::{MosquittoOptions, MosquittoServer};
pub use nats::{NatsOptions, NatsServer};
pub use port::{free_port, free_ports};
pub use process::Process;
pub use proxy::Proxy;
pub use rabbitmq::RabbitServer;
pub use redis::{RedisOptions, RedisServer};
pub use sentinel::RedisSentinels;
pub use server::Server;
pub use wait::{PATIENCE, eventually, until};
