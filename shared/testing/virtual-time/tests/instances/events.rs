//! Events, and how far the process that processes them goes with their instances.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::FutureExt as _;
use swirl_assembly::System;
use swirl_embedded::MemoryQueue;
use swirl_model::CloudEvent;
use swirl_model::event::Command;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::matching::Listeners;
use swirl_ports::{EventLog, ExecutionStore, Ingested, Listening, Tasks};
use swirl_runtime::{Effects, Error, Recording, Settings};
use swirl_service::{Service, Started};
use swirl_virtual_time::{Mock, World};

use crate::fixture;

/// An event starts it, and it ends by producing one.
const RELAY: &str = r#"{"id": "relay", "version": "1", "specVersion": "0.8",
    "events": [{"name": "go", "type": "go"}, {"name": "done", "type": "done", "kind": "produced"}],
    "states": [{"name": "A", "type": "event", "onEvents": [{"eventRefs": ["go"]}],
        "end": {"produceEvents": [{"eventRef": "done", "data": "${ {key: .key} }"}]}}]}"#;

/// Waits for an event, then produces one with the same key, unless its output filter fails.
const WAITS: &str = r#"{"id": "waits", "version": "1", "specVersion": "0.8",
    "events": [{"name": "go", "type": "go"}, {"name": "done", "type": "done", "kind": "produced"}],
    "functions": [{"name": "f", "type": "expression", "operation": "${ {f: 1} }"}],
    "states": [{"name": "A", "type": "callback", "action": {"functionRef": "f"}, "eventRef": "go",
        "stateDataFilter": {"output": "${ if .key == \"bad\" then error(\"no\") else . end }"},
        "end": {"produceEvents": [{"eventRef": "done", "data": "${ {key: .key} }"}]}}]}"#;

fn event(id: &str, kind: &str, key: &str) -> CloudEvent {
    let event = serde_json::json!({"specversion": "1.0", "id": id, "source": "/s", "type": kind,
        "data": {"key": key}});
    serde_json::from_value(event).unwrap()
}

/// Carries out effects, and records published events.
struct Bus {
    inner: Service,
    published: Mutex<Vec<CloudEvent>>,
}

#[async_trait]
impl Effects for Bus {
    async fn carry_out(&self, instance: &InstanceId, command: &Command) -> Result<(), Error> {
        self.inner.carry_out(instance, command).await?;
        if let Command::Publish(event) = command {
            self.published.lock().unwrap().push(event.clone());
        }
        Ok(())
    }
}

/// A process, apart from the worker of its world.
struct Process {
    world: World,
    service: Service,
    queue: Arc<MemoryQueue>,
    bus: Arc<Bus>,
}

impl Process {
    fn new(documents: &[&str], settings: Settings) -> Process {
        let world = fixture::world(documents, |_| Mock::Unknown);
        let queue = Arc::new(MemoryQueue::default());
        let mut system = System::from(&world.service);
        system.queue = queue.clone();
        let bus = Arc::new(Bus {
            inner: system.service(),
            published: Mutex::default(),
        });
        let service = system.service_with_turns(fixture::no_calls(), bus.clone(), settings);
        Process {
            world,
            service,
            queue,
            bus,
        }
    }

    fn publish(&mut self, event: &CloudEvent) {
        let (service, event) = (self.service.clone(), event.clone());
        let published = async move { service.publish(&event).await };
        self.world.wait(published).unwrap();
    }

    fn start(&mut self, workflow: &str) -> ScopeRef {
        let (service, start) = (self.service.clone(), fixture::start_of(workflow));
        let started = self.world.wait(async move { service.start(start).await });
        let Started::New(id) = started.unwrap().unwrap() else {
            panic!("it has ended already")
        };
        // Its first turn went with its creation.
        assert_eq!(self.task(), None);
        ScopeRef::root(id)
    }

    fn task(&self) -> Option<ScopeRef> {
        self.queue.pull().now_or_never().map(|task| task.scope)
    }

