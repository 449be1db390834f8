//! The whole system in one process: workers, coordinator and the embedded store, in real time.
//! `swirl run` and `swirl dev` are built on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use swirl_coordinator::Service;
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_ports::{Clock, FunctionCaller, Queue, Secrets, Store};
use swirl_runtime::{Driver, Lower, Registry, Settings};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many scopes are driven at once. One that waits for a call counts.
const SCOPES_MAX: usize = 1024;
/// How often the reconciler looks for scopes that should be running and are not.
const SWEEP: Duration = Duration::from_secs(5);
/// How many scopes and outbox entries it takes at once.
const SWEEP_MAX: usize = 10_000;

pub struct Node {
    pub service: Service,
    pub store: Arc<Embedded>,
    driver: Arc<Driver>,
    queue: Arc<dyn Queue>,
    tasks: JoinSet<()>,
}

impl Node {
    /// Puts the system together; nothing runs yet. Without a folder, nothing outlives the process.
    pub fn new(
        folder: Option<&Path>,
        lower: Lower,
        caller: Arc<dyn FunctionCaller>,
        secrets: Arc<dyn Secrets>,
    ) -> anyhow::Result<Node> {
        let store = Arc::new(match folder {
            Some(folder) => Embedded::open(folder, swirl_embedded::Options::default())?,
            None => Embedded::memory(),
        });
        let queue: Arc<dyn Queue> = Arc::new(MemoryQueue::default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let registry = Arc::new(Registry::new(store.clone(), lower));
        let service = Service {
            store: store.clone(),
            events: store.clone(),
            queue: queue.clone(),
            clock: clock.clone(),
            registry: registry.clone(),
        };
        let driver = Arc::new(Driver {
            store: store.clone(),
            events: store.clone(),
            queue: queue.clone(),
            caller,
            secrets,
            clock,
            effects: Arc::new(service.clone()),
            registry,
            settings: Settings::default(),
        });
        Ok(Node {
            service,
            store,
            driver,
            queue,
            tasks: JoinSet::new(),
        })
    }

    /// Starts the loops: workers, timers, schedules, reconciler. The first sweep brings back what
    /// a crash left behind.
    pub fn start(&mut self) {
        let (driver, queue) = (self.driver.clone(), self.queue.clone());
        self.tasks.spawn(async move {
            let places = Arc::new(Semaphore::new(SCOPES_MAX));
            loop {
                let task = queue.pull().await;
                let Ok(place) = places.clone().acquire_owned().await else {
                    return;
                };
                let driver = driver.clone();
                tokio::spawn(async move {
                    if let Err(error) = driver.drive(&task).await {
                        tracing::warn!(scope = %task, %error, "a scope is put off");
                    }
                    drop(place);
                });
            }
        });
        let service = self.service.clone();
        self.tasks.spawn(async move { service.run_timers().await });
        let service = self.service.clone();
        self.tasks
            .spawn(async move { service.run_schedules().await });
        let (driver, store, queue) = (self.driver.clone(), self.store.clone(), self.queue.clone());
        self.tasks.spawn(async move {
            loop {
                if let Err(error) = sweep(&driver, &store, &queue).await {
                    tracing::warn!(%error, "the reconciler is late");
                }
                tokio::time::sleep(SWEEP).await;
            }
        });
    }
}

/// Scopes that should be running are put into the queue, effects that nobody carried out are
/// carried out.
async fn sweep(
    driver: &Driver,
    store: &Embedded,
    queue: &Arc<dyn Queue>,
) -> Result<(), swirl_ports::Error> {
    let outbox = store.unflushed(SWEEP_MAX).await?;
    driver.flush(outbox).await;
    queue.push(store.runnable(SWEEP_MAX).await?).await;
    let now = driver.clock.now();
    driver.events.expire(now).await
}
