//! The system of `swirl dev`, which is the only process in it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use swirl_coordinator::api::{Insight, QueueFigures};
use swirl_coordinator::doctor::Report;
use swirl_embedded::{Embedded, MemoryQueue};
use swirl_model::time::Timestamp;
use swirl_ports::{
    Clock, ExecutionStore, Filter, InstanceQueries, ProcessInfo, Result, SeenProcess, UnreadCount,
};

use crate::node::Node;

pub struct DevInsight {
    store: Arc<Embedded>,
    queue: Arc<MemoryQueue>,
    clock: Arc<dyn Clock>,
    process: ProcessInfo,
    load: swirl_connections::Load,
    /// The folder that instances are kept in; `None`: in memory.
    folder: Option<PathBuf>,
    address: SocketAddr,
}

impl DevInsight {
    pub fn new(node: &Node, folder: Option<PathBuf>, address: SocketAddr) -> DevInsight {
        let clock = node.service.clock.clone();
        DevInsight {
            store: node.store.clone(),
            queue: node.queue.clone(),
            process: ProcessInfo {
                id: format!("dev-{}", std::process::id()),
                role: "dev".to_owned(),
                host: swirl_connections::host(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                since: clock.now(),
                address: Some(address.to_string()),
                pid: Some(std::process::id()),
                ..ProcessInfo::default()
            },
            load: swirl_connections::Load::new(),
            clock,
            folder,
            address,
        }
    }
}

#[async_trait]
impl Insight for DevInsight {
    async fn processes(&self) -> Result<Vec<SeenProcess>> {
        let mut process = self.process.clone();
        self.load.note(&mut process);
        Ok(vec![SeenProcess {
            process,
            seen: self.clock.now(),
        }])
    }

    async fn queues(&self) -> Option<Vec<QueueFigures>> {
        let (pending, oldest) = self.queue.backlog();
        let waits = oldest.map_or(0, |since| self.clock.now().0.saturating_sub(since.0));
        Some(vec![QueueFigures {
            name: "tasks",
            pending: u64::try_from(pending).unwrap_or(u64::MAX),
            unacknowledged: None,
            oldest_ms: u64::try_from(waits).unwrap_or(0),
        }])
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>> {
        self.store.next_timer().await
    }

    async fn lifecycle(&self) -> Result<Option<UnreadCount>> {
        Ok(None)
    }

    async fn check(&self) -> Report {
        let mut report = Report::default();
        let filter = Filter {
            limit: 1,
            ..Filter::default()
        };
        match (self.store.list(&filter).await, &self.folder) {
            (Err(error), _) => {
                let hint = "check the disk, then start 'swirl dev' again";
                report.error("store", error.to_string(), hint);
            }
            (Ok(_), None) => report.ok(
                "store",
                "instances are kept in memory and are lost when this process ends",
            ),
            (Ok(_), Some(folder)) => report.ok(
                "store",
                format!("instances are kept in {}", folder.display()),
            ),
        }
        match self.address.ip().is_loopback() {
            true => report.ok("access", "only this machine can reach the server"),
            false => report.warning(
                "access",
                format!("anyone who can reach {} may do everything", self.address),
                "listen on 127.0.0.1; 'swirl coordinator' supports tokens",
            ),
        }
        report
    }
}
