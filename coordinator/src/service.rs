//! What the coordinator's parts share.

use std::sync::Arc;

use swirl_ports::{Clock, EventLog, Queue, Store};
use swirl_runtime::{Observer, Registry};

#[derive(Clone)]
pub struct Service {
    pub store: Arc<dyn Store>,
    pub events: Arc<dyn EventLog>,
    pub queue: Arc<dyn Queue>,
    pub clock: Arc<dyn Clock>,
    pub registry: Arc<Registry>,
    /// Instances that need nothing but data are carried out where they are started, instead of by a worker.
    pub carries_out: bool,
    /// Who is told of those.
    pub observer: Option<Arc<dyn Observer>>,
}