    /// As a worker does.
    fn drive(&mut self, scope: &ScopeRef) {
        let (driver, scope) = (self.service.driver.clone().unwrap(), scope.clone());
        let driven = async move { driver.drive(&scope).await };
        self.world.wait(driven).unwrap();
    }

    fn statuses(&mut self) -> Vec<Status> {
        let all = self.world.instances().unwrap();
        all.iter().map(|one| one.status).collect()
    }

    /// The keys in the events that were published since.
    fn published(&self) -> Vec<String> {
        let events = std::mem::take(&mut *self.bus.published.lock().unwrap());
        let key = |event: &CloudEvent| event.data.as_ref()?.get("key");
        let keys = events.iter().map(|event| key(event).unwrap().to_text());
        keys.collect()
    }

    /// Whether the event log has an event that was processed.
    fn knows(&mut self, event: &CloudEvent) -> bool {
        let (store, event) = (self.world.store.clone(), event.clone());
        let found = async move {
            let nobody = Listening::new(&[], &[]);
            store.ingest(&event, nobody, Timestamp(0)).await
        };
        self.world.wait(found).unwrap().duplicate
    }
}

#[test]
fn a_produced_event_that_nothing_listens_to_leaves_no_record() {
    let mut process = Process::new(&[RELAY], Settings::default());
    for (kind, is_known) in [("done", false), ("go", true)] {
        let event = event("1", kind, "a");
        let (service, command) = (process.service.clone(), Command::Publish(event.clone()));
        let carried = async move { service.carry_out(&InstanceId::new("i"), &command).await };
        process.world.wait(carried).unwrap();
        assert_eq!(process.knows(&event), is_known, "{kind}");
    }
    // An event from outside is recorded, whether anything listens to it or not.
    let outside = event("2", "done", "a");
    process.publish(&outside);
    assert!(process.knows(&outside));
}

#[test]
fn an_instance_with_events_runs_where_it_is_started() {
    let mut process = Process::new(&[RELAY], Settings::default());
    for _ in 0..2 {
        process.publish(&event("1", "go", "a"));
        assert_eq!(process.statuses(), [Status::Completed]);
        assert_eq!(process.task(), None);
    }
    assert_eq!(process.published(), ["a"], "once");
    let store = process.world.store.clone();
    let left = process.world.wait(async move { store.unflushed(10).await });
    assert_eq!(left.unwrap(), []);
}

/// Its history needs what only a driver records.
#[test]
fn an_instance_whose_history_keeps_events_does_not() {
    let settings = Settings {
        recording: Recording::All,
        ..Settings::default()
    };
    let mut process = Process::new(&[RELAY], settings);
    process.publish(&event("1", "go", "a"));
    assert_eq!(process.statuses(), [Status::Running]);
    let task = process.task().unwrap();
    process.drive(&task);
    assert_eq!(process.published(), ["a"]);
}

#[test]
fn a_waiting_instance_continues_where_its_event_is_processed() {
    let mut process = Process::new(&[WAITS], Settings::default());
    process.start("waits");
    assert_eq!(process.statuses(), [Status::Running]);
    process.publish(&event("1", "go", "a"));
    assert_eq!(process.statuses(), [Status::Completed]);
    assert_eq!(
        (process.task(), process.published()),
        (None, vec!["a".to_owned()])
    );
}

/// Then its task is in the queue, and nothing has happened.
#[test]
fn a_turn_that_fails_is_a_workers() {
    let mut process = Process::new(&[WAITS], Settings::default());
    let root = process.start("waits");
    process.publish(&event("1", "go", "bad"));
    assert_eq!(process.statuses(), [Status::Running]);
    assert_eq!(process.task(), Some(root.clone()));
    process.drive(&root);
    assert_eq!(process.statuses(), [Status::Faulted]);
}

