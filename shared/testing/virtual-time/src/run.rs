//! Running the world.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::executor::LocalPool;
use futures::future::BoxFuture;
use futures::task::LocalSpawnExt;
use swirl_assembly::{Calls, System};
use swirl_embedded::Embedded;
use swirl_engine::Sizes;
use swirl_model::instance::Header;
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, WorkflowError};
use swirl_ports::{
    CallRequest, Clock, ExecutionStore, Filter, FunctionCaller, InstanceQueries, Secrets, Summary,
    Tasks,
};
use swirl_runtime::{Lower, Recording, Registry, Settings};
use swirl_service::{Action, Refused, Service, StartRequest, Started};

use crate::clock::VirtualClock;
use crate::record::{Call, Observed, Recorder, Work};

/// The processor time of one evaluation. It is far more than the limit on steps takes, so that steps decide what is too
/// expensive, and a run has the same history on a slow machine.
pub const EXPRESSION_TIME: Duration = Duration::from_secs(120);

/// A step of a run's plan.
#[derive(Debug, Clone)]
pub enum Act {
    Start(StartRequest),
    Event(CloudEvent),
    Operate {
        /// Its name in the plan.
        name: String,
        which: Which,
        action: Action,
    },
}

/// An instance, as an operator names it.
#[derive(Debug, Clone)]
pub enum Which {
    /// Counted in the order of start, sub-workflows left out (docs/language.md#decision-72).
    Index(usize),
    /// Its id, its key or the key that it was started with; of several instances with the key the last one
    /// (docs/language.md#decision-108).
    Name(String),
}

impl Which {
    /// Finds it among all instances, which are in the order of their start.
    pub fn find<'a>(&self, all: &'a [Summary]) -> Option<&'a Summary> {
        match self {
            Which::Index(index) => {
                let mut roots = all.iter().filter(|one| one.header.parent.is_none());
                roots.nth(*index)
            }
            Which::Name(name) => {
                let by_id = all.iter().find(|one| one.header.id.as_str() == name);
                by_id.or_else(|| all.iter().rfind(|one| has_key(&one.header, name)))
            }
        }
    }
}

/// Whether an instance has this key, alone or after its workflow and a slash, or was started with it.
fn has_key(header: &Header, name: &str) -> bool {
    let key = header.instance_key.as_deref();
    let rest = name.strip_prefix(&*header.definition.workflow);
    let of_workflow = rest.and_then(|rest| rest.strip_prefix('/'));
    header.key.as_deref() == Some(name)
        || key.is_some_and(|key| key == name || of_workflow == Some(key))
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Which::Index(index) => write!(f, "{index}"),
            Which::Name(name) => write!(f, "'{name}'"),
        }
    }
}

/// A step of the plan that had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ineffective {
    /// Its name in the plan: of a start, its request.
    pub name: String,
    pub why: String,
}

/// The answer to a call that takes the next message of a subscription.
#[derive(Debug, Clone)]
pub struct NextMessage {
    pub after_ms: u64,
    pub result: Result<Data, WorkflowError>,
}

/// A call that plays in virtual time, such as one of several requests. It ends with its outcome.
pub struct Play(pub Box<dyn FnOnce(Arc<VirtualClock>) -> BoxFuture<'static, Mock> + Send>);

impl std::fmt::Debug for Play {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a play")
    }
}

/// How a mocked function answers a call.
#[derive(Debug)]
pub enum Mock {
    Answer {
        after_ms: u64,
        result: Result<Data, WorkflowError>,
    },
    Never,
    Play(Play),
    /// The call is not recorded, and its result is null.
    Silent,
    /// It takes the next message of a subscription whose first call is recorded; `None`: none comes.
    Next(Option<NextMessage>),
    /// The plan has no answer, so the run is invalid.
    Unknown,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Nothing more can happen.
    Quiet,
    /// Virtual time reached its end.
    Until,
}

#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    #[error(transparent)]
    Runtime(#[from] swirl_runtime::Error),
    #[error("a start was refused: {0}")]
    Start(#[from] Refused),
    #[error(
        "{name}: there is no instance {which}: {count} had been started by then, and the first is 0"
    )]
    NoInstance {
        name: String,
        which: Which,
        /// Without sub-workflows.
        count: usize,
    },
    #[error(
        "virtual time doesn't advance after {0} steps: a workflow loops, or starts itself again, without ever waiting"
    )]
    Endless(u64),
    #[error(
        "it doesn't end: virtual time advanced {steps} times, to {at}; set in 'until' when the run stops, or limit what repeats"
    )]
    TooLong { steps: u64, at: Timestamp },
    #[error(
        "it hadn't ended when its time ran out, at {0} of virtual time: it loops, or does too much; set in 'until' when the run stops, or limit what repeats"
    )]
    Stopped(Timestamp),
}

impl From<swirl_ports::Error> for WorldError {
    fn from(error: swirl_ports::Error) -> WorldError {
        WorldError::Runtime(error.into())
    }
}

type Answer = Box<dyn Fn(&CallRequest) -> Mock + Send + Sync>;

