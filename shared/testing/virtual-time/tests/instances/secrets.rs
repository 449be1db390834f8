//! Secrets that are rotated while an instance makes calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::FutureExt as _;
use swirl_assembly::{Calls, System};
use swirl_model::ids::ScopeRef;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, FunctionCaller, Secrets};
use swirl_runtime::{Driven, Settings};
use swirl_service::Started;
use swirl_virtual_time::Mock;

use crate::fixture;

const DOCUMENT: &str = r#"
id: pay
version: "1.0.0"
specVersion: "0.8"
secrets: [key]
functions: [{name: pay, type: rest, operation: "file://shop.json#pay"}]
states:
  - name: Pay
    type: operation
    actions:
      - functionRef: {refName: pay, arguments: {key: "${ $SECRETS.key }"}}
      - functionRef: {refName: pay, arguments: {key: "${ $SECRETS.key }"}}
    end: true
"#;

/// Has another value after each read.
#[derive(Default)]
struct Rotated(AtomicUsize);

#[async_trait]
impl Secrets for Rotated {
    async fn get(&self, _: &[String]) -> Data {
        let reads = self.0.fetch_add(1, Ordering::Relaxed);
        let mut secrets = Data::object();
        secrets.set("key", Data::string(format!("key-{reads}")));
        secrets
    }
}

/// Records the arguments.
#[derive(Default)]
struct Service(Mutex<Vec<String>>);

#[async_trait]
impl FunctionCaller for Service {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        let arguments = request.arguments.to_string();
        self.0.lock().unwrap().push(arguments);
        Ok(Data::object())
    }
}

#[test]
fn each_call_gets_the_current_value() {
    let world = fixture::world(&[DOCUMENT], |_| Mock::Unknown);
    let mut system = System::from(&world.service);
    system.queue = Arc::new(swirl_embedded::MemoryQueue::default());
    let service = Arc::new(Service::default());
    let calls = Calls {
        caller: service.clone(),
        secrets: Arc::new(Rotated::default()),
    };
    let driver = system.driver(calls, Arc::new(system.service()), Settings::default());
    let starts = system.service();
    let start = starts.start(fixture::start_of("pay"));
    let Started::New(id) = start.now_or_never().unwrap().unwrap().unwrap() else {
        panic!("it has ended already")
    };
    let stop = std::future::pending();
    let root = ScopeRef::root(id);
    let driving = driver.drive_task(&root, stop, None, || ());
    let driven = driving.now_or_never().unwrap().unwrap();
    assert!(matches!(driven, Driven::Done));
    let keys = service.0.lock().unwrap().clone();
    assert_eq!(keys, [r#"{"key":"key-0"}"#, r#"{"key":"key-1"}"#]);
}
