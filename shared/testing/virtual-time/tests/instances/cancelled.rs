//! A cancellation is processed before anything is evaluated: the definition's own computation may be the problem.

use std::sync::Arc;

use futures::FutureExt as _;
use swirl_assembly::System;
use swirl_model::event::{Event, Input};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::{EndStatus, Status};
use swirl_ports::{ExecutionStore as _, InboxItem, InstanceQueries as _};
use swirl_runtime::Settings;
use swirl_service::Started;
use swirl_virtual_time::Mock;

use crate::fixture;

const DOCUMENT: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "inject", "data": {"a": 1}, "end": true}]}"#;

#[test]
fn a_scope_that_must_end_doesnt_begin() {
    let mut world = fixture::world(&[DOCUMENT], |_| Mock::Unknown);
    let mut system = System::from(&world.service).running_inline(false);
    // Nobody else takes from this queue.
    system.queue = Arc::new(swirl_embedded::MemoryQueue::default());
    let service = system.service();
    let started = service.start(fixture::start_of("w")).now_or_never();
    let Started::New(id) = started.unwrap().unwrap().unwrap() else {
        panic!("it has ended already")
    };
    let root = ScopeRef::root(id.clone());
    let cancel = InboxItem::new(Input::Cancel {
        status: EndStatus::Cancelled,
    });
    let added = world.store.add_input(&root, cancel).now_or_never().unwrap();
    assert!(added.unwrap());
    let driver = system.driver(fixture::no_calls(), Arc::new(service), Settings::default());
    driver.drive(&root).now_or_never().unwrap().unwrap();

    assert_eq!(world.instances().unwrap()[0].status, Status::Cancelled);
    let history = world.store.history(&id).now_or_never().unwrap().unwrap();
    let entered = history
        .iter()
        .any(|entry| matches!(entry.event, Event::StateEntered { .. }));
    assert!(!entered, "{history:?}");
}
