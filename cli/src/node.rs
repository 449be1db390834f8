//! The whole system in one process: workers, coordinator and the embedded store, in real time. `swirl run` and `swirl
//! dev` use it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use swirl_assembly::{Calls, System};
use swirl_connections::WorkThreads;
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_ports::addressed::Addressed;
use swirl_ports::{Clock, FunctionCaller, Secrets};
use swirl_runtime::{Driver, Lower, Observer, Recording, Registry, Settings, Shares};
use swirl_service::{AUDIT_KEPT, Auditing, BatchLimits, Batching, Service, draw_name};
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
    work: WorkThreads,
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
            swirl_connections::threads(),
            swirl_connections::aside,
        ));
        let driver = Arc::new(driver);
        Ok(Node {
            service,
            store,
            driver,
            queue,
            tasks: JoinSet::new(),
            work: WorkThreads::start()?,
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
        let drives = async move {
            let never = std::future::pending();
            pool::run(driver, tasks, pool::Settings::default(), never).await;
        };
        if let Some(threads) = self.work.handle() {
            self.tasks.spawn_on(drives, threads);
        }
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
        let (service, store) = (self.service.clone(), self.store.clone());
        self.tasks
            .spawn(async move { service.run_freeing(&*store).await });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use async_trait::async_trait;
    use swirl_functions::secrets::Chain;
    use swirl_model::{Data, WorkflowError};
    use swirl_ports::CallRequest;
    use swirl_service::{Deployment, StartRequest};
    use swirl_spec::resource::MapResources;

    use super::*;

    const DOCUMENT: &str = "{id: w, name: w, version: '1', specVersion: '0.8', functions: [{name: f, operation: \
                            'http://localhost/a#b'}], states: [{name: A, type: operation, actions: [{functionRef: \
                            f}], end: true}]}";

    /// Keeps its thread busy, as a turn does that computes for long.
    #[derive(Default)]
    struct Busy {
        begun: AtomicUsize,
        is_over: AtomicBool,
    }

    #[async_trait]
    impl FunctionCaller for Busy {
        async fn call(&self, _: CallRequest) -> Result<Data, WorkflowError> {
            self.begun.fetch_add(1, Ordering::Relaxed);
            while !self.is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(Data::NULL)
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_leaves_the_threads_that_serve_to_others() {
        let read = || {
            let options = swirl_spec::Options::default();
            swirl_spec::read(DOCUMENT.as_bytes(), &MapResources::default(), &options).workflow
        };
        let lower: Lower = Box::new(move |_| read().ok_or_else(|| "it is not valid".to_owned()));
        let (busy, options) = (
            Arc::new(Busy::default()),
            swirl_embedded::Options::default(),
        );
        let secrets = Arc::new(Chain::new());
        let mut node = Node::new(None, options, lower, busy.clone(), secrets).unwrap();
        let deployment = Deployment {
            name: "w".to_owned(),
            document: DOCUMENT.to_owned(),
            resources: Vec::new(),
            workflow: read().unwrap(),
        };
        node.service.deploy(deployment).await.unwrap();
        node.start();
        let threads = swirl_connections::threads();
        for number in 0..2 * threads {
            let started = node.service.start(StartRequest {
                workflow: "w".to_owned(),
                version: None,
                input: Data::object(),
                key: None,
                request: number.to_string(),
                watched: false,
                trace: None,
            });
            started.await.unwrap().unwrap();
        }
        swirl_servers::eventually("that all threads are busy", async || {
            (busy.begun.load(Ordering::Relaxed) >= threads).then_some(())
        })
        .await;
        let served = tokio::spawn(async { "served" });
        let served = tokio::time::timeout(swirl_servers::PATIENCE, served).await;
        busy.is_over.store(true, Ordering::Relaxed);
        assert_eq!(served.unwrap().unwrap(), "served");
    }
}
