//! Whole instances, from the start to the committed end, through the real driver.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use swirl_coordinator::Service;
use swirl_embedded::{Embedded, MemoryQueue, Options, SystemClock};
use swirl_engine::{Definition, NewInstance, new_instance};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Status;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{
    CallRequest, Clock, DefinitionRecord, Definitions, FunctionCaller, NewInstance as Records,
    Secrets,
};
use swirl_runtime::{Driver, Registry, Settings};

pub struct Figure {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
        write!(
            f,
            "{:.0} instances/s, p50 {:.2} ms, p99 {:.2} ms",
            self.rate,
            ms(self.p50),
            ms(self.p99)
        )
    }
}

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

/// Runs instances for some seconds; every one is looked at: it must be completed in the store.
pub async fn run(
    definition: &Arc<Definition>,
    input: &Data,
    folder: Option<&Path>,
    callers: usize,
    seconds: f64,
) -> Result<Figure> {
    let store = Arc::new(match folder {
        Some(folder) => Embedded::open(folder, Options::default())?,
        None => Embedded::memory(),
    });
    let driver = Arc::new(driver(&store, definition).await?);
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers {
        let (driver, stop, count) = (driver.clone(), stop.clone(), count.clone());
        let (definition, input) = (definition.clone(), input.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let started = Instant::now();
                one(&driver, &definition, &input, &format!("{caller}-{number}")).await?;
                times.push(started.elapsed());
                // In memory nothing ever waits, and the runtime's timer needs a turn.
                tokio::task::yield_now().await;
            }
            anyhow::Ok(times)
        });
    }
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    let took = begun.elapsed().as_secs_f64();
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    Ok(Figure {
        rate: times.len() as f64 / took,
        p50: at(0.5),
        p99: at(0.99),
    })
}

/// Creation and the commit of the end are both on disk when this returns.
async fn one(driver: &Driver, definition: &Arc<Definition>, input: &Data, id: &str) -> Result<()> {
    let id = InstanceId::new(id);
    let new = NewInstance {
        input: input.clone(),
        ..NewInstance::default()
    };
    let (header, root) = new_instance(definition, id.clone(), new, driver.clock.now())?;
    driver
        .store
        .create(Records {
            header,
            root,
            ends_with_parent: false,
        })
        .await?;
    driver.drive(&ScopeRef::root(id.clone())).await?;
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
    registry.insert(definition.clone());
    let service = Service {
        store: store.clone(),
        events: store.clone(),
        queue: Arc::new(MemoryQueue::default()),
        clock: clock.clone(),
        registry: registry.clone(),
    };
    Ok(Driver {
        store: store.clone(),
        events: store.clone(),
        queue: service.queue.clone(),
        caller: Arc::new(Nothing),
        secrets: Arc::new(Nothing),
        clock,
        effects: Arc::new(service),
        registry,
        observer: None,
        settings: Settings::default(),
    })
}
