//! What a slow machine takes long for.

use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::{Filter, InstanceQueries};
use swirl_virtual_time::{Act, Mock, WorldError};

use crate::fixture;

/// Unoptimised, it takes more than the two seconds that a worker allows. Steps decide in virtual time, so a run has the
/// same history on any machine.
#[test]
fn steps_decide_not_time() {
    let ends = |count: u32| {
        let document = format!(
            r#"{{"id": "w", "version": "1", "specVersion": "0.8", "states": [
            {{"name": "A", "type": "inject", "data": {{}}, "end": true,
              "stateDataFilter": {{"output": "${{ {{n: (reduce range({count}) as $i (0; . + $i))}} }}"}}}}]}}"#
        );
        let mut world = fixture::world(&[&document], |_| Mock::Unknown);
        fixture::run(&mut world, "w", Timestamp(1_000));
        let store = world.store.clone();
        let one = Filter {
            limit: 1,
            ..Filter::default()
        };
        let all = world.wait(async move { store.list(&one).await }).unwrap();
        (all[0].status, all[0].error.clone())
    };
    assert_eq!(ends(1_000_000), (Status::Completed, None));
    let (status, error) = ends(100_000_000);
    assert_eq!(status, Status::Faulted);
    let message = error.unwrap().to_string();
    assert!(message.contains("steps"), "{message}");
}

/// A retry without a limit, or a loop that waits, would go on for a year of virtual time, and for hours of real time.
#[test]
fn a_run_that_never_ends_is_stopped() {
    let document = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
        {"name": "A", "type": "sleep", "duration": "PT1S", "transition": "A"}]}"#;
    let mut world = fixture::world(&[document], |_| Mock::Unknown);
    world.advances_max = 100;
    let start = Act::Start(fixture::start_of("w"));
    let ran = world.run(vec![(Timestamp(0), start)], Timestamp(200_000));
    let Err(WorldError::TooLong { steps, at }) = ran else {
        panic!("{ran:?}");
    };
    assert_eq!((steps, at), (101, Timestamp(101_000)));
}
