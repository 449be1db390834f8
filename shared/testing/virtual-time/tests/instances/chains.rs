//! Instances that start each other without end (`limits.chain`).

use swirl_model::error::names;
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::{Filter, InstanceQueries, Summary};
use swirl_virtual_time::Mock;

use crate::fixture;

/// All instances of a workflow that begins with one, until this time.
fn instances(document: &str, until: Timestamp) -> Vec<Summary> {
    let mut world = fixture::world(&[document], |_| Mock::Unknown);
    fixture::run(&mut world, "w", until);
    let store = world.store.clone();
    let all = Filter {
        limit: 10_000,
        ..Filter::default()
    };
    world.wait(async move { store.list(&all).await }).unwrap()
}

#[test]
fn a_circle_of_continue_as_ends() {
    let circle = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
        {"name": "A", "type": "inject", "data": {}, "end": {"continueAs": "w"}}]}"#;
    let all = instances(circle, Timestamp(3_600_000));
    assert_eq!(all.len(), 1_001);
    let faulted: Vec<&Summary> = all
        .iter()
        .filter(|instance| instance.status != Status::Completed)
        .collect();
    let [last] = faulted[..] else {
        panic!("{faulted:?}")
    };
    let error = last.error.as_ref().unwrap();
    assert_eq!(error.name, names::LIMIT_EXCEEDED, "{error}");
}

/// A circle that waits isn't a loop without a brake: an instance a second may continue for years.
#[test]
fn a_circle_that_waits_goes_on() {
    let circle = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
        {"name": "A", "type": "sleep", "duration": "PT1S", "end": {"continueAs": "w"}}]}"#;
    let all = instances(circle, Timestamp(1_500_500));
    assert_eq!(all.len(), 1_501);
    assert!(all.iter().all(|instance| instance.error.is_none()));
}
