//! A service on the embedded store, and definitions and instances in it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use swirl_assembly::{Calls, System};
use swirl_embedded::{Embedded, SystemClock};
use swirl_engine::Definition;
use swirl_model::ids::InstanceId;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, FunctionCaller, InstanceRecords, Queue, Secrets};
use swirl_runtime::Registry;
use swirl_service::{Deployment, Service, StartRequest, Started};

const LONG: Duration = Duration::from_secs(600);

pub struct Nobody;

#[async_trait]
impl FunctionCaller for Nobody {
    async fn call(&self, _: CallRequest) -> Result<Data, WorkflowError> {
        Err(WorkflowError::new("Nobody", "nothing is called"))
    }
}

#[async_trait]
impl Secrets for Nobody {
    async fn get(&self, _: &[String]) -> Data {
        Data::object()
    }
}

pub fn service(store: &Arc<Embedded>, queue: Arc<dyn Queue>) -> Service {
    let lower = Box::new(|_: &_| Err("all definitions are compiled".to_owned()));
    let registry = Arc::new(Registry::new(store.clone(), lower));
    let clock = Arc::new(SystemClock);
    System::new(store.clone(), store.clone(), queue, clock, registry)
        .running_inline(false)
        .service()
}

pub fn nobody() -> Calls {
    Calls {
        caller: Arc::new(Nobody),
        secrets: Arc::new(Nobody),
    }
}

pub async fn deploy(service: &Service, document: &str) {
    let none = swirl_spec::resource::MapResources::default();
    let reading = swirl_spec::read(document.as_bytes(), &none, &Default::default());
    let workflow = reading.workflow.expect(document);
    let definition = Definition::compile(workflow.clone()).unwrap();
    service.registry.insert(definition, "", 0);
    let deployment = Deployment {
        name: String::new(),
        document: document.to_owned(),
        resources: Vec::new(),
        workflow,
    };
    service.deploy(deployment).await.unwrap();
}

pub async fn start(service: &Service, workflow: &str, request: u32) -> InstanceId {
    let request = StartRequest {
        workflow: workflow.to_owned(),
        input: Data::object(),
        request: format!("{workflow} {request}"),
        ..StartRequest::default()
    };
    match service.start(request).await.unwrap() {
        Ok(Started::New(id)) => id,
        other => panic!("{other:?}"),
    }
}

pub async fn ended(store: &Embedded, id: &InstanceId) {
    let ends = async {
        while !store
            .instance(id)
            .await
            .unwrap()
            .unwrap()
            .state
            .status
            .ended()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, ends).await.unwrap();
}

/// Deploys the definition `w`, and starts it.
pub async fn started(service: &Service, document: &str) -> InstanceId {
    deploy(service, document).await;
    start(service, "w", 1).await
}
