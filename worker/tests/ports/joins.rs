//! Which process joins a fork: the worker, or a coordinator that it sends a message to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use swirl_assembly::System;
use swirl_embedded::{Embedded, Options};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Status;
use swirl_ports::{InstanceRecords, JoinLimits, Queue, Task};
use swirl_runtime::{Driver, Settings};
use swirl_servers::eventually;
use swirl_worker::pool;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::pool::Source;
use crate::rig::{nobody, service, started};

/// Three results, and a state after them. `"more"` is replaced by further members.
const WIDE: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "name": "w", "start": "A", "more": 0,
    "functions": [{"name": "f", "type": "expression", "operation": ".n"}],
    "states": [
        {"name": "A", "type": "parallel", "transition": "B", "branches": [
            {"name": "1", "actions": [{"functionRef": "f", "actionDataFilter": {"toStateData": ".a"}}]},
            {"name": "2", "actions": [{"functionRef": "f", "actionDataFilter": {"toStateData": ".b"}}]},
            {"name": "3", "actions": [{"functionRef": "f", "actionDataFilter": {"toStateData": ".c"}}]}]},
        {"name": "B", "type": "inject", "data": {"done": true}, "end": true}]}"#;

fn with(more: &str) -> String {
    WIDE.replace(r#""more": 0"#, more)
}

/// Keeps tasks and join messages separate.
struct Two {
    tasks: UnboundedSender<Task>,
    joins: UnboundedSender<ScopeRef>,
    count: AtomicUsize,
}

#[async_trait]
impl Queue for Two {
    async fn push(&self, tasks: Vec<ScopeRef>) {
        for scope in tasks {
            self.tasks.send(scope.into()).unwrap();
        }
    }

    async fn push_joins(&self, scopes: Vec<ScopeRef>) {
        for scope in scopes {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.joins.send(scope).unwrap();
        }
    }
}

/// How join messages are handled.
#[derive(Clone, Copy, PartialEq)]
enum Coordinator {
    Joins,
    JoinsTwice,
    /// The first message is lost, and the reconciler finds its scope.
    Loses,
}

async fn coordinate(
    driver: Driver,
    mut joins: UnboundedReceiver<ScopeRef>,
    coordinator: Coordinator,
) {
    let mut is_lost = coordinator == Coordinator::Loses;
    while let Some(scope) = joins.recv().await {
        if std::mem::take(&mut is_lost) {
            driver.queue.push_late(vec![scope]).await;
            continue;
        }
        driver.join(&scope, None).await.unwrap();
        if coordinator == Coordinator::JoinsTwice {
            driver.join(&scope, None).await.unwrap();
        }
    }
}

/// Returns the number of join messages.
async fn joins(document: &str, coordinators_join: bool, coordinator: Coordinator) -> usize {
    let limits = JoinLimits {
        results: 2,
        bytes: 1_000_000,
    };
    let store = Arc::new(Embedded::memory_with(Options {
        join_limits: Some(limits),
        ..Options::default()
    }));
    let (tasks, pulled) = unbounded_channel();
    let (sent, received) = unbounded_channel();
    let queue = Arc::new(Two {
        tasks,
        joins: sent,
        count: AtomicUsize::new(0),
    });
    let service = service(&store, queue.clone());
    let id = started(&service, document).await;
    let driver = |coordinators_join| {
        let settings = Settings {
            coordinators_join,
            local_handoff: usize::from(coordinators_join),
            ..Settings::default()
        };
        let effects = Arc::new(service.clone());
        System::from(&service).driver(nobody(), effects, settings)
    };
    let worker = Arc::new(driver(coordinators_join));
    let coordinator = tokio::spawn(coordinate(driver(false), received, coordinator));
    let stop = eventually("its end", async || {
        let instance = store.instance(&id).await.unwrap().unwrap();
        instance.state.status.ended().then_some(())
    });
    let source = Arc::new(Source(Mutex::new(pulled)));
    let settings = pool::Settings::default();
    assert_eq!(pool::run(worker, source, settings, stop).await, 0);
    let instance = store.instance(&id).await.unwrap().unwrap();
    assert_eq!(instance.state.status, Status::Completed);
    let output = serde_json::to_value(instance.state.output).unwrap();
    assert_eq!(output["done"], true, "{output}");
    assert!(!coordinator.is_finished(), "it has stopped");
    coordinator.abort();
    queue.count.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_coordinator_joins_forks_that_exceed_the_limits() {
    let document = with(r#""description": "three results""#);
    assert_eq!(joins(&document, true, Coordinator::Joins).await, 1);
    assert_eq!(joins(&document, true, Coordinator::JoinsTwice).await, 1);
}

/// The worker that drives the late scope sends another message.
#[tokio::test]
async fn a_lost_message_is_sent_again() {
    let document = with(r#""description": "three results""#);
    assert_eq!(joins(&document, true, Coordinator::Loses).await, 2);
}

#[tokio::test]
async fn a_process_without_coordinators_joins_forks_itself() {
    let document = with(r#""description": "three results""#);
    assert_eq!(joins(&document, false, Coordinator::Joins).await, 0);
}

/// Coordinators have no secrets.
#[tokio::test]
async fn forks_of_definitions_with_secrets_are_joined_by_workers() {
    let document = with(r#""secrets": ["KEY"]"#);
    assert_eq!(joins(&document, true, Coordinator::Joins).await, 0);
}
