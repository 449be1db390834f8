//! Starts by other instances that wait for the rate of their workflow (`limits.pending_starts`).

use std::sync::Arc;

use futures::FutureExt as _;
use swirl_assembly::System;
use swirl_embedded::{Embedded, MemoryQueue};
use swirl_model::error::names;
use swirl_model::event::Event;
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::{
    Clock as _, DefinitionRecord, ExecutionStore as _, Filter, InstanceQueries as _,
    PendingStartsMax, Summary, Tasks as _,
};
use swirl_runtime::{Driver, Registry, Settings, StartLimits};
use swirl_service::{Service, StartRequest};
use swirl_virtual_time::{Mock, World};

use crate::fixture;

/// How many starts of a workflow may wait.
const PENDING_MAX: usize = 30;
/// Instances of each workflow in a second, from the fifth of a chain on; ten times as many may come at once.
const RATE: u32 = 2;

/// Each instance starts two more, and waits for neither.
const SUB_WORKFLOWS: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "operation", "end": true, "actions": [
        {"subFlowRef": {"workflowId": "w", "invoke": "async", "onParentComplete": "continue"}},
        {"subFlowRef": {"workflowId": "w", "invoke": "async", "onParentComplete": "continue"}}]}]}"#;

/// The same, but the second one continues it.
const CONTINUATIONS: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "operation", "end": {"continueAs": "w"}, "actions": [
        {"subFlowRef": {"workflowId": "w", "invoke": "async", "onParentComplete": "continue"}}]}]}"#;

/// The same by events.
const EVENTS: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "events": [
        {"name": "again", "type": "again", "source": "/test"},
        {"name": "said", "type": "again", "source": "/test", "kind": "produced"}],
    "states": [{"name": "A", "type": "event", "onEvents": [{"eventRefs": ["again"], "actions": []}],
        "end": {"produceEvents": [{"eventRef": "said"}, {"eventRef": "said"}]}}]}"#;

/// Starts the workflow that doubles itself.
const FIRST: &str = r#"{"id": "first", "version": "1", "specVersion": "0.8", "events": [
        {"name": "said", "type": "again", "source": "/test", "kind": "produced"}],
    "states": [{"name": "A", "type": "inject", "data": {}, "end": {"produceEvents": [{"eventRef": "said"}]}}]}"#;

/// An ordinary workflow: it starts one instance, and waits for another.
const HONEST: &str = r#"{"id": "honest", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "operation", "end": true, "actions": [
        {"subFlowRef": {"workflowId": "helper", "invoke": "async", "onParentComplete": "continue"}},
        {"subFlowRef": "helper"}]}]}"#;
const HELPER: &str = r#"{"id": "helper", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "inject", "data": {}, "end": true}]}"#;

/// A process whose limits are low, in virtual time.
struct Process {
    world: World,
    store: Arc<Embedded>,
    queue: Arc<MemoryQueue>,
    service: Service,
    driver: Driver,
}

impl Process {
    fn new(documents: &[&str]) -> Process {
        let world = fixture::world(&[], |_| Mock::Unknown);
        let store = world.store.clone();
        let limits = StartLimits {
            runaway: RATE,
            chained: 2 * RATE,
            pending: PendingStartsMax {
                workflow: PENDING_MAX as u32,
                all: 0,
            },
            ..StartLimits::default()
        };
        let unknown = Box::new(|record: &DefinitionRecord| Err(record.id.to_string()));
        let mut system = System::from(&world.service);
        system.registry = Arc::new(Registry::new(store.clone(), unknown).starting(limits));
        let queue = Arc::new(MemoryQueue::default());
        system.queue = queue.clone();
        let service = system.service();
        let effects = Arc::new(service.clone());
        let driver = system.driver(fixture::no_calls(), effects, Settings::default());
        for document in documents {
            let deployed = service.deploy(fixture::deployment(document));
            deployed.now_or_never().unwrap().unwrap();
        }
        Process {
            world,
            store,
            queue,
            service,
            driver,
        }
    }

