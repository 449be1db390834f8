//! Few scopes that may have ended the processes that drove them compute at the same time (ADR 23).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use async_trait::async_trait;
use futures::FutureExt as _;
use swirl_assembly::{Calls, System};
use swirl_model::ids::ScopeRef;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, ExecutionStore as _, FunctionCaller, Secrets};
use swirl_runtime::{Driven, Driver, Error, Settings, Suspects};
use swirl_service::{StartRequest, Started};
use swirl_virtual_time::{Mock, World};

use crate::fixture;

/// Secrets that aren't available yet. A scope that requests them is about to compute.
#[derive(Default)]
struct Late {
    asked: AtomicUsize,
    are_there: AtomicBool,
}

#[async_trait]
impl Secrets for Late {
    async fn get(&self, _: &[String]) -> Data {
        self.asked.fetch_add(1, Ordering::Relaxed);
        std::future::poll_fn(|_| match self.are_there.load(Ordering::Relaxed) {
            true => Poll::Ready(Data::object()),
            false => Poll::Pending,
        })
        .await
    }
}

/// A service that doesn't answer.
#[derive(Default)]
struct Silent {
    called: AtomicUsize,
}

#[async_trait]
impl FunctionCaller for Silent {
    async fn call(&self, _: CallRequest) -> Result<Data, WorkflowError> {
        self.called.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }
}

const CALL: &str = r#"
id: call
version: "1"
specVersion: "0.8"
functions: [{name: f, type: custom, operation: f}]
states: [{name: A, type: operation, actions: [{functionRef: f}], end: true}]
"#;

struct Process {
    world: World,
    service: Arc<Silent>,
    system: System,
    driver: Driver,
    secrets: Arc<Late>,
    suspects: Suspects,
}

type Driving<'d> = Pin<Box<dyn Future<Output = Result<Driven, Error>> + 'd>>;

impl Process {
    fn new() -> Process {
        let documents = ["one", "two"].map(|id| {
            format!(
                r#"{{"id": "{id}", "version": "1", "specVersion": "0.8", "secrets": ["s"], "states": [
                {{"name": "A", "type": "inject", "data": {{"a": 1}}, "end": true}}]}}"#
            )
        });
        let [one, two] = documents.each_ref().map(String::as_str);
        let world = fixture::world(&[one, two, CALL], |_| Mock::Unknown);
        let mut system = System::from(&world.service);
        // Nobody else takes from this queue.
        system.queue = Arc::new(swirl_embedded::MemoryQueue::default());
        let secrets = Arc::new(Late::default());
        let service = Arc::new(Silent::default());
        let calls = Calls {
            secrets: secrets.clone(),
            caller: service.clone(),
        };
        let driver = system.driver(calls, Arc::new(system.service()), Settings::default());
        Process {
            world,
            service,
            system,
            driver,
            secrets,
            suspects: Suspects::default(),
        }
    }

    /// An instance that has crashed this many processes.
    fn suspected(&self, workflow: &str, request: &str, attempts: u32) -> ScopeRef {
        let request = StartRequest {
            request: request.to_owned(),
            ..fixture::start_of(workflow)
        };
        let service = self.system.service();
        let started = service.start(request).now_or_never().unwrap();
        let Started::New(id) = started.unwrap().unwrap() else {
            panic!("it has ended already")
        };
        let root = ScopeRef::root(id);
        for _ in 0..attempts {
            let attempt = self.world.store.attempt(&root);
            attempt.now_or_never().unwrap().unwrap();
        }
        root
    }

    /// Drives it as far as it gets now.
    fn drive(&self, scope: &ScopeRef) -> Driving<'_> {
        let scope = scope.clone();
        let suspects = Some(self.suspects.clone());
        let driving = async move {
            let stop = std::future::pending();
            self.driver.drive_task(&scope, stop, suspects, || ()).await
        };
        let mut driving: Driving<'_> = Box::pin(driving);
        assert!(driving.as_mut().now_or_never().is_none());
        driving
    }

    fn computing(&self) -> usize {
        self.secrets.asked.load(Ordering::Relaxed)
    }
}

