//! Inputs that arrive during a call, at the same time as its answer: the inputs are processed first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures::executor::block_on;
use swirl_assembly::{Calls, System};
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_engine::{Definition, NewInstance, new_instance};
use swirl_model::event::Input;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, Status};
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::{
    CallRequest, Clock, ExecutionStore, FunctionCaller, InboxItem, InstanceRecords, NewRecords,
    Secrets,
};
use swirl_runtime::{Driver, Registry, Settings};
use swirl_spec::resource::MapResources;

const DOCUMENT: &str = r#"
id: w
version: '1'
specVersion: '0.8'
functions: [{name: f, operation: 'http://localhost/openapi.json#f'}]
states:
  - {name: A, type: operation, actions: [{functionRef: f}], end: true}
"#;

#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    Suspend,
    Cancel,
}

/// Acts on the instance, and then answers without ever waiting.
struct Caller {
    store: OnceLock<Arc<Embedded>>,
    meanwhile: Meanwhile,
    calls: AtomicUsize,
}

#[async_trait]
impl FunctionCaller for Caller {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let store = self.store.get().unwrap();
        match self.meanwhile {
            Meanwhile::Suspend => {
                let id = &request.scope.instance;
                store.suspend(id, true, None).await.unwrap();
            }
            Meanwhile::Cancel => {
                let status = EndStatus::Cancelled;
                let item = InboxItem::new(Input::Cancel { status });
                store.add_input(&request.scope, item).await.unwrap();
            }
        }
        Ok(data!({"answer": 42}))
    }
}

struct Nothing;

#[async_trait]
impl Secrets for Nothing {
    async fn get(&self, _names: &[String]) -> Data {
        Data::object()
    }
}

fn definition() -> Arc<Definition> {
    let reading = swirl_spec::read(
        DOCUMENT.as_bytes(),
        &MapResources::default(),
        &Default::default(),
    );
    let workflow = reading.workflow;
    Definition::compile(workflow.unwrap_or_else(|| panic!("{:?}", reading.diagnostics))).unwrap()
}

struct World {
    store: Arc<Embedded>,
    caller: Arc<Caller>,
    driver: Driver,
    id: InstanceId,
}

/// An instance that has been driven as far as possible.
fn driven(meanwhile: Meanwhile) -> World {
    let store = Arc::new(Embedded::memory());
    let caller = Arc::new(Caller {
        store: OnceLock::from(store.clone()),
        meanwhile,
        calls: AtomicUsize::new(0),
    });
    let clock = Arc::new(SystemClock);
    let registry = Arc::new(Registry::new(
        store.clone(),
        Box::new(|_| Err("cached".to_owned())),
    ));
    let definition = definition();
    registry.insert(definition.clone(), "", 0);
    let queue = Arc::new(MemoryQueue::default());
    let system = System::new(store.clone(), store.clone(), queue, clock.clone(), registry);
    let calls = Calls {
        caller: caller.clone(),
        secrets: Arc::new(Nothing),
    };
    let driver = system.driver(calls, Arc::new(system.service()), Settings::default());
    let id = InstanceId::new("i");
    let new = NewInstance {
        input: data!({}),
        ..NewInstance::default()
    };
    let (header, root) = new_instance(&definition, id.clone(), new, clock.now()).unwrap();
    block_on(async {
        let records = NewRecords {
            header,
            root,
            ends_with_parent: false,
            watched: false,
            first_turn: None,
        };
        store.create(records).await.unwrap();
        driver.drive(&ScopeRef::root(id.clone())).await.unwrap();
    });
    World {
        store,
        caller,
        driver,
        id,
    }
}

impl World {
    fn status(&self) -> Status {
        let found = block_on(self.store.instance(&self.id)).unwrap().unwrap();
        found.state.status
    }
}

#[test]
fn the_answer_of_a_suspended_instance_is_kept() {
    let world = driven(Meanwhile::Suspend);
    assert_eq!(world.status(), Status::Running);
    let woken = block_on(world.store.suspend(&world.id, false, None)).unwrap();
    let root = ScopeRef::root(world.id.clone());
    assert_eq!(woken.unwrap().wake, std::slice::from_ref(&root));
    block_on(world.driver.drive(&root)).unwrap();
    assert_eq!(world.status(), Status::Completed);
    let calls = world.caller.calls.load(Ordering::SeqCst);
    assert_eq!(calls, 1, "the call is not made again");
    let found = block_on(world.store.instance(&world.id)).unwrap().unwrap();
    assert_eq!(found.state.output, Some(data!({"answer": 42})));
}

#[test]
fn a_cancellation_comes_before_the_answer() {
    let world = driven(Meanwhile::Cancel);
    assert_eq!(world.status(), Status::Cancelled);
}
