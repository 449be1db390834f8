//! The whole system in one process: workers, coordinator and the embedded store, in real time. `swirl run` and `swirl
//! dev` use it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_ports::addressed::Addressed;
use swirl_ports::{Clock, FunctionCaller, Secrets};
use swirl_runtime::{Driver, Lower, Observer, Recording, Registry, Settings, Shares};
use swirl_service::{AUDIT_KEPT, Auditing, BatchLimits, Batching, Service, draw_name};
use swirl_system::{Calls, System};
use swirl_worker::pool;
use tokio::task::JoinSet;

/// The interval at which the reconciler looks for scopes that should be running but aren't.
const SWEEP: Duration = Duration::from_secs(5);

pub struct Node {
    pub service: Service,
    pub store: Arc<Embedded>,
    driver: Arc<Driver>,
    pub queue: Arc<MemoryQueue>,
    tasks: JoinSet<()>,
}

impl Node {
    /// Assembles the system without starting it. Without a folder, nothing outlives the process.
    pub fn new(
        folder: Option<&Path>,
        options: swirl_embedded::Options,
        lower: Lower,
        caller: Arc<dyn FunctionCaller>,
        secrets: Arc<dyn Secrets>,
    ) -> anyhow::Result<Node> {
        let store = Arc::new(match folder {
            Some(folder) => Embedded::open(folder, options)?,
            None => Embedded::memory_with(options),
        });
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let queue = Arc::new(MemoryQueue::timed(clock.clone()));
        // Without a folder, each process is its own installation with its own ids.
        let installation = block_on(store.installation(draw_name()))?;
        let registry = Arc::new(Registry::new(store.clone(), lower));
        let system = System {
            installation: installation.into(),
            ..System::new(store.clone(), store.clone(), queue.clone(), clock, registry)
        };
        let service = system.service();
        let calls = Calls { caller, secrets };
        let effects = Arc::new(service.clone());
        let mut driver = system.driver(calls, effects, Settings::default());
        driver.shares = Some(Shares::aside(
            swirl_cluster::threads(),
            swirl_cluster::aside,
        ));
        let driver = Arc::new(driver);
        Ok(Node {
            service,
            store,
            driver,
            queue,
            tasks: JoinSet::new(),
        })
    }

    /// Sets an attribute that addresses an instance, in addition to our own. Call it before anything else.
    pub fn addressed_by(&mut self, attribute: Option<&str>) {
        if let Some(driver) = Arc::get_mut(&mut self.driver) {
            self.service.events = Addressed::log(self.store.clone(), attribute);
            driver.effects = Arc::new(self.service.clone());
        }
    }

    /// Sets which data the history keeps, unless a definition says otherwise. Call it before the start. A worker then
    /// runs all instances, since only a driver records.
    pub fn records(&mut self, recording: Recording) {
        if let Some(driver) = Arc::get_mut(&mut self.driver) {
            driver.settings.recording = recording;
            self.service.runs_inline = false;
            driver.effects = Arc::new(self.service.clone());
        }
    }

    /// Sets the observer of events; call it before the start.
    pub fn observed_by(&mut self, observer: Arc<dyn Observer>) {
        if let Some(driver) = Arc::get_mut(&mut self.driver) {
            self.service.observer = Some(observer.clone());
            driver.observer = Some(observer);
            driver.effects = Arc::new(self.service.clone());
        }
    }

    /// The batches for the API. They are carried out once the loops run.
    pub fn batching(&self) -> Batching {
        Batching {
            service: self.service.clone(),
            store: self.store.clone(),
            limits: BatchLimits::default(),
        }
    }

    /// For the API: the audit log.
    pub fn auditing(&self) -> Auditing {
        Auditing {
            store: self.store.clone(),
            keep_max: AUDIT_KEPT,
        }
    }

    /// Starts the loops: workers, timers, schedules, batches, reconciler. The first sweep recovers work that a crash
    /// interrupted.
    pub fn start(&mut self) {
        let (driver, tasks) = (self.driver.clone(), self.queue.clone());
        self.tasks.spawn(async move {
            let never = std::future::pending();
            pool::run(driver, tasks, pool::Settings::default(), never).await;
        });
        let service = self.service.clone();
        self.tasks.spawn(async move { service.run_timers().await });
        let service = self.service.clone();
        self.tasks
            .spawn(async move { service.run_schedules().await });
        let batching = self.batching();
        self.tasks.spawn(async move { batching.run().await });
        let (service, effects) = (self.service.clone(), self.service.clone());
        self.tasks
            .spawn(async move { service.run_reconciler(&effects, SWEEP).await });
    }
}
