//! Scopes that wait until fewer are active.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::channel::oneshot;
use swirl_assembly::System;
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Status;
use swirl_runtime::{Driven, Settings, Shares};
use swirl_service::Started;
use swirl_virtual_time::Mock;

use crate::fixture;

const DOCUMENT: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "inject", "data": {"a": 1}, "end": true}]}"#;

/// A process that stops gives back what waits in it: the next one needn't wait for the lease to end.
#[test]
fn a_scope_that_waits_is_given_back_at_a_stop() {
    let mut world = fixture::world(&[DOCUMENT], |_| Mock::Unknown);
    let mut system = System::from(&world.service).running_inline(false);
    // Nobody else takes from this queue.
    system.queue = Arc::new(swirl_embedded::MemoryQueue::default());
    let service = system.service();
    let starting = service.clone();
    let started = world.wait(async move { starting.start(fixture::start_of("w")).await });
    let Started::New(id) = started.unwrap().unwrap() else {
        panic!("it has ended already")
    };
    let root = ScopeRef::root(id);
    let effects = Arc::new(service);
    let mut driver = system.driver(fixture::no_calls(), effects, Settings::default());
    let activity = Shares::equal(1);
    driver.activity = Some(activity.clone());
    let other = activity.enter(&"other".into()).now_or_never().unwrap();

    let (stop, stopped) = oneshot::channel::<()>();
    let mut driving = Box::pin(driver.drive_until(&root, stopped.map(|_| ())));
    assert!(driving.as_mut().now_or_never().is_none(), "it is active");
    stop.send(()).unwrap();
    let driven = driving.now_or_never().unwrap();
    assert_eq!(driven.unwrap(), Driven::Stopped);
    assert_eq!(world.instances().unwrap()[0].status, Status::Running);

    drop(other);
    let driven = driver.drive_until(&root, std::future::pending());
    assert_eq!(driven.now_or_never().unwrap().unwrap(), Driven::Done);
    assert_eq!(world.instances().unwrap()[0].status, Status::Completed);
}
