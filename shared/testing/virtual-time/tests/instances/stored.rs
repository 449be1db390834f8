//! A caller is notified whether its result is stored or given up.

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use swirl_model::Data;
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::{CallRequest, Filter, InstanceQueries as _, StoredAck, StoredWatch};
use swirl_virtual_time::Mock;

use crate::fixture;

const DOCUMENT: &str = r#"
id: hear
version: "1.0.0"
specVersion: "0.8"
functions: [{name: hear, type: rest, operation: "file://shop.json#hear"}]
errors: [{name: Late, code: timeout}]
states:
  - name: Hear
    type: operation
    actions: [{functionRef: hear}]
    timeouts: {actionExecTimeout: PT5S}
    onErrors: [{errorRef: Late, end: true}]
    end: true
"#;

/// The notification for an answer that takes this long, and the status of the instance at that moment.
fn run_with_answer_after(after_ms: u64) -> (Option<StoredAck>, Status) {
    let all: Arc<Mutex<Vec<StoredWatch>>> = Arc::default();
    let seen = all.clone();
    let answer = move |request: &CallRequest| {
        seen.lock().unwrap().push(request.stored.watch());
        Mock::Answer {
            after_ms,
            result: Ok(Data::object()),
        }
    };
    let mut world = fixture::world(&[DOCUMENT], answer);
    fixture::run(&mut world, "hear", Timestamp(60_000));
    let [watch] = <[StoredWatch; 1]>::try_from(std::mem::take(&mut *all.lock().unwrap())).unwrap();
    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    let store = world.store.clone();
    let rows = world
        .wait(async move { store.list(&filter).await })
        .unwrap();
    // The driver waits until the caller has acted on it: at this moment the result is stored.
    let ack = watch.stored().now_or_never().unwrap();
    (ack, rows[0].status)
}

#[test]
fn a_result_is_stored_before_its_caller_is_notified() {
    let (ack, status) = run_with_answer_after(1_000);
    assert!(ack.is_some());
    assert_eq!(status, Status::Completed);
}

#[test]
fn a_result_that_nobody_waits_for_is_given_up() {
    let (ack, status) = run_with_answer_after(10_000);
    assert!(ack.is_none());
    assert_eq!(status, Status::Completed);
}
