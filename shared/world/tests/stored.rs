//! A caller is notified whether its result is stored or given up.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use swirl_model::Data;
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::{CallRequest, Filter, InstanceQueries as _, Storing, Told};
use swirl_service::{Deployment, StartRequest};
use swirl_spec::resource::MapResources;
use swirl_world::{Act, Mock, World};

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
fn told(after_ms: u64) -> (Option<Told>, Status) {
    let all: Arc<Mutex<Vec<Storing>>> = Arc::default();
    let seen = all.clone();
    let answer = move |request: &CallRequest| {
        seen.lock().unwrap().push(request.stored.watch());
        Mock::Answer {
            after_ms,
            result: Ok(Data::object()),
        }
    };
    let unknown = |record: &swirl_ports::DefinitionRecord| Err(record.id.to_string());
    let mut world = World::new(
        Timestamp(0),
        Box::new(unknown),
        Box::new(answer),
        Data::NULL,
    );
    let none = MapResources::default();
    let reading = swirl_spec::read(DOCUMENT.as_bytes(), &none, &Default::default());
    let deployment = Deployment {
        name: "hear".to_owned(),
        document: DOCUMENT.to_owned(),
        resources: Vec::new(),
        workflow: reading.workflow.unwrap(),
    };
    let service = world.service.clone();
    world
        .wait(async move { service.deploy(deployment).await })
        .unwrap();
    let start = StartRequest {
        workflow: "hear".to_owned(),
        input: Data::object(),
        request: "start".to_owned(),
        ..StartRequest::default()
    };
    world
        .run(vec![(Timestamp(0), Act::Start(start))], Timestamp(60_000))
        .unwrap();
    let [storing] = <[Storing; 1]>::try_from(std::mem::take(&mut *all.lock().unwrap())).unwrap();
    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    let store = world.store.clone();
    let rows = world
        .wait(async move { store.list(&filter).await })
        .unwrap();
    // The driver waits until the caller has acted on it: at this moment the result is stored.
    let told = storing.stored().now_or_never().unwrap();
    (told, rows[0].status)
}

#[test]
fn a_result_is_stored_before_its_caller_is_told() {
    let (told, status) = told(1_000);
    assert!(told.is_some());
    assert_eq!(status, Status::Completed);
}

#[test]
fn a_result_that_nobody_waits_for_is_given_up() {
    let (told, status) = told(10_000);
    assert!(told.is_none());
    assert_eq!(status, Status::Completed);
}
