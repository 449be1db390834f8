//! Shows the operators of a cluster which processes are alive.

use std::net::SocketAddr;
use std::time::Duration;

use swirl_ports::ProcessInfo;
use swirl_redis::Redis;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::health::ANSWER_MAX;
use crate::load::Load;

/// How often a process gives a sign of life.
const EVERY: Duration = Duration::from_secs(5);

/// A process that gives none for so long is forgotten.
const KEPT_MS: u64 = 60_000;

/// A process without a sign of life for so long may be gone.
pub const SILENT_MS: i64 = 20_000;

/// Gives signs of life of this process until it is ended or dropped.
pub struct Presence {
    redis: Redis,
    task: JoinHandle<()>,
}

impl Presence {
    /// `role`: as it is shown, such as `worker`. `address`: where it listens.
    pub fn begin(redis: &Redis, role: &'static str, address: Option<SocketAddr>) -> Presence {
        Presence {
            task: tokio::spawn(note(redis.clone(), role, address)),
            redis: redis.clone(),
        }
    }

    /// The process stops: it is forgotten at once.
    pub async fn end(self) {
        self.task.abort();
        let left = self.redis.forget_process(self.redis.process_id(), KEPT_MS);
        if !matches!(timeout(ANSWER_MAX, left).await, Ok(Ok(()))) {
            tracing::debug!("this process is removed later");
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn note(redis: Redis, role: &'static str, address: Option<SocketAddr>) {
    let load = Load::new();
    let mut process = None;
    loop {
        if process.is_none() {
            process = describe(&redis, role, address).await;
        }
        if let Some(process) = &mut process {
            load.note(process);
            if let Err(error) = redis.note_process(process, KEPT_MS).await {
                tracing::debug!(%error, "a heartbeat is late");
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// By the clock of Redis, which all processes go by.
async fn describe(redis: &Redis, role: &str, address: Option<SocketAddr>) -> Option<ProcessInfo> {
    let since = redis.now().await.ok()?;
    Some(ProcessInfo {
        id: redis.process_id().to_owned(),
        role: role.to_owned(),
        host: host(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since,
        address: address.map(|address| address.to_string()),
        pid: Some(std::process::id()),
        ..ProcessInfo::default()
    })
}

/// The name of this machine or container; empty if it is not known.
pub fn host() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let kernel = kernel.map(|name| name.trim().to_owned()).ok();
    let name = kernel.filter(|name| !name.is_empty());
    name.or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_default()
}
