//! A scope that cannot be driven is given up after a while, and its instance is suspended. Work that is unfinished when
//! the worker stops is returned.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use swirl_assembly::{Calls, System};
use swirl_embedded::{Embedded, MemoryQueue};
use swirl_model::event::Event;
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Status;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{
    CallRequest, ExecutionStore, FunctionCaller, InstanceQueries, InstanceRecords, Queue, Receipt,
    Task, Tasks,
};
use swirl_runtime::{Registry, Settings};
use swirl_servers::{PATIENCE, eventually};
use swirl_worker::pool;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::rig::{nobody, service, started};

const DOCUMENT: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "inject", "data": {"a": 1}, "end": true}]}"#;

const CALLS: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "name": "w", "start": "A",
    "functions": [{"name": "f", "operation": "service.json#f"}],
    "states": [{"name": "A", "type": "operation", "end": true,
        "actions": [{"functionRef": {"refName": "f"}}]}]}"#;

/// Redelivers a failed task three times.
pub struct Source(pub Mutex<UnboundedReceiver<Task>>);

struct Ticket {
    scope: ScopeRef,
    failed: Arc<AtomicUsize>,
    tasks: UnboundedSender<Task>,
}

#[async_trait]
impl Tasks for Source {
    async fn pull(&self) -> Task {
        match self.0.lock().await.recv().await {
            Some(task) => task,
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Receipt for Ticket {
    async fn progress(&self) {}
    async fn done(&self) {}
    async fn postpone(&self, _: u64) {}
    async fn give_up(&self, reason: &str) {
        panic!("it is given up: {reason}");
    }

    async fn failed(&self, _: u64, reason: &str) -> bool {
        assert!(reason.contains("no such connector"), "{reason}");
        if self.failed.fetch_add(1, Ordering::Relaxed) == 2 {
            return true;
        }
        let again = task(&self.scope, &self.failed, &self.tasks);
        self.tasks.send(again).is_err()
    }
}

fn task(scope: &ScopeRef, failed: &Arc<AtomicUsize>, tasks: &UnboundedSender<Task>) -> Task {
    let ticket = Ticket {
        scope: scope.clone(),
        failed: failed.clone(),
        tasks: tasks.clone(),
    };
    Task {
        receipt: Some(Box::new(ticket)),
        ..scope.clone().into()
    }
}

#[tokio::test]
async fn an_instance_that_cannot_be_driven_is_suspended() {
    let (store, queue) = (
        Arc::new(Embedded::memory()),
        Arc::new(MemoryQueue::default()),
    );
    let service = service(&store, queue.clone());
    let id = started(&service, DOCUMENT).await;
    // The worker was started without something that the definition needs.
    let lower = Box::new(|_: &_| Err("no such connector".to_owned()));
    let system = System {
        registry: Arc::new(Registry::new(store.clone(), lower)),
        ..System::from(&service)
    };
    let driver = system.driver(nobody(), Arc::new(service.clone()), Settings::default());
    let (tasks, pulled) = unbounded_channel();
    let failed = Arc::new(AtomicUsize::new(0));
    let root = ScopeRef::root(id.clone());
    tasks.send(task(&root, &failed, &tasks)).unwrap();
    let stop = eventually("its suspension", async || {
        let instance = store.instance(&id).await.unwrap().unwrap();
        instance.state.suspended.then_some(())
    });
    let source = Arc::new(Source(Mutex::new(pulled)));
    let left = pool::run(Arc::new(driver), source, pool::Settings::default(), stop).await;
    assert_eq!((left, failed.load(Ordering::Relaxed)), (0, 3));
    assert!(
        store.runnable(10).await.unwrap().is_empty(),
        "the reconciler still reports it"
    );
    let history = store.history(&id).await.unwrap();
    let [entry] = &history[..] else {
        panic!("{history:?}");
    };
    assert_eq!(entry.scope, root.scope);
    let Event::GivenUp { reason } = &entry.event else {
        panic!("{entry:?}");
    };
    assert!(reason.contains("no such connector"), "{reason}");
    let resumed = store.suspend(&id, false, None).await;
    let resumed = resumed.unwrap().unwrap();
    assert_eq!(resumed.wake, [root], "an operator continues it");
}

/// Never answers; reports when it is called.
struct Endless(UnboundedSender<String>);

#[async_trait]
impl FunctionCaller for Endless {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        let _ = self.0.send(request.key.to_string());
        std::future::pending().await
    }
}

/// Records the calls to the queue.
struct Noted(UnboundedSender<&'static str>);

#[async_trait]
impl Receipt for Noted {
    async fn progress(&self) {}

    async fn done(&self) {
        let _ = self.0.send("done");
    }

    async fn postpone(&self, after_ms: u64) {
        let word = if after_ms == 0 { "at once" } else { "later" };
        let _ = self.0.send(word);
    }

    async fn give_up(&self, _: &str) {
        let _ = self.0.send("given up");
    }

    async fn failed(&self, _: u64, _: &str) -> bool {
        let _ = self.0.send("again");
        false
    }
}

#[tokio::test]
async fn unfinished_work_is_returned_at_the_deadline() {
    let (store, queue) = (
        Arc::new(Embedded::memory()),
        Arc::new(MemoryQueue::default()),
    );
    let service = service(&store, queue.clone());
    let root = ScopeRef::root(started(&service, CALLS).await);
    let (called, mut calls) = unbounded_channel();
    let endless = Calls {
        caller: Arc::new(Endless(called)),
        ..nobody()
    };
    let effects = Arc::new(service.clone());
    let driver = System::from(&service).driver(endless, effects, Settings::default());
    let driver = Arc::new(driver);
    let mut keys = Vec::new();
    // The second worker continues at once, without waiting for the first one's lease to expire.
    for _ in 0..2 {
        let (tasks, pulled) = unbounded_channel();
        let (said, mut heard) = unbounded_channel();
        let task = Task {
            receipt: Some(Box::new(Noted(said))),
            ..root.clone().into()
        };
        assert!(tasks.send(task).is_ok());
        let stop = async {
            let key = tokio::time::timeout(PATIENCE, calls.recv()).await;
            keys.extend(key.unwrap());
        };
        let settings = pool::Settings {
            shutdown: Duration::from_millis(50),
            ..pool::Settings::default()
        };
        let source = Arc::new(Source(Mutex::new(pulled)));
        let left = pool::run(driver.clone(), source, settings, stop).await;
        assert_eq!(left, 1);
        assert_eq!(heard.recv().await, Some("at once"));
        assert_eq!(heard.recv().await, None);
    }
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1], "it is the same call");
    let history = store.history(&root.instance).await.unwrap();
    let repeated = history
        .iter()
        .filter(|entry| matches!(entry.event, Event::CallRepeated { .. }));
    assert_eq!(repeated.count(), 1, "{history:#?}");
}

const FORKS: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "name": "w", "start": "A",
    "functions": [{"name": "f", "type": "expression", "operation": "${ {a: 1} }"}],
    "states": [
        {"name": "A", "type": "parallel", "transition": "B", "branches": [
            {"name": "1", "actions": [{"functionRef": "f"}]},
            {"name": "2", "actions": [{"functionRef": "f"}]},
            {"name": "3", "actions": [{"functionRef": "f"}]}]},
        {"name": "B", "type": "parallel", "end": true, "branches": [
            {"name": "1", "actions": [{"functionRef": "f"}]},
            {"name": "2", "actions": [{"functionRef": "f"}]},
            {"name": "3", "actions": [{"functionRef": "f"}]}]}]}"#;