struct MockCaller {
    clock: Arc<VirtualClock>,
    answer: Answer,
    recorder: OnceLock<Arc<Recorder>>,
    work: Arc<Work>,
}

#[async_trait]
impl FunctionCaller for MockCaller {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        // A scope that makes one call after another is driven without a pause: only this limit
        // stops it.
        if !self.work.add(CALL_WORK) {
            return std::future::pending().await;
        }
        let call = Call {
            scope: request.scope.clone(),
            function: request.function.name.to_string(),
            arguments: request.arguments.clone(),
            key: request.key.clone(),
            at: self.clock.now(),
            of: request.function.clone(),
            auth: request.auth.clone(),
        };
        let mut mock = (self.answer)(&request);
        if let Some(recorder) = self.recorder.get() {
            match mock {
                Mock::Unknown => recorder.unknown(call.clone()),
                Mock::Silent | Mock::Next(_) => {}
                _ => recorder.call(call.clone()),
            }
        }
        if let Mock::Play(Play(play)) = mock {
            mock = play(self.clock.clone()).await;
            if let (Mock::Unknown, Some(recorder)) = (&mock, self.recorder.get()) {
                recorder.unknown(call);
            }
        }
        match mock {
            Mock::Answer { after_ms, result }
            | Mock::Next(Some(NextMessage { after_ms, result })) => {
                if after_ms > 0 {
                    let at = Timestamp(self.clock.now().0.saturating_add_unsigned(after_ms));
                    self.clock.sleep_until(at).await;
                }
                result
            }
            Mock::Never | Mock::Next(None) | Mock::Play(_) => std::future::pending().await,
            Mock::Silent => Ok(Data::NULL),
            Mock::Unknown => Err(WorkflowError::new(
                swirl_model::error::names::FUNCTION_ERROR,
                format!("no answer is given for '{}'", request.function.name),
            )),
        }
    }
}

struct FixedSecrets(Data);

#[async_trait]
impl Secrets for FixedSecrets {
    async fn get(&self, names: &[String]) -> Data {
        let mut found = Data::object();
        for name in names {
            if let Some(value) = self.0.get(name) {
                found.set(name, value);
            }
        }
        found
    }
}

pub struct World {
    pub clock: Arc<VirtualClock>,
    pub store: Arc<Embedded>,
    pub service: Service,
    recorder: Arc<Recorder>,
    pool: LocalPool,
    work: Arc<Work>,
    /// How often virtual time may advance in a run.
    pub advances_max: u64,
    refused: Vec<Ineffective>,
    idle: Vec<Ineffective>,
}

/// The weight of a call in addition to its entries of history, because it is recorded with its arguments.
const CALL_WORK: u64 = 10;

/// How often virtual time may advance in a run. This takes up to two minutes, even if little happens each time.
const ADVANCES_MAX: u64 = 300_000;

/// The longest value that [`World::recording`] keeps.
const RECORDED_BYTES_MAX: usize = 1 << 20;

impl World {
    pub fn new(start: Timestamp, lower: Lower, answer: Answer, secrets: Data) -> World {
        World::with(start, lower, answer, secrets, Settings::default())
    }

    /// One whose histories keep arguments, results and events.
    pub fn recording(start: Timestamp, lower: Lower, answer: Answer, secrets: Data) -> World {
        let settings = Settings {
            recording: Recording::All,
            own_recording: false,
            recorded_bytes_max: RECORDED_BYTES_MAX,
            ..Settings::default()
        };
        World::with(start, lower, answer, secrets, settings)
    }

    fn with(
        start: Timestamp,
        lower: Lower,
        answer: Answer,
        secrets: Data,
        settings: Settings,
    ) -> World {
        let clock = Arc::new(VirtualClock::new(start));
        let store = Arc::new(Embedded::memory());
        let queue = Arc::new(swirl_embedded::MemoryQueue::default());
        let sizes = Sizes {
            expression_time: EXPRESSION_TIME,
            ..Sizes::default()
        };
        let registry = Arc::new(Registry::new(store.clone(), lower).within(sizes));
        let system = System::new(
            store.clone(),
            store.clone(),
            queue.clone(),
            clock.clone(),
            registry,
        );
        let service = system.service();
        let work = Arc::new(Work::default());
        let recorder = Arc::new(Recorder::new(Arc::new(service.clone()), work.clone()));
        let caller = Arc::new(MockCaller {
            clock: clock.clone(),
            answer,
            recorder: OnceLock::new(),
            work: work.clone(),
        });
        let _ = caller.recorder.set(recorder.clone());
        let calls = Calls {
            caller,
            secrets: Arc::new(FixedSecrets(secrets)),
        };
        let driver = system.driver(calls, recorder.clone(), settings);
        let driver = Arc::new(driver);
        let pool = LocalPool::new();
        let spawner = pool.spawner();
        let counter = work.clone();
        let pump = async move {
            let inner = spawner.clone();
            loop {
                let task = queue.pull().await.scope;
                if !counter.add(1) {
                    return;
                }
                let driver = driver.clone();
                let drive = async move {
                    // An error of the in-memory store cannot happen; an error of the definition
                    // shows in the instance.
                    let _ = driver.drive(&task).await;
                };
                if inner.spawn_local(drive).is_err() {
                    return;
                }
            }
        };
        let world = World {
            clock,
            store,
            service,
            recorder,
            pool,
            work,
            advances_max: ADVANCES_MAX,
            refused: Vec::new(),
            idle: Vec::new(),
        };
        let _ = world.pool.spawner().spawn_local(pump);
        world
    }