/// The process may die during the call, and because of it.
#[test]
fn a_call_counts_as_an_attempt_until_it_is_answered() {
    let process = Process::new();
    let count = |root: &ScopeRef| {
        let attempt = process.world.store.attempt(root);
        attempt.now_or_never().unwrap().unwrap()
    };
    let root = process.suspected("call", "1", 0);
    let (stop, stopped) = futures::channel::oneshot::channel::<()>();
    let stopped = async move {
        let _ = stopped.await;
    };
    let suspects = Some(process.suspects.clone());
    let mut first = Box::pin(process.driver.drive_task(&root, stopped, suspects, || ()));
    assert!(first.as_mut().now_or_never().is_none());
    // The call is in the record now. Another process makes it again.
    stop.send(()).unwrap();
    assert_eq!(first.now_or_never().unwrap().unwrap(), Driven::Stopped);
    let _calling = process.drive(&root);
    assert_eq!(process.service.called.load(Ordering::Relaxed), 2);
    assert_eq!(count(&root), 2, "the call, and this one");
    let others = ["2", "3"].map(|request| process.suspected("call", request, 2));
    let _others = others.each_ref().map(|root| process.drive(root));
    let called = process.service.called.load(Ordering::Relaxed);
    assert_eq!(called, 4, "calls of suspects don't wait for each other");
}

/// How many suspects of a workflow compute at the same time.
const GROUP: usize = 8;

#[test]
fn after_one_attempt_those_of_a_workflow_compute_in_groups() {
    for attempts in [1, 2] {
        let process = Process::new();
        let suspected = |number: usize| process.suspected("one", &number.to_string(), attempts);
        let scopes: Vec<_> = (0..=GROUP).map(suspected).collect();
        let mut all: Vec<_> = scopes.iter().map(|scope| process.drive(scope)).collect();
        assert_eq!(process.computing(), GROUP, "the last one waits");
        let other = process.suspected("two", "other", attempts);
        all.push(process.drive(&other));
        assert_eq!(
            process.computing(),
            GROUP + 1,
            "another workflow doesn't wait"
        );

        process.secrets.are_there.store(true, Ordering::Relaxed);
        let last = all[GROUP].as_mut().now_or_never();
        assert!(last.is_none(), "until one has ended");
        for driving in all {
            assert_eq!(driving.now_or_never().unwrap().unwrap(), Driven::Done);
        }
        assert_eq!(process.computing(), GROUP + 2);
    }
}

#[test]
fn at_the_last_attempt_all_compute_one_at_a_time() {
    let process = Process::new();
    let [first, second] = [("one", "1"), ("two", "2")]
        .map(|(workflow, request)| process.suspected(workflow, request, 3));
    let less = process.suspected("one", "3", 2);
    let first = process.drive(&first);
    let second = process.drive(&second);
    assert_eq!(process.computing(), 1, "of all workflows");
    let less = process.drive(&less);
    assert_eq!(
        process.computing(),
        2,
        "a scope that is less suspected doesn't wait"
    );

    process.secrets.are_there.store(true, Ordering::Relaxed);
    for driving in [first, second, less] {
        assert_eq!(driving.now_or_never().unwrap().unwrap(), Driven::Done);
    }
}

/// Scopes that crashed no process compute at once.
#[test]
fn without_an_attempt_none_waits() {
    let process = Process::new();
    let scopes = ["1", "2", "3"].map(|request| process.suspected("one", request, 0));
    let all = scopes.each_ref().map(|scope| process.drive(scope));
    assert_eq!(process.computing(), 3);
    drop(all);
}

/// Five tasks for one scope, as after an outage of the queue, look like five attempts until they end. Five attempts that
/// stay have crashed their processes.
#[test]
fn a_scope_is_given_up_only_for_attempts_that_stay() {
    for stays in [false, true] {
        let process = Process::new();
        let scope = process.suspected("one", "1", 5);
        process.secrets.are_there.store(true, Ordering::Relaxed);
        let mut driving = process.drive(&scope);
        assert_eq!(process.computing(), 0);
        if !stays {
            for _ in 0..5 {
                let ended = process.world.store.clear_attempts(&scope, false);
                ended.now_or_never().unwrap().unwrap();
            }
        }
        let clock = &process.world.clock;
        let outcome = loop {
            if let Some(outcome) = driving.as_mut().now_or_never() {
                break outcome;
            }
            clock.set(clock.next().unwrap());
            while clock.wake_one() {}
        };
        match outcome {
            Ok(Driven::Done) if !stays => assert_eq!(process.computing(), 1),
            Err(Error::Attempts { count: 6 }) if stays => assert_eq!(process.computing(), 0),
            outcome => panic!("{outcome:?}"),
        }
    }
}
