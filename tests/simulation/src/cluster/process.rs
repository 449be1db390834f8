//! A process: a worker and a coordinator with a clock of its own. Killing it drops all of its work; the state is in the
//! store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures::task::{ArcWake, waker};
use swirl_assembly::{Calls, System};
use swirl_model::ids::ScopeRef;
use swirl_model::time::Timestamp;
use swirl_ports::{Clock, DefinitionRecord};
use swirl_runtime::{Driver, Registry, Settings, Shares};
use swirl_service::Service;
use swirl_virtual_time::VirtualClock;

use super::faults::Mutant;
use super::outside::{NoSecrets, Outside, Watch};
use super::queue::Messages;
use super::store::SharedStore;

/// How far the workers' clocks of [`Mutant::TimersEarly`] are ahead, beyond all skew.
const AHEAD_MS: i64 = 7_000;

struct SkewedClock {
    truth: Arc<VirtualClock>,
    skew_ms: i64,
}

#[async_trait]
impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.truth.now().0 + self.skew_ms)
    }

    async fn sleep_until(&self, at: Timestamp) {
        let at = Timestamp(at.0 - self.skew_ms);
        self.truth.sleep_until(at).await;
    }
}

struct Flag(AtomicBool);

impl ArcWake for Flag {
    fn wake_by_ref(this: &Arc<Flag>) {
        this.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    ready: Arc<Flag>,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

pub struct Shared {
    pub clock: Arc<VirtualClock>,
    pub store: Arc<SharedStore>,
    pub messages: Arc<Messages>,
    pub outside: Arc<Outside>,
}

pub struct Process {
    pub service: Service,
    driver: Arc<Driver>,
    watch: Arc<Watch>,
    tasks: Vec<Task>,
    /// The number of times that it was started.
    pub life: usize,
    pub dead_until: Option<Timestamp>,
    pub paused_until: Option<Timestamp>,
}

pub fn lower(record: &DefinitionRecord) -> Result<swirl_model::workflow::Workflow, String> {
    let resources = swirl_spec::resource::MapResources::default();
    let options = swirl_spec::Options::default();
    let reading = swirl_spec::read(record.document.as_bytes(), &resources, &options);
    let diagnostics = reading.diagnostics;
    reading.workflow.ok_or_else(|| format!("{diagnostics:?}"))
}

impl Process {
    pub fn new(shared: &Shared, skew_ms: i64, life: usize) -> Process {
        let clock = Arc::new(SkewedClock {
            truth: shared.clock.clone(),
            skew_ms,
        });
        let store = shared.store.clone();
        let registry = Registry::new(store.clone(), Box::new(lower)).within(crate::plans::sizes());
        let registry = Arc::new(registry);
        let system = System::new(
            store.clone(),
            store,
            shared.messages.clone(),
            clock.clone(),
            registry,
        )
        // Only some do, as while the setting is being changed.
        .running_inline((skew_ms + life as i64) % 3 != 1);
        let watch = |service| {
            let outside = shared.outside.clone();
            Arc::new(Watch { service, outside })
        };
        let ahead_ms = match shared.store.mutant {
            Mutant::TimersEarly => AHEAD_MS,
            _ => 0,
        };
        let calls = Calls {
            caller: shared.outside.clone(),
            secrets: Arc::new(NoSecrets),
        };
        let settings = Settings {
            lease_ms: 4_000,
            renew_ms: Some(1_500),
            local_handoff: if (skew_ms + ahead_ms) % 2 == 0 { 3 } else { 0 },
            coordinators_join: shared.store.join_limits.is_some(),
            ..Settings::default()
        };
        let bare = watch(system.service());
        let service = system.service_with_turns(calls.clone(), bare, settings.clone());
        let watch = watch(service.clone());
        let driving = System {
            clock: Arc::new(SkewedClock {
                truth: shared.clock.clone(),
                skew_ms: skew_ms + ahead_ms,
            }),
            ..system
        };
        let mut driver = driving.driver(calls, watch.clone(), settings);
        if skew_ms % 2 == 0 {
            driver.shares = Some(Shares::new(1));
            driver.activity = Some(Shares::equal(1));
        }
        let driver = Arc::new(driver);
        let mut process = Process {
            service,
            driver,
            watch,
            tasks: Vec::new(),
            life,
            dead_until: None,
            paused_until: None,
        };
        process.begin(ahead_ms, &clock);
        process
    }

    /// The loops of a coordinator.
    fn begin(&mut self, ahead_ms: i64, clock: &Arc<SkewedClock>) {
        let mut timers = self.service.clone();
        if ahead_ms > 0 {
            timers.clock = Arc::new(SkewedClock {
                truth: clock.truth.clone(),
                skew_ms: clock.skew_ms + ahead_ms,
            });
        }
        self.spawn(async move { timers.run_timers().await });
        let service = self.service.clone();
        self.spawn(async move { service.run_schedules().await });
        let (service, watch) = (self.service.clone(), self.watch.clone());
        self.spawn(async move {
            service
                .run_reconciler(&*watch, Duration::from_secs(3))
                .await;
        });
    }

    pub fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        self.tasks.push(Task {
            ready: Arc::new(Flag(AtomicBool::new(true))),
            future: Box::pin(future),
        });
    }

    pub fn drive(&mut self, scope: ScopeRef) {
        let driver = self.driver.clone();
        self.spawn(async move {
            // Errors are left to the reconciler.
            let _ = driver.drive(&scope).await;
        });
    }

    /// Joins a fork, in the role of a coordinator.
    pub fn join(&mut self, scope: ScopeRef) {
        let driver = self.driver.clone();
        self.spawn(async move {
            let _ = driver.join(&scope, None).await;
        });
    }

    pub fn kill(&mut self, until: Timestamp) {
        self.tasks.clear();
        self.dead_until = Some(until);
        self.paused_until = None;
    }

    pub fn works(&self, now: Timestamp) -> bool {
        self.dead_until.is_none() && self.paused_until.is_none_or(|until| until <= now)
    }

    /// The positions of the tasks that can continue.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        let tasks = self.tasks.iter().enumerate();
        tasks
            .filter(|(_, task)| task.ready.0.load(Ordering::Relaxed))
            .map(|(place, _)| place)
    }

    pub fn poll(&mut self, place: usize) {
        let Some(task) = self.tasks.get_mut(place) else {
            return;
        };
        task.ready.0.store(false, Ordering::Relaxed);
        let waker = waker(task.ready.clone());
        let polled = task.future.as_mut().poll(&mut Context::from_waker(&waker));
        if polled == Poll::Ready(()) {
            drop(self.tasks.remove(place));
        }
    }
}
