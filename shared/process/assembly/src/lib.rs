//! Builds driver and service from ports. This is the only place that does so; every process, virtual time and the tests
//! use it.

use std::sync::Arc;

use swirl_ports::{Clock, EventLog, ExecutionStore, FunctionCaller, Queue, Secrets};
use swirl_runtime::{Driver, Effects, Observer, Registry, Settings};
use swirl_service::{Recent, Service};

/// The ports of one process.
#[derive(Clone)]
pub struct System {
    pub store: Arc<dyn ExecutionStore>,
    pub events: Arc<dyn EventLog>,
    pub queue: Arc<dyn Queue>,
    pub clock: Arc<dyn Clock>,
    pub registry: Arc<Registry>,
    /// A name that is part of all instance ids; empty if there is none.
    pub installation: Arc<str>,
    /// Whether first turns that need only data are taken where instances are started.
    pub runs_inline: bool,
    /// The observer of the driver.
    pub observer: Option<Arc<dyn Observer>>,
    /// The most recently received events.
    pub recent: Arc<Recent>,
}

impl From<&Service> for System {
    fn from(service: &Service) -> System {
        System {
            store: service.store.clone(),
            events: service.events.clone(),
            queue: service.queue.clone(),
            clock: service.clock.clone(),
            registry: service.registry.clone(),
            installation: service.installation.clone(),
            runs_inline: service.runs_inline,
            observer: service.observer.clone(),
            recent: service.recent.clone(),
        }
    }
}

/// Calls the functions of definitions.
#[derive(Clone)]
pub struct Calls {
    pub caller: Arc<dyn FunctionCaller>,
    pub secrets: Arc<dyn Secrets>,
}

impl System {
    /// Creates a system without a name or an observer. It takes first turns where instances are started, if they need
    /// nothing but data.
    pub fn new(
        store: Arc<dyn ExecutionStore>,
        events: Arc<dyn EventLog>,
        queue: Arc<dyn Queue>,
        clock: Arc<dyn Clock>,
        registry: Arc<Registry>,
    ) -> System {
        System {
            store,
            events,
            queue,
            clock,
            registry,
            installation: "".into(),
            runs_inline: true,
            observer: None,
            recent: Arc::default(),
        }
    }

    /// Sets [`System::runs_inline`].
    #[must_use]
    pub fn running_inline(mut self, runs_inline: bool) -> System {
        self.runs_inline = runs_inline;
        self
    }

    /// As [`System::service`], but with a driver that takes turns which need only data. `effects` wraps a service
    /// without a driver.
    pub fn service_with_turns(
        &self,
        calls: Calls,
        effects: Arc<dyn Effects>,
        settings: Settings,
    ) -> Service {
        let driver = Arc::new(self.driver(calls, effects, settings));
        self.service().driving(driver)
    }

    /// The service that turns requests, events and time into instances and inputs.
    pub fn service(&self) -> Service {
        Service {
            store: self.store.clone(),
            events: self.events.clone(),
            queue: self.queue.clone(),
            clock: self.clock.clone(),
            registry: self.registry.clone(),
            installation: self.installation.clone(),
            runs_inline: self.runs_inline,
            driver: None,
            observer: self.observer.clone(),
            recent: self.recent.clone(),
        }
    }

    /// The driver that steps scopes. `effects` carries out the effects in the outbox: it is the service, or a wrapper
    /// around it.
    pub fn driver(&self, calls: Calls, effects: Arc<dyn Effects>, settings: Settings) -> Driver {
        Driver {
            store: self.store.clone(),
            events: self.events.clone(),
            queue: self.queue.clone(),
            caller: calls.caller,
            secrets: calls.secrets,
            clock: self.clock.clone(),
            effects,
            registry: self.registry.clone(),
            settings,
            observer: self.observer.clone(),
            shares: None,
            activity: None,
            places: None,
        }
    }
}
