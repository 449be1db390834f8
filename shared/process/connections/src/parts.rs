//! The parts from which the processes of a cluster are assembled.

use std::sync::Arc;

use swirl_assembly::System;
use swirl_nats::{Streams, TaskQueue};
use swirl_ports::{Clock, EventBus, EventLog, Queue, Store};
use swirl_runtime::{Observer, Registry};
use swirl_telemetry::{Measured, Metrics};

use crate::health::Servers;

/// One connection to each server, shared by the whole process.
#[derive(Clone)]
pub struct Cluster {
    pub store: Arc<dyn Store>,
    pub events: Arc<dyn EventLog>,
    pub registry: Arc<Registry>,
    /// A name that is part of the ids of all instances.
    pub installation: Arc<str>,
    pub clock: Arc<dyn Clock>,
    pub nats: async_nats::Client,
    pub streams: Streams,
    pub bus: Arc<dyn EventBus>,
    pub queue: Arc<dyn Queue>,
    pub servers: Servers,
}

impl Cluster {
    pub fn queue(nats: &async_nats::Client, streams: &Streams) -> Arc<dyn Queue> {
        Arc::new(TaskQueue::new(nats.clone(), streams))
    }

    /// The same, with its operations for instances and events measured.
    #[must_use]
    pub fn measured(self, metrics: &Arc<Metrics>) -> Cluster {
        let metrics = || metrics.clone();
        Cluster {
            store: Arc::new(Measured::new(self.store, metrics())),
            events: Arc::new(Measured::new(self.events, metrics())),
            bus: Arc::new(Measured::new(self.bus, metrics())),
            queue: Arc::new(Measured::new(self.queue, metrics())),
            ..self
        }
    }

    /// Work for instances is reported to `observer`.
    pub fn system(&self, observer: Arc<dyn Observer>) -> System {
        System {
            installation: self.installation.clone(),
            observer: Some(observer),
            ..System::new(
                self.store.clone(),
                self.events.clone(),
                self.queue.clone(),
                self.clock.clone(),
                self.registry.clone(),
            )
        }
    }
}