const CALLING_FORK: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "name": "w", "start": "A",
    "functions": [{"name": "f", "operation": "service.json#f"}],
    "states": [{"name": "A", "type": "parallel", "end": true, "branches": [
            {"name": "1", "actions": [{"functionRef": "f"}]},
            {"name": "2", "actions": [{"functionRef": "f"}]},
            {"name": "3", "actions": [{"functionRef": "f"}]}]}]}"#;

/// Counts the tasks that are put into the queue.
struct Counting(UnboundedSender<Task>, AtomicUsize);

#[async_trait]
impl Queue for Counting {
    async fn push(&self, tasks: Vec<ScopeRef>) {
        for scope in tasks {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.send(scope.into()).unwrap();
        }
    }
}

/// The number of tasks that the forks take.
async fn tasks_of_forks(local_scopes: usize, local_handoff: usize, concurrency: usize) -> usize {
    let store = Arc::new(Embedded::memory());
    let (tasks, pulled) = unbounded_channel();
    let queue = Arc::new(Counting(tasks, AtomicUsize::new(0)));
    let service = service(&store, queue.clone());
    let id = started(&service, FORKS).await;
    let settings = Settings {
        local_handoff,
        ..Settings::default()
    };
    let effects = Arc::new(service.clone());
    let driver = System::from(&service).driver(nobody(), effects, settings);
    let settings = pool::Settings {
        concurrency,
        local_scopes,
        ..pool::Settings::default()
    };
    let stop = eventually("its end", async || {
        let instance = store.instance(&id).await.unwrap().unwrap();
        instance.state.status.ended().then_some(())
    });
    let source = Arc::new(Source(Mutex::new(pulled)));
    assert_eq!(pool::run(Arc::new(driver), source, settings, stop).await, 0);
    let instance = store.instance(&id).await.unwrap().unwrap();
    assert_eq!(instance.state.status, Status::Completed);
    queue.1.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_worker_continues_with_one_of_the_scopes_that_it_woke() {
    // The start, and for each fork three branches and the scope that follows them.
    assert_eq!(tasks_of_forks(0, 0, 1).await, 9);
    assert_eq!(tasks_of_forks(100, 1, 1).await, 5);
    // The first fork continues with one branch; its last branch continues with the second fork, and no further.
    assert_eq!(tasks_of_forks(1, 1, 1).await, 6);
}

#[tokio::test]
async fn a_worker_with_places_keeps_the_branches() {
    assert_eq!(tasks_of_forks(100, 32, 8).await, 1, "the start");
    // Of each fork two branches continue here, and one is for any worker.
    assert_eq!(tasks_of_forks(100, 2, 8).await, 3);
    // There is no place for another one.
    assert_eq!(tasks_of_forks(100, 32, 1).await, 5);
}

#[tokio::test]
async fn a_worker_that_stops_hands_over_what_it_kept() {
    let store = Arc::new(Embedded::memory());
    let (tasks, pulled) = unbounded_channel();
    let queue = Arc::new(Counting(tasks, AtomicUsize::new(0)));
    let service = service(&store, queue.clone());
    let id = started(&service, CALLING_FORK).await;
    let (called, mut calls) = unbounded_channel();
    let endless = Calls {
        caller: Arc::new(Endless(called)),
        ..nobody()
    };
    let settings = Settings {
        local_handoff: 32,
        ..Settings::default()
    };
    let effects = Arc::new(service.clone());
    let driver = System::from(&service).driver(endless, effects, settings);
    let settings = pool::Settings {
        shutdown: Duration::from_millis(50),
        ..pool::Settings::default()
    };
    // All branches are called, without a message for any of them.
    let stop = async {
        for _ in 0..3 {
            let called = tokio::time::timeout(PATIENCE, calls.recv()).await;
            assert!(called.unwrap().is_some());
        }
        assert_eq!(queue.1.load(Ordering::Relaxed), 1, "the start");
    };
    let source = Arc::new(Source(Mutex::new(pulled)));
    assert_eq!(pool::run(Arc::new(driver), source, settings, stop).await, 3);
    assert_eq!(queue.1.load(Ordering::Relaxed), 4, "each branch is a task");
    let instance = store.instance(&id).await.unwrap().unwrap();
    assert_eq!(instance.state.status, Status::Running);
}

/// The number of branches that are called at once, and of tasks that are put into the queue, if all three branches of a
/// fork are one task.
async fn branches_in_one_task(is_late: bool, calls_expected: usize) -> usize {
    let store = Arc::new(Embedded::memory());
    let (tasks, mut pulled) = unbounded_channel();
    let queue = Arc::new(Counting(tasks.clone(), AtomicUsize::new(0)));
    let service = service(&store, queue.clone());
    started(&service, CALLING_FORK).await;
    let (called, mut calls) = unbounded_channel();
    let endless = Calls {
        caller: Arc::new(Endless(called)),
        ..nobody()
    };
    let effects = Arc::new(service.clone());
    let driver = System::from(&service).driver(endless, effects, Settings::default());
    let root = pulled.recv().await.unwrap().scope;
    driver.drive(&root).await.unwrap();
    let mut branches = Vec::new();
    for _ in 0..3 {
        branches.push(pulled.recv().await.unwrap().scope);
    }
    let first = branches.remove(0);
    let task = Task {
        beside: branches,
        is_late,
        ..first.into()
    };
    // Only this task is taken.
    let (one, source) = unbounded_channel();
    one.send(task).unwrap();
    let settings = pool::Settings {
        shutdown: Duration::from_millis(50),
        ..pool::Settings::default()
    };
    let before = queue.1.load(Ordering::Relaxed);
    let put = AtomicUsize::new(0);
    let stop = async {
        for _ in 0..calls_expected {
            let called = tokio::time::timeout(PATIENCE, calls.recv()).await;
            assert!(called.unwrap().is_some());
        }
        let since = || queue.1.load(Ordering::Relaxed) - before;
        if is_late {
            eventually("its tasks", async || (since() > 0).then_some(())).await;
        }
        put.store(since(), Ordering::Relaxed);
    };
    let source = Arc::new(Source(Mutex::new(source)));
    let left = pool::run(Arc::new(driver), source, settings, stop).await;
    assert_eq!(left, calls_expected);
    put.load(Ordering::Relaxed)
}

#[tokio::test]
async fn scopes_of_one_task_run_beside_each_other() {
    assert_eq!(branches_in_one_task(false, 3).await, 0);
}

/// Any of them may have ended the last worker, so each gets a task of its own, by which its attempts are counted.
#[tokio::test]
async fn scopes_of_a_late_task_get_tasks_of_their_own() {
    assert_eq!(branches_in_one_task(true, 0).await, 3);
}
