//! The document of a deleted definition is freed.

use swirl_model::CloudEvent;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_ports::{DefinitionRecord, Definitions, EventLog, ExecutionStore, Listening};
use swirl_service::{Deletion, Deployed};
use swirl_virtual_time::{Act, Mock, World};

use crate::fixture;

const DOCUMENT: &str = "{id: once, version: '1', specVersion: '0.8', \
                        states: [{name: A, type: inject, data: {}, end: true}]}";

/// Events for it are kept.
const WAITS: &str = r#"{"id": "waits", "version": "1", "specVersion": "0.8",
    "events": [{"name": "paid", "type": "paid", "correlation": [{"contextAttributeName": "order"}]}],
    "functions": [{"name": "f", "type": "expression", "operation": "${ {f: 1} }"}],
    "states": [{"name": "A", "type": "callback", "action": {"functionRef": "f"}, "eventRef": "paid", "end": true}]}"#;

/// Starts with both events.
const COLLECTS: &str = r#"{"id": "once", "version": "0", "specVersion": "0.8",
    "events": [
        {"name": "paid", "type": "paid", "correlation": [{"contextAttributeName": "order"}]},
        {"name": "sent", "type": "sent", "correlation": [{"contextAttributeName": "order"}]}],
    "states": [{"name": "A", "type": "event", "exclusive": false,
        "onEvents": [{"eventRefs": ["paid", "sent"], "actions": []}], "end": true}]}"#;

fn id() -> DefinitionId {
    id_of("once")
}

fn id_of(workflow: &str) -> DefinitionId {
    DefinitionId {
        workflow: workflow.into(),
        version: "1".into(),
    }
}

/// The record after a round of freeing at this time.
fn record_at(world: &mut World, ms: i64) -> DefinitionRecord {
    record_of(world, id(), ms)
}

fn record_of(world: &mut World, id: DefinitionId, ms: i64) -> DefinitionRecord {
    world.clock.set(Timestamp(ms));
    let (service, store) = (world.service.clone(), world.store.clone());
    let freed = async move { service.free_deleted(&*store).await };
    world.wait(freed).unwrap();
    let store = world.store.clone();
    let found = world.wait(async move { Definitions::get(&*store, &id).await });
    found.unwrap().unwrap()
}

fn deploy(world: &mut World, document: &str) -> Deployed {
    let (service, deployment) = (world.service.clone(), fixture::deployment(document));
    let deployed = async move { service.deploy(deployment).await };
    world.wait(deployed).unwrap()
}

#[test]
fn the_document_of_a_deleted_definition_is_freed_after_its_last_instance() {
    let mut world = fixture::world(&[DOCUMENT], |_| Mock::Never);
    fixture::run(&mut world, "once", Timestamp(1_000));
    assert_eq!(record_at(&mut world, 500_000).document, DOCUMENT);
    let (service, store) = (world.service.clone(), world.store.clone());
    let deleted = async move { service.delete(&*store, &id(), false).await };
    assert_eq!(world.wait(deleted).unwrap(), Deletion::Deleted(0));
    // The page of the instance that has ended shows its definition.
    assert_eq!(record_at(&mut world, 900_000).document, DOCUMENT);
    let instance = world.instances().unwrap()[0].header.id.clone();
    let store = world.store.clone();
    world
        .wait(async move { store.remove(&instance).await })
        .unwrap();
    let freed = record_at(&mut world, 1_000_000);
    assert_eq!((&*freed.document, freed.resources.len()), ("", 0));
    // Its id and version still mean the same.
    let other = DOCUMENT.replace("inject, data: {}", "sleep, duration: PT1S");
    assert_eq!(deploy(&mut world, &other), Deployed::Conflict(id()));
    assert_eq!(deploy(&mut world, DOCUMENT), Deployed::New(id()));
    assert_eq!(record_at(&mut world, 2_000_000).document, DOCUMENT);
    fixture::run(&mut world, "once", Timestamp(2_001_000));
    assert_eq!(world.instances().unwrap().len(), 1);
}

#[test]
fn a_definition_that_was_just_deleted_may_still_get_an_instance() {
    let mut world = fixture::world(&[DOCUMENT], |_| Mock::Never);
    let (service, store) = (world.service.clone(), world.store.clone());
    let deleted = async move { service.delete(&*store, &id(), false).await };
    world.wait(deleted).unwrap();
    assert_eq!(record_at(&mut world, 60_000).document, DOCUMENT);
    assert_eq!(record_at(&mut world, 200_000).document, "");
}

#[test]
fn events_that_an_older_version_collected_go_with_a_newer_one_that_collects_none() {
    let newer = COLLECTS.replace("\"version\": \"0\"", "\"version\": \"0.5\"");
    let left = [newer.as_str(), DOCUMENT].map(|deployed| {
        let mut world = fixture::world(&[COLLECTS], |_| Mock::Never);
        let event = serde_json::json!({"specversion": "1.0", "id": "1", "source": "/s", "type": "paid", "order": "7"});
        let event: CloudEvent = serde_json::from_value(event).unwrap();
        let plan = vec![(Timestamp(1_000), Act::Event(event))];
        world.run(plan, Timestamp(2_000)).unwrap();
        assert!(matches!(deploy(&mut world, deployed), Deployed::New(_)));
        let store = world.store.clone();
        let nothing = Listening::new(&[], &[]);
        let forgotten = world.wait(async move { store.forget_unconsumed("once", nothing).await });
        forgotten.unwrap()
    });
    // The older version's instances may still wait for the event.
    assert_eq!(left[0], left[1] + 1, "{left:?}");
}

#[test]
fn kept_events_of_a_deleted_definition_go_after_its_last_instance() {
    let mut world = fixture::world(&[WAITS], |_| Mock::Never);
    fixture::run(&mut world, "waits", Timestamp(1_000));
    let (service, store) = (world.service.clone(), world.store.clone());
    let deleted = async move { service.delete(&*store, &id_of("waits"), true).await };
    assert_eq!(world.wait(deleted).unwrap(), Deletion::Deleted(1));
    let record = record_of(&mut world, id_of("waits"), 200_000);
    assert!(record.deleted.unwrap().in_use);
    let event = serde_json::json!({"specversion": "1.0", "id": "1", "source": "/s", "type": "paid", "order": "7"});
    let event: CloudEvent = serde_json::from_value(event).unwrap();
    let plan = vec![(Timestamp(201_000), Act::Event(event))];
    world.run(plan, Timestamp(202_000)).unwrap();
    let record = record_of(&mut world, id_of("waits"), 300_000);
    assert!(!record.deleted.unwrap().in_use);
    let store = world.store.clone();
    let nothing = Listening::new(&[], &[]);
    let left = world.wait(async move { store.forget_unconsumed("waits", nothing).await });
    assert_eq!(left.unwrap(), 0);
}
