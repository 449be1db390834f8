//! Complete instances, from the start to the committed end, through the real driver.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use swirl_assembly::{Calls, System};
use swirl_embedded::{Embedded, MemoryQueue, Options, SystemClock};
use swirl_engine::{Definition, NewInstance, new_instance};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Status;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{
    CallRequest, Clock, DefinitionRecord, Definitions, FunctionCaller, NewRecords, Secrets,
};
use swirl_runtime::{Driver, Registry, Settings, take_first_turn};

use crate::measure::{Caller, Figure, closed_loop};
use crate::usage::Meter;

struct Nothing;

#[async_trait]
impl FunctionCaller for Nothing {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        Err(WorkflowError::new(
            "FunctionError",
            format!("{} was called", request.function.name),
        ))
    }
}

#[async_trait]
impl Secrets for Nothing {
    async fn get(&self, _names: &[String]) -> Data {
        Data::object()
    }
}

struct Starter {
    driver: Arc<Driver>,
    definition: Arc<Definition>,
    input: Data,
    at_once: bool,
    name: usize,
    number: u64,
}

#[async_trait]
impl Caller for Starter {
    async fn once(&mut self) -> Result<()> {
        self.number += 1;
        let id = format!("{}-{}", self.name, self.number);
        one(
            &self.driver,
            &self.definition,
            &self.input,
            &id,
            self.at_once,
        )
        .await
    }
}

/// Runs instances for a few seconds. Each one is checked: it must be completed in the store. `at_once`: it runs before
/// it is created, instead of being driven.
pub async fn run(
    definition: &Arc<Definition>,
    input: &Data,
    folder: Option<&Path>,
    at_once: bool,
    callers: usize,
    seconds: f64,
) -> Result<Figure> {
    let store = Arc::new(match folder {
        Some(folder) => Embedded::open(folder, Options::default())?,
        None => Embedded::memory(),
    });
    let driver = Arc::new(driver(&store, definition).await?);
    let starter = |name| Starter {
        driver: driver.clone(),
        definition: definition.clone(),
        input: input.clone(),
        at_once,
        name,
        number: 0,
    };
    closed_loop(
        (0..callers).map(starter).collect(),
        seconds,
        &Meter::default(),
    )
    .await
}

/// When this returns, the creation and the commit of the end are both on disk.
async fn one(
    driver: &Driver,
    definition: &Arc<Definition>,
    input: &Data,
    id: &str,
    at_once: bool,
) -> Result<()> {
    let id = InstanceId::new(id);
    let new = NewInstance {
        input: input.clone(),
        ..NewInstance::default()
    };
    let now = driver.clock.now();
    let (header, root) = new_instance(definition, id.clone(), new, now)?;
    let first_turn = if at_once {
        let turn = take_first_turn(definition, &header, &root, now, false, None);
        Some(Box::new(turn.context("it cannot be carried out")?.commit))
    } else {
        None
    };
    driver
        .store
        .create(NewRecords {
            header,
            root,
            ends_with_parent: false,
            watched: false,
            first_turn,
        })
        .await?;
    if !at_once {
        driver.drive(&ScopeRef::root(id.clone())).await?;
    }
    let instance = driver
        .store
        .instance(&id)
        .await?
        .context("the instance is gone")?;
    ensure!(
        instance.state.status == Status::Completed,
        "{:?}",
        instance.state
    );
    Ok(())
}

async fn driver(store: &Arc<Embedded>, definition: &Arc<Definition>) -> Result<Driver> {
    let clock = Arc::new(SystemClock);
    let record = DefinitionRecord {
        deleted: None,
        activated: None,
        interests: swirl_ports::Interests::default(),
        id: definition.id.clone(),
        digest: String::new(),
        name: String::new(),
        document: String::new(),
        resources: Vec::new(),
        deployed_at: clock.now(),
    };
    store.put(record).await?;
    let registry = Arc::new(Registry::new(
        store.clone(),
        Box::new(|_| Err("cached".to_owned())),
    ));
    registry.insert(definition.clone(), "", 0);
    let queue = Arc::new(MemoryQueue::default());
    let system = System::new(store.clone(), store.clone(), queue, clock, registry);
    let calls = Calls {
        caller: Arc::new(Nothing),
        secrets: Arc::new(Nothing),
    };
    Ok(system.driver(calls, Arc::new(system.service()), Settings::default()))
}