    fn start(&self, workflow: &str, request: u32) {
        let request = StartRequest {
            request: request.to_string(),
            ..fixture::start_of(workflow)
        };
        let started = self.service.start(request).now_or_never().unwrap();
        started.unwrap().unwrap();
    }

    /// All that can happen in a second.
    fn live_a_second(&self) {
        while let Some(task) = self.queue.pull().now_or_never() {
            let driven = self.driver.drive(&task.scope);
            driven.now_or_never().unwrap().unwrap();
        }
        let swept = self.service.sweep(&self.service);
        swept.now_or_never().unwrap().unwrap();
        self.world
            .clock
            .set(Timestamp(self.world.clock.now().0 + 1_000));
    }

    fn waiting(&self) -> usize {
        let waiting = self.store.unflushed(100_000).now_or_never().unwrap();
        waiting.unwrap().len()
    }

    fn instances(&self, workflow: &str) -> Vec<Summary> {
        let filter = Filter {
            workflow: Some(workflow.into()),
            limit: 100_000,
            ..Filter::default()
        };
        self.store.list(&filter).now_or_never().unwrap().unwrap()
    }

    /// How often the histories of a workflow's instances say that a start was refused.
    fn refused(&self, workflow: &str) -> usize {
        let all = self.instances(workflow);
        let histories = all.iter().map(|instance| {
            let history = self.store.history(&instance.header.id);
            history.now_or_never().unwrap().unwrap()
        });
        let refused = |event: &Event| match event {
            Event::StartRefused { workflow, error } => {
                assert_eq!(&**workflow, "w");
                error.name == names::LIMIT_EXCEEDED
            }
            _ => false,
        };
        histories
            .flatten()
            .filter(|entry| refused(&entry.event))
            .count()
    }
}

/// Runs the workflow that doubles itself for two minutes, with an ordinary instance each second.
fn double(document: &str, first: &str) -> Process {
    let process = Process::new(&[document, FIRST, HONEST, HELPER]);
    process.start(first, 0);
    let mut waiting_max = 0;
    for second in 1..=120 {
        process.start("honest", second);
        process.live_a_second();
        waiting_max = waiting_max.max(process.waiting());
    }
    // One instance may wait with two effects of which one is refused.
    assert!(waiting_max >= PENDING_MAX, "{waiting_max}");
    assert!(waiting_max <= PENDING_MAX + 1, "{waiting_max}");
    // The waiting starts continue at the permitted rate.
    let begun = process.instances("w").len();
    for _ in 0..10 {
        process.live_a_second();
    }
    let more = process.instances("w").len() - begun;
    assert!(
        more >= 10 * RATE as usize && more <= 20 * RATE as usize,
        "{more}"
    );
    for honest in process.instances("honest") {
        assert_eq!(honest.status, Status::Completed);
    }
    assert_eq!(process.instances("helper").len(), 240);
    assert_eq!(process.refused("honest"), 0);
    process
}

#[test]
fn sub_workflows_that_double_wait_in_bounded_number() {
    let process = double(SUB_WORKFLOWS, "w");
    let refused = process.refused("w");
    assert!(refused > 100, "{refused}");
    let counted = process.service.registry.rates().put_off().refused();
    assert_eq!(counted, refused as u64);
}

#[test]
fn events_that_double_wait_in_bounded_number() {
    let process = double(EVENTS, "first");
    assert!(process.refused("w") > 100);
}

/// An instance that cannot continue as another one faults.
#[test]
fn continuations_that_double_wait_in_bounded_number() {
    let process = double(CONTINUATIONS, "w");
    let faulted: Vec<Summary> = process
        .instances("w")
        .into_iter()
        .filter(|instance| instance.status == Status::Faulted)
        .collect();
    assert!(!faulted.is_empty());
    for instance in faulted {
        assert_eq!(instance.error.unwrap().name, names::LIMIT_EXCEEDED);
    }
}
