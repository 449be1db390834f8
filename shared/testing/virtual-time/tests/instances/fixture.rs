//! A world with its definitions, and starts.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_assembly::Calls;
use swirl_model::time::Timestamp;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, DefinitionRecord, FunctionCaller, Secrets};
use swirl_service::{Deployment, StartRequest};
use swirl_spec::resource::MapResources;
use swirl_virtual_time::{Act, Mock, World};

struct Nothing;

#[async_trait]
impl FunctionCaller for Nothing {
    async fn call(&self, _: CallRequest) -> Result<Data, WorkflowError> {
        unreachable!("the workflow calls nothing")
    }
}

#[async_trait]
impl Secrets for Nothing {
    async fn get(&self, _: &[String]) -> Data {
        Data::NULL
    }
}

/// The calls of a driver whose instances call nothing.
pub fn no_calls() -> Calls {
    Calls {
        caller: Arc::new(Nothing),
        secrets: Arc::new(Nothing),
    }
}

/// A world with these definitions, in which calls are answered like this.
pub fn world(
    documents: &[&str],
    answer: impl Fn(&CallRequest) -> Mock + Send + Sync + 'static,
) -> World {
    let unknown = |record: &DefinitionRecord| Err(record.id.to_string());
    let mut world = World::new(
        Timestamp(0),
        Box::new(unknown),
        Box::new(answer),
        Data::NULL,
    );
    for document in documents {
        let deployment = deployment(document);
        let service = world.service.clone();
        world
            .wait(async move { service.deploy(deployment).await })
            .unwrap();
    }
    world
}

pub fn deployment(document: &str) -> Deployment {
    let none = MapResources::default();
    let reading = swirl_spec::read(document.as_bytes(), &none, &Default::default());
    Deployment {
        name: "test".to_owned(),
        document: document.to_owned(),
        resources: Vec::new(),
        workflow: reading.workflow.unwrap(),
    }
}

/// A start without data.
pub fn start_of(workflow: &str) -> StartRequest {
    StartRequest {
        workflow: workflow.to_owned(),
        input: Data::object(),
        request: "start".to_owned(),
        ..StartRequest::default()
    }
}

/// Starts an instance, and runs until then.
pub fn run(world: &mut World, workflow: &str, until: Timestamp) {
    let start = vec![(Timestamp(0), Act::Start(start_of(workflow)))];
    world.run(start, until).unwrap();
}
