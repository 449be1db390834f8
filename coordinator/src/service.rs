//! What the coordinator's parts share.

use std::sync::Arc;

use swirl_ports::{Clock, EventLog, Queue, Store};
use swirl_runtime::Registry;

#[derive(Clone)]
pub struct Service {
    pub store: Arc<dyn Store>,
    pub events: Arc<dyn EventLog>,
    pub queue: Arc<dyn Queue>,
    pub clock: Arc<dyn Clock>,
    pub registry: Arc<Registry>,
}
