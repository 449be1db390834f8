//! The handle that all parts of the coordinator share.

use std::sync::Arc;

use swirl_engine::derive;
use swirl_model::ids::InstanceId;
use swirl_ports::{Clock, EventLog, ExecutionStore, Queue};
use swirl_runtime::{Driver, Observer, Registry};

use crate::Recent;

#[derive(Clone)]
pub struct Service {
    pub store: Arc<dyn ExecutionStore>,
    pub events: Arc<dyn EventLog>,
    pub queue: Arc<dyn Queue>,
    pub clock: Arc<dyn Clock>,
    pub registry: Arc<Registry>,
    /// A name that is unique among all installations and namespaces. It is part of the ids of all instances.
    pub installation: Arc<str>,
    /// First turns that need nothing but data are taken by the process that starts the instance, not by a worker.
    pub runs_inline: bool,
    /// Runs instances that an event starts or that produce events, and turns of waiting instances that need nothing but
    /// data. With `None`, a worker runs them. A service that carries out effects has none, so that instances which
    /// start each other don't run within each other.
    pub driver: Option<Arc<Driver>>,
    /// The observer that is notified of what the driver runs.
    pub observer: Option<Arc<dyn Observer>>,
    /// The last events that this process received.
    pub recent: Arc<Recent>,
}

impl Service {
    /// Sets the driver, see [`Service::driver`].
    #[must_use]
    pub fn driving(self, driver: Arc<Driver>) -> Service {
        let driver = Some(driver);
        Service { driver, ..self }
    }

    /// The id of a batch. The same request always gives the same id.
    pub fn batch_id(&self, request: &str) -> String {
        self.derive(&["batch", request]).as_str().to_owned()
    }

    /// Derives an id from these parts that is unique to this installation.
    pub(crate) fn derive(&self, parts: &[&str]) -> InstanceId {
        // Simulations have no installation name, so their ids are the same on any machine.
        let installation = Some(&*self.installation).filter(|name| !name.is_empty());
        let parts: Vec<&str> = installation
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        InstanceId::new(derive(&parts))
    }
}

/// Draws a random name that no other installation has.
pub fn draw_name() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}
