//! What the processes of a cluster are put together from.

use std::sync::Arc;

use swirl_coordinator::Service;
use swirl_nats::{Streams, TaskQueue};
use swirl_ports::{Clock, EventBus, EventLog, Store};
use swirl_runtime::Registry;

/// One connection to each server, shared by all that a process does.
#[derive(Clone)]
pub struct Cluster {
    pub store: Arc<dyn Store>,
    pub events: Arc<dyn EventLog>,
    pub registry: Arc<Registry>,
    pub clock: Arc<dyn Clock>,
    pub nats: async_nats::Client,
    pub streams: Streams,
    pub bus: Arc<dyn EventBus>,
}

impl Cluster {
    pub fn queue(&self) -> Arc<TaskQueue> {
        Arc::new(TaskQueue::new(self.nats.clone(), &self.streams))
    }

    pub fn service(&self) -> Service {
        Service {
            store: self.store.clone(),
            events: self.events.clone(),
            queue: self.queue(),
            clock: self.clock.clone(),
            registry: self.registry.clone(),
        }
    }
}
