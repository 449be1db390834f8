//! Runs a case in virtual time with faults: the real engine, driver and coordinator over the in-memory store.
//!
//! Time advances when nothing is left to do. Faults take no time, so timers and answers come as if undisturbed.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use anyhow::{Result, bail};
use async_trait::async_trait;
use futures::task::{ArcWake, waker};
use swirl_assembly::{Calls, System};
use swirl_embedded::Embedded;
use swirl_model::event::{Command, Event};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, WorkflowError};
use swirl_ports::{
    CallRequest, Clock, ExecutionStore, Filter, FunctionCaller, InstanceQueries, InstanceRecords,
    Queue, Secrets,
};
use swirl_runtime::{Driver, Effects, Registry, Settings};
use swirl_service::{Deployment, Service, StartRequest};
use swirl_virtual_time::VirtualClock;

use crate::functions::{Answer, answered, asked};
use crate::generate::Case;
use crate::random::Random;
use crate::store::{ChaosStore, Kept, give_way};

/// In percent, except `crash`, which is per thousand polls.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    pub seed: u64,
    pub twice: usize,
    pub lost: usize,
    pub reorder: bool,
    pub crash: usize,
}

impl Faults {
    pub fn none(seed: u64) -> Faults {
        Faults {
            seed,
            twice: 0,
            lost: 0,
            reorder: false,
            crash: 0,
        }
    }

    pub fn disturbed(seed: u64) -> Faults {
        Faults {
            seed,
            twice: 50,
            lost: 30,
            reorder: true,
            crash: 0,
        }
    }

    pub fn crashing(seed: u64) -> Faults {
        Faults {
            seed,
            twice: 10,
            lost: 10,
            reorder: true,
            crash: 15,
        }
    }
}

