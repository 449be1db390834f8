//! The reconciler beside effects that wait.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use swirl_assembly::System;
use swirl_model::event::Command;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_ports::{ExecutionStore as _, Tasks as _};
use swirl_runtime::{Effects, Error};
use swirl_service::Started;
use swirl_virtual_time::Mock;

use crate::fixture;

const DOCUMENT: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "sleep", "duration": "PT1H", "end": true}]}"#;

/// Another system doesn't answer.
struct Stuck;

#[async_trait]
impl Effects for Stuck {
    async fn carry_out(&self, _: &InstanceId, _: &Command) -> Result<(), Error> {
        std::future::pending().await
    }
}

/// Another system doesn't answer the first time.
#[derive(Default)]
struct StuckFirst(AtomicUsize);

#[async_trait]
impl Effects for StuckFirst {
    async fn carry_out(&self, _: &InstanceId, _: &Command) -> Result<(), Error> {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            return std::future::pending().await;
        }
        Ok(())
    }
}

#[test]
fn an_effect_that_waits_holds_up_no_other() {
    let mut world = fixture::world(&[DOCUMENT], |_| Mock::Unknown);
    let (service, store) = (world.service.clone(), world.store.clone());
    world.wait(async move {
        for request in ["one", "other", "third"] {
            let mut start = fixture::start_of("w");
            start.request = request.to_owned();
            let Started::New(id) = service.start(start).await.unwrap().unwrap() else {
                panic!("it has ended already")
            };
            store.suspend(&id, true, None).await.unwrap();
        }
    });
    let effects = StuckFirst::default();
    assert!(world.service.sweep(&effects).now_or_never().is_none());
    assert_eq!(effects.0.load(Ordering::Relaxed), 3);
    let store = world.store.clone();
    let left = world.wait(async move { store.unflushed(10).await.unwrap().len() });
    assert_eq!(left, 1);
}

#[test]
fn effects_that_wait_hold_up_no_scopes() {
    let mut world = fixture::world(&[DOCUMENT], |_| Mock::Unknown);
    let mut system = System::from(&world.service).running_inline(false);
    // The task is lost: nobody takes from this queue.
    let queue = Arc::new(swirl_embedded::MemoryQueue::default());
    system.queue = Arc::new(swirl_embedded::MemoryQueue::default());
    let service = system.service();
    let started = world.wait(async move { service.start(fixture::start_of("w")).await });
    let Started::New(id) = started.unwrap().unwrap() else {
        panic!("it has ended already")
    };
    // A suspension leaves an effect: its sub-workflows are suspended, too.
    let mut request = fixture::start_of("w");
    request.request = "other".to_owned();
    let (service, store) = (world.service.clone(), world.store.clone());
    world.wait(async move {
        let other = service.start(request).await.unwrap().unwrap();
        let Started::New(other) = other else {
            panic!("it has ended already")
        };
        store.suspend(&other, true, None).await.unwrap();
        assert_eq!(store.unflushed(10).await.unwrap().len(), 1);
    });

    system.queue = queue.clone();
    let service = system.service();
    let reconciling = pin!(service.run_reconciler(&Stuck, Duration::from_secs(2)));
    assert!(reconciling.now_or_never().is_none());
    let found = queue.pull().now_or_never().map(|task| task.scope);
    assert_eq!(found, Some(ScopeRef::root(id)));
}