    /// Sets the limit on the work at one moment, in entries of history.
    pub fn limit_work(&self, max: u64) {
        self.work.limit(max);
    }

    /// Stops runs as soon as this is true.
    pub fn stop_when(&self, over: Arc<AtomicBool>) {
        self.work.stop_when(over);
    }

    /// Lets everything happen that can happen now.
    pub fn run_until_stalled(&mut self) -> Result<(), WorldError> {
        self.pool.run_until_stalled();
        if self.work.is_over() {
            return Err(WorldError::Stopped(self.clock.now()));
        }
        match self.work.too_much() {
            Some(work) => Err(WorldError::Endless(work)),
            None => Ok(()),
        }
    }

    /// Runs a future of the service to its end.
    pub fn wait<T>(&mut self, future: impl Future<Output = T>) -> T {
        self.pool.run_until(future)
    }

    /// Carries out the plan, and continues until nothing is left to happen or `until` is reached.
    pub fn run(
        &mut self,
        mut plan: Vec<(Timestamp, Act)>,
        until: Timestamp,
    ) -> Result<Stop, WorldError> {
        plan.sort_by_key(|(at, _)| *at);
        let mut plan: VecDeque<(Timestamp, Act)> = plan.into();
        let service = self.service.clone();
        let mut steps = 0;
        loop {
            self.run_until_stalled()?;
            if let Some((at, _)) = plan.front()
                && *at <= self.clock.now()
            {
                if let Some((_, act)) = plan.pop_front() {
                    self.act(act)?;
                }
                continue;
            }
            if self.clock.wake_one() {
                continue;
            }
            if self.wait(service.fire_timers_at_most(1))? > 0 {
                continue;
            }
            if self.wait(service.fire_schedules())? > 0 {
                continue;
            }
            let due = [
                plan.front().map(|(at, _)| *at),
                self.clock.next(),
                self.wait(self.store.clone().next_timer())?,
                self.wait(service.next_schedule())?,
            ];
            match due.into_iter().flatten().min() {
                None => return Ok(Stop::Quiet),
                Some(at) if at >= until => {
                    self.clock.set(until);
                    return Ok(Stop::Until);
                }
                Some(at) => {
                    steps += 1;
                    if steps > self.advances_max {
                        return Err(WorldError::TooLong { steps, at });
                    }
                    self.work.begin_again();
                    self.clock.set(at);
                }
            }
        }
    }

    fn act(&mut self, act: Act) -> Result<(), WorldError> {
        let service = self.service.clone();
        match act {
            Act::Start(request) => {
                let name = request.request.clone();
                match self.wait(service.start(request))? {
                    Ok(Started::New(_) | Started::Ended(_) | Started::Existing(_)) => {}
                    Err(refused @ Refused::Unknown(_)) => return Err(refused.into()),
                    // The refusal is reported; the world continues without the instance.
                    Err(refused) => {
                        let why = refused.to_string();
                        self.refused.push(Ineffective { name, why });
                    }
                }
                Ok(())
            }
            Act::Event(event) => Ok(self.wait(service.publish(&event))?),
            Act::Operate {
                name,
                which,
                action,
            } => {
                let all = self.instances()?;
                let Some(found) = which.find(&all) else {
                    let roots = all.iter().filter(|one| one.header.parent.is_none());
                    let count = roots.count();
                    return Err(WorldError::NoInstance { name, which, count });
                };
                let status = if found.suspended {
                    "suspended"
                } else {
                    found.status.as_str()
                };
                if !self.wait(service.operate(&found.header.id, action))? {
                    let why = format!("it had no effect: the instance was {status}");
                    self.idle.push(Ineffective { name, why });
                }
                Ok(())
            }
        }
    }

    /// Starts that created no instance.
    pub fn refused(&self) -> &[Ineffective] {
        &self.refused
    }

    /// Operator actions without effect.
    pub fn idle(&self) -> &[Ineffective] {
        &self.idle
    }

    /// All instances, in the order of their start.
    pub fn instances(&mut self) -> Result<Vec<Summary>, WorldError> {
        let store = self.store.clone();
        let filter = Filter {
            limit: usize::MAX,
            ..Filter::default()
        };
        let mut all = self.wait(async move { store.list(&filter).await })?;
        all.reverse();
        Ok(all)
    }

    /// Takes the observable effects so far, and forgets them.
    pub fn observed(&mut self) -> Observed {
        self.recorder.take()
    }
}