/// Branches are tasks of their own.
#[test]
fn an_instance_that_goes_on_with_branches_is_a_workers() {
    const BRANCHES: &str = r#"{"id": "branches", "version": "1", "specVersion": "0.8",
        "events": [{"name": "go", "type": "go"}],
        "functions": [{"name": "f", "type": "expression", "operation": "${ {f: 1} }"}],
        "states": [
            {"name": "A", "type": "callback", "action": {"functionRef": "f"}, "eventRef": "go", "transition": "B"},
            {"name": "B", "type": "parallel", "end": true, "branches": [
                {"name": "b", "actions": [{"functionRef": "f"}]}]}]}"#;
    let mut process = Process::new(&[BRANCHES], Settings::default());
    let root = process.start("branches");
    process.publish(&event("1", "go", "a"));
    assert_eq!(process.task(), Some(root));
}

/// The world's event log, except that the test decides whether events are awaited.
struct Log {
    inner: Arc<dyn EventLog>,
    awaited: AtomicBool,
}

#[async_trait]
impl EventLog for Log {
    async fn ingest(
        &self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
    ) -> swirl_ports::Result<Ingested> {
        self.inner.ingest(event, listening, at).await
    }

    async fn awaited(
        &self,
        events: &[&CloudEvent],
        _: &Listeners,
    ) -> swirl_ports::Result<Vec<bool>> {
        Ok(vec![self.awaited.load(Ordering::Relaxed); events.len()])
    }

    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> swirl_ports::Result<()> {
        self.inner.acknowledge(event, at).await
    }

    async fn expire(&self, now: Timestamp) -> swirl_ports::Result<Vec<swirl_ports::KeptDropped>> {
        self.inner.expire(now).await
    }

    async fn forget_unconsumed(
        &self,
        workflow: &str,
        listening: Listening<'_>,
    ) -> swirl_ports::Result<u64> {
        self.inner.forget_unconsumed(workflow, listening).await
    }
}

#[test]
fn events_that_only_start_instances_need_no_order() {
    const BOTH: &str = r#"{"id": "both", "version": "1", "specVersion": "0.8",
        "events": [{"name": "one", "type": "one"}, {"name": "two", "type": "two"},
            {"name": "by", "type": "by", "correlation": [{"contextAttributeName": "order"}]}],
        "states": [{"name": "A", "type": "event", "exclusive": false,
            "onEvents": [{"eventRefs": ["one"]}, {"eventRefs": ["two"]}, {"eventRefs": ["by"]}], "end": true}]}"#;
    let mut process = Process::new(&[RELAY, BOTH], Settings::default());
    let log = Arc::new(Log {
        inner: process.service.events.clone(),
        awaited: AtomicBool::new(false),
    });
    process.service.events = log.clone();
    let with = |id: &str, kind: &str, name: &str| {
        let mut event = event(id, kind, "a");
        let value = swirl_model::data!("1");
        event.attributes.insert(name.to_owned(), value);
        event
    };
    let events = [
        event("1", "go", "a"),
        event("2", "go", "a"),
        event("3", "one", "a"),
        event("4", "unknown", "a"),
        with("5", "go", "subject"),
        with("6", "by", "order"),
    ];
    let mut arrived = || {
        let (service, events) = (process.service.clone(), events.clone());
        let arrived = async move {
            let events: Vec<&CloudEvent> = events.iter().collect();
            service.arrived(&events).await
        };
        process.world.wait(arrived).unwrap()
    };
    let shares = |all: &[swirl_service::Arrival], a: usize, b: usize| {
        let keys = all[b].turn_keys();
        all[a].turn_keys().iter().any(|key| keys.contains(key))
    };
    let mut all = arrived();
    let unawaited: Vec<bool> = all.iter().map(|one| one.is_unawaited()).collect();
    assert_eq!(unawaited, [true, true, false, true, false, false]);
    assert!(!shares(&all, 0, 1) && !shares(&all, 0, 2));
    assert!(shares(&all, 0, 0), "a copy waits for the first one");
    // An earlier event of its source hasn't had its turn.
    all[1].in_order();
    assert!(shares(&all, 1, 2) && !shares(&all, 0, 1));
    log.awaited.store(true, Ordering::Relaxed);
    let all = arrived();
    assert!(all.iter().all(|one| !one.is_unawaited()));
    assert!(shares(&all, 0, 1) && shares(&all, 0, 2) && !shares(&all, 0, 4));
}