/// Bugs that the checkers must find, not faults that the system must tolerate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    No,
    /// The history of each commit is written twice.
    CommitsTwice,
    /// A call gets a different key each time.
    DrawsKeys,
    /// Lost messages are never recovered.
    NeverSweeps,
    /// `apply` leaves events out.
    DropsEvents,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Called {
    pub scope: ScopeRef,
    pub function: String,
    pub arguments: String,
    pub key: String,
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Trace {
    /// Status, output and error.
    pub instances: BTreeMap<String, String>,
    /// In the form of the reference interpreter, with the time of each end.
    pub outcomes: Vec<String>,
    /// By instance and scope.
    pub history: BTreeMap<String, Vec<String>>,
    pub produced: BTreeMap<String, String>,
    pub calls: Vec<Called>,
    pub violations: Vec<String>,
    pub crashes: usize,
    pub replayed: usize,
    pub not_replayed: usize,
}

/// The outside world, which survives crashes.
#[derive(Default)]
struct Outside {
    calls: Vec<Called>,
    /// The time at which an attempt began, and its number among those of its scope and function.
    attempts: HashMap<String, (Timestamp, usize)>,
    counts: HashMap<(ScopeRef, String, String), usize>,
    produced: BTreeMap<String, String>,
    violations: Vec<String>,
}

struct Functions {
    clock: Arc<VirtualClock>,
    outside: Arc<Mutex<Outside>>,
    answers: Arc<Mutex<HashMap<String, std::result::Result<Data, WorkflowError>>>>,
    broken: Broken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A service that remembers keys: a repeated call is answered at the time of the first one.
#[async_trait]
impl FunctionCaller for Functions {
    async fn call(&self, request: CallRequest) -> std::result::Result<Data, WorkflowError> {
        let (name, arguments) = asked(&request);
        let now = self.clock.now();
        let (began, attempt) = {
            let mut outside = lock(&self.outside);
            let mut key = request.key.clone();
            if self.broken == Broken::DrawsKeys {
                key = format!("{key}/{}", outside.calls.len());
            }
            outside.calls.push(Called {
                scope: request.scope.clone(),
                function: name.clone(),
                arguments: arguments.clone(),
                key,
            });
            match outside.attempts.get(&request.key) {
                Some(known) => *known,
                None => {
                    let place = (request.scope.clone(), name.clone(), arguments);
                    let count = outside.counts.entry(place).or_default();
                    *count += 1;
                    let known = (now, *count);
                    outside.attempts.insert(request.key.clone(), known);
                    known
                }
            }
        };
        let Answer { after_ms, result } = answered(&request, attempt, i64::MAX);
        let until = began.plus_ms(after_ms);
        if until > now {
            self.clock.sleep_until(until).await;
        }
        lock(&self.answers).insert(request.key, result.clone());
        give_way().await;
        result
    }
}

struct NoSecrets;

#[async_trait]
impl Secrets for NoSecrets {
    async fn get(&self, _names: &[String]) -> Data {
        Data::object()
    }
}

/// Loses, duplicates and reorders messages.
struct ChaosQueue {
    tasks: Mutex<(Vec<ScopeRef>, Random)>,
    faults: Faults,
}

#[async_trait]
impl Queue for ChaosQueue {
    async fn push(&self, tasks: Vec<ScopeRef>) {
        let mut lock = lock(&self.tasks);
        for task in tasks {
            if lock.1.percent(self.faults.lost) {
                continue;
            }
            let times = 1 + usize::from(lock.1.percent(self.faults.twice));
            for _ in 0..times {
                let end = lock.0.len();
                let at = if self.faults.reorder {
                    lock.1.below(end + 1)
                } else {
                    end
                };
                lock.0.insert(at, task.clone());
            }
        }
    }
}

/// Records published events.
struct Watch {
    inner: Service,
    outside: Arc<Mutex<Outside>>,
}

#[async_trait]
impl Effects for Watch {
    async fn carry_out(
        &self,
        instance: &InstanceId,
        command: &Command,
    ) -> std::result::Result<(), swirl_runtime::Error> {
        if let Command::Publish(event) = command {
            let text = format!("{instance} {event:?}");
            let mut outside = lock(&self.outside);
            let old = outside.produced.insert(event.key(), text.clone());
            if old.is_some_and(|old| old != text) {
                outside
                    .violations
                    .push(format!("two events have one id: {text}"));
            }
        }
        give_way().await;
        let result = self.inner.carry_out(instance, command).await;
        give_way().await;
        result
    }
}

struct Flag(AtomicBool);

impl ArcWake for Flag {
    fn wake_by_ref(this: &Arc<Flag>) {
        this.0.store(true, Ordering::Relaxed);
    }
}

type Task = (Arc<Flag>, Pin<Box<dyn Future<Output = ()>>>);

struct Rig {
    clock: Arc<VirtualClock>,
    store: Arc<ChaosStore>,
    queue: Arc<ChaosQueue>,
    service: Service,
    driver: Arc<Driver>,
    tasks: Vec<Task>,
    random: Random,
    faults: Faults,
    crashes: usize,
    polls: usize,
}

const CRASHES_MAX: usize = 60;
const POLLS_MAX: usize = 2_000_000;

struct Crashed;

impl Rig {
    /// Polls a task once, and returns whether it is over.
    fn poll(flag: &Arc<Flag>, task: &mut Pin<Box<dyn Future<Output = ()>>>) -> bool {
        flag.0.store(false, Ordering::Relaxed);
        let waker = waker(flag.clone());
        task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(())
    }

    /// Whether the process is killed now.
    fn killed(&mut self) -> bool {
        self.polls += 1;
        self.crashes < CRASHES_MAX
            && self.faults.crash > 0
            && self.random.below(1000) < self.faults.crash
    }

    async fn restarted(store: Arc<ChaosStore>) -> Result<()> {
        Ok(store.forget_leases().await?)
    }

    fn crash(&mut self) -> Result<()> {
        self.crashes += 1;
        self.tasks.clear();
        lock(&self.queue.tasks).0.clear();
        futures::executor::block_on(Rig::restarted(self.store.clone()))
    }

    /// Runs a part of the coordinator, again if it is killed meanwhile.
    fn act<T: 'static, F: Future<Output = T> + 'static>(
        &mut self,
        make: impl Fn(Service) -> F,
    ) -> Result<T> {
        loop {
            let result = std::rc::Rc::new(std::cell::RefCell::new(None));
            let (cell, future) = (result.clone(), make(self.service.clone()));
            let mut task: Pin<Box<dyn Future<Output = ()>>> =
                Box::pin(async move { *cell.borrow_mut() = Some(future.await) });
            let flag = Arc::new(Flag(AtomicBool::new(true)));
            let done = loop {
                if self.killed() {
                    break Err(Crashed);
                }
                if Rig::poll(&flag, &mut task) {
                    break Ok(());
                }
                if !flag.0.load(Ordering::Relaxed) {
                    bail!("the coordinator waits for ever");
                }
            };
            match done {
                Ok(()) => {
                    if let Some(value) = result.borrow_mut().take() {
                        return Ok(value);
                    }
                }
                Err(Crashed) => {
                    drop(task);
                    self.crash()?;
                }
            }
        }
    }

    /// Drives until nothing changes.
    fn settle(&mut self) -> Result<()> {
        loop {
            if self.polls > POLLS_MAX {
                bail!("the run does not come to rest");
            }
            let ready: Vec<usize> = (0..self.tasks.len())
                .filter(|index| self.tasks[*index].0.0.load(Ordering::Relaxed))
                .collect();
            let new = {
                let mut queue = lock(&self.queue.tasks);
                // Messages under way come first, or all at once if the order is disturbed.
                let begin = ready.is_empty() || self.faults.reorder && self.random.percent(50);
                (begin && !queue.0.is_empty()).then(|| queue.0.remove(0))
            };
            if let Some(scope) = new {
                let driver = self.driver.clone();
                let task = async move {
                    let _ = driver.drive(&scope).await;
                };
                self.tasks
                    .push((Arc::new(Flag(AtomicBool::new(true))), Box::pin(task)));
                continue;
            }
            if ready.is_empty() {
                return Ok(());
            }
            if self.killed() {
                self.crash()?;
                return Ok(());
            }
            let at = if self.faults.reorder {
                self.random.below(ready.len())
            } else {
                0
            };
            let (flag, task) = &mut self.tasks[ready[at]];
            if Rig::poll(flag, task) {
                drop(self.tasks.remove(ready[at]));
            }
        }
    }

    /// Drives and sweeps until nothing is left.
    fn rest(&mut self, sweeps: bool) -> Result<()> {
        loop {
            self.settle()?;
            if !sweeps {
                return Ok(());
            }
            let store = self.store.inner.clone();
            let (runnable, left) = futures::executor::block_on(async move {
                anyhow::Ok((store.runnable(1000).await?, store.unflushed(1000).await?))
            })?;
            if runnable.is_empty() && left.is_empty() {
                return Ok(());
            }
            lock(&self.queue.tasks).0.extend(runnable);
            let driver = self.driver.clone();
            let flush = async move { driver.flush(left).await };
            self.tasks
                .push((Arc::new(Flag(AtomicBool::new(true))), Box::pin(flush)));
        }
    }
}

pub const START: i64 = 1_700_000_000_000;
const HOURS_MAX: i64 = 1000;

/// Runs a case to its end.
pub fn run(case: &Case, faults: Faults, broken: Broken) -> Result<Trace> {
    let clock = Arc::new(VirtualClock::new(Timestamp(START)));
    let embedded = Arc::new(Embedded::memory());
    let outside = Arc::new(Mutex::new(Outside::default()));
    let answers = Arc::new(Mutex::new(HashMap::new()));
    let registry = Registry::new(
        embedded.clone(),
        Box::new(|record| Err(format!("{} is not in the cache", record.name))),
    );
    let registry = Arc::new(registry.within(crate::plans::sizes()));
    let store = Arc::new(ChaosStore {
        inner: embedded.clone(),
        registry: Mutex::new(Some(registry.clone())),
        faults,
        broken,
        answers: answers.clone(),
        state: Mutex::new(Kept::default()),
    });
    let queue = Arc::new(ChaosQueue {
        tasks: Mutex::new((Vec::new(), Random::new(faults.seed ^ 5))),
        faults,
    });
    let system = System::new(
        store.clone(),
        embedded.clone(),
        queue.clone(),
        clock.clone(),
        registry,
    )
    .running_inline(faults.seed.is_multiple_of(2));
    let calls = Calls {
        caller: Arc::new(Functions {
            clock: clock.clone(),
            outside: outside.clone(),
            answers,
            broken,
        }),
        secrets: Arc::new(NoSecrets),
    };
    let watch = |inner| {
        let outside = outside.clone();
        Arc::new(Watch { inner, outside })
    };
    let bare = watch(system.service());
    let service = system.service_with_turns(calls.clone(), bare, Settings::default());
    let driver = Arc::new(system.driver(calls, watch(service.clone()), Settings::default()));
    let mut rig = Rig {
        clock,
        store,
        queue,
        service,
        driver,
        tasks: Vec::new(),
        random: Random::new(faults.seed ^ 9),
        faults,
        crashes: 0,
        polls: 0,
    };
    for text in crate::plans::others() {
        deploy(&rig.service, "another", &text)?;
    }
    for (name, text) in [("main", &case.main), ("sub", &case.sub)] {
        deploy(&rig.service, name, text)?;
    }
    for text in &case.older {
        deploy(&rig.service, "older", text)?;
    }
    play(&mut rig, case, broken)?;
    trace(rig, embedded, &outside)
}

fn deploy(service: &Service, name: &str, text: &str) -> Result<()> {
    let resources = swirl_spec::resource::MapResources::default();
    let reading = swirl_spec::read(text.as_bytes(), &resources, &swirl_spec::Options::default());
    let Some(workflow) = reading.workflow else {
        bail!("{name} is not valid: {:?}", reading.diagnostics);
    };
    let deployment = Deployment {
        name: name.to_owned(),
        document: text.to_owned(),
        resources: Vec::new(),
        workflow,
    };
    futures::executor::block_on(service.deploy(deployment))?;
    Ok(())
}

fn play(rig: &mut Rig, case: &Case, broken: Broken) -> Result<()> {
    let sweeps = broken != Broken::NeverSweeps;
    let mut plan = case.events.clone();
    plan.sort();
    plan.reverse();
    let mut input = Data::object();
    input.set("order", Data::string("42"));
    input.set("n", Data::int((case.seed % 9) as i64));
    let request = StartRequest {
        workflow: case.workflow().to_owned(),
        input,
        request: "1".to_owned(),
        ..StartRequest::default()
    };
    rig.act(move |service| {
        let request = request.clone();
        async move { service.start(request).await.map(drop) }
    })??;
    loop {
        rig.rest(sweeps)?;
        let now = rig.clock.now();
        if let Some((at, kind)) = plan.last().cloned()
            && START + at <= now.0
        {
            plan.pop();
            let times = 1 + usize::from(rig.faults.twice > 0);
            for _ in 0..times {
                let event: CloudEvent = serde_json::from_value(serde_json::json!({
                    "id": kind, "source": "plan", "type": kind, "orderid": "42", "data": {"got": kind}
                }))?;
                rig.act(move |service| {
                    let event = event.clone();
                    async move { service.publish(&event).await }
                })??;
            }
            continue;
        }
        if rig.clock.wake_one() {
            continue;
        }
        let crashes = rig.crashes;
        let fired = rig.act(|service| async move { service.fire_timers_at_most(1).await })??;
        // A killed process is restarted before time advances.
        if fired > 0 || rig.crashes > crashes {
            continue;
        }
        let store = rig.store.inner.clone();
        let timer = futures::executor::block_on(async move { store.next_timer().await })?;
        let event = plan.last().map(|(at, _)| Timestamp(START + at));
        let Some(next) = [timer, rig.clock.next(), event].into_iter().flatten().min() else {
            return Ok(());
        };
        if next.0 > START + HOURS_MAX * 3_600_000 {
            bail!("the run does not come to an end");
        }
        rig.clock.set(next);
    }
}

fn trace(rig: Rig, store: Arc<Embedded>, outside: &Mutex<Outside>) -> Result<Trace> {
    let mut trace = Trace {
        crashes: rig.crashes,
        ..Trace::default()
    };
    let filter = Filter {
        limit: usize::MAX,
        ..Filter::default()
    };
    futures::executor::block_on(async {
        for summary in store.list(&filter).await? {
            let id = &summary.header.id;
            let Some(instance) = store.instance(id).await? else {
                continue;
            };
            let state = &instance.state;
            let text = format!(
                "{:?} at {:?}: {:?} {:?}",
                state.status, state.ended_at, state.output, state.error
            );
            trace.instances.insert(id.to_string(), text);
            let entries = store.history(id).await?;
            let workflow = &summary.header.definition.workflow;
            let outcome = crate::plans::in_time(workflow, state, &entries);
            trace.outcomes.push(outcome);
            for entry in entries {
                // Calls are repeated only after crashes, which the calm run doesn't have.
                if matches!(entry.event, Event::CallRepeated { .. }) {
                    continue;
                }
                let line = format!("{} {:?}", entry.at.0 - START, entry.event);
                let place = format!("{id} {}", entry.scope);
                trace.history.entry(place).or_default().push(line);
            }
        }
        anyhow::Ok(())
    })?;
    let mut outside = lock(outside);
    trace.calls = std::mem::take(&mut outside.calls);
    trace.produced = std::mem::take(&mut outside.produced);
    trace.violations = std::mem::take(&mut outside.violations);
    let mut kept = rig.store.kept();
    trace.violations.append(&mut kept.violations);
    (trace.replayed, trace.not_replayed) = (kept.replayed, kept.not_replayed);
    drop(kept);
    Ok(trace)
}
