//! Two workers that take turns on one store, so that one enters a state and the other leaves it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use swirl_assembly::{Calls, System};
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_engine::Definition;
use swirl_model::ids::InstanceId;
use swirl_model::trace::TraceContext;
use swirl_model::{CloudEvent, Data, WorkflowError, data};
use swirl_ports::{CallRequest, ExecutionStore, FunctionCaller, InstanceRecords, Secrets, Tasks};
use swirl_runtime::{Driver, Registry, Settings};
use swirl_service::{Deployment, Service, StartRequest, Started};
use swirl_telemetry::{Protocol, Telemetry};

pub const SECRET: &str = "open-sesame";

pub struct Cluster {
    pub store: Arc<Embedded>,
    pub service: Service,
    pub outside: Arc<Outside>,
    pub telemetry: Vec<Arc<Telemetry>>,
    queue: Arc<MemoryQueue>,
    drivers: Vec<Driver>,
    turn: usize,
}

/// A service that fails once, with its arguments in the error message.
#[derive(Default)]
pub struct Outside {
    pub calls: Mutex<Vec<TraceContext>>,
}

#[async_trait]
impl FunctionCaller for Outside {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        let mut calls = self.calls.lock().unwrap();
        calls.push(request.trace.unwrap());
        assert!(request.arguments.to_string().contains(SECRET));
        match calls.len() {
            1 => Err(WorkflowError::new(
                "Busy",
                format!("not now: {}", request.arguments),
            )),
            _ => Ok(data!({"paid": true})),
        }
    }
}

#[async_trait]
impl Secrets for Outside {
    async fn get(&self, _: &[String]) -> Data {
        data!({"token": SECRET})
    }
}

impl Cluster {
    pub fn new(endpoint: Option<&str>, ratio: f64) -> Cluster {
        let store = Arc::new(Embedded::memory());
        let queue = Arc::new(MemoryQueue::default());
        let clock = Arc::new(SystemClock);
        let lower = Box::new(|_: &_| Err("all definitions are compiled".to_owned()));
        let registry = Arc::new(Registry::new(store.clone(), lower));
        let system = System::new(store.clone(), store.clone(), queue.clone(), clock, registry)
            .running_inline(false);
        let service = system.service();
        let outside = Arc::new(Outside::default());
        let telemetry: Vec<_> = [("a", Protocol::Grpc), ("b", Protocol::Http)]
            .into_iter()
            .map(|(instance, protocol)| {
                let settings = swirl_telemetry::Settings {
                    endpoint: endpoint.map(str::to_owned),
                    protocol,
                    headers: vec![("x-key".to_owned(), "k".to_owned())],
                    sampling_ratio: ratio,
                    resource_attributes: Vec::new(),
                    namespace: (instance == "b").then(|| "shop".to_owned()),
                    instance: instance.to_owned(),
                    version: "1".to_owned(),
                };
                Telemetry::new(&settings, store.clone()).unwrap()
            })
            .collect();
        let driver = |telemetry: &Arc<Telemetry>| {
            let calls = Calls {
                caller: outside.clone(),
                secrets: outside.clone(),
            };
            let observed = System {
                observer: Some(telemetry.clone()),
                ..system.clone()
            };
            observed.driver(calls, Arc::new(service.clone()), Settings::default())
        };
        Cluster {
            drivers: telemetry.iter().map(driver).collect(),
            store,
            service,
            outside,
            telemetry,
            queue,
            turn: 0,
        }
    }

    pub async fn deploy(&self, document: &str) {
        let none = swirl_spec::resource::MapResources::default();
        let reading = swirl_spec::read(document.as_bytes(), &none, &Default::default());
        let workflow = reading
            .workflow
            .unwrap_or_else(|| panic!("{:?}", reading.diagnostics));
        self.service
            .registry
            .insert(Definition::compile(workflow.clone()).unwrap(), "", 0);
        let deployment = Deployment {
            name: String::new(),
            document: document.to_owned(),
            resources: Vec::new(),
            workflow,
        };
        self.service.deploy(deployment).await.unwrap();
    }

    pub async fn start(&self, workflow: &str, trace: Option<TraceContext>) -> InstanceId {
        let request = StartRequest {
            workflow: workflow.to_owned(),
            input: Data::object(),
            request: workflow.to_owned(),
            trace,
            ..StartRequest::default()
        };
        match self.service.start(request).await.unwrap() {
            Ok(Started::New(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    /// Runs until nothing is left to do. The workers take turns.
    pub async fn settle(&mut self) {
        loop {
            self.service.fire_timers_at_most(10).await.unwrap();
            let pulled = tokio::time::timeout(Duration::from_millis(100), self.queue.pull());
            match pulled.await {
                Ok(task) => {
                    let driver = &self.drivers[self.turn % 2];
                    self.turn += 1;
                    driver.drive(&task.scope).await.unwrap();
                }
                // A retry may still be due.
                Err(_) if self.store.next_timer().await.unwrap().is_some() => {}
                Err(_) => return,
            }
        }
    }

    pub async fn send(&self, kind: &str, traceparent: &str) {
        let mut event: CloudEvent = data_event(kind);
        let value = Data::string(traceparent);
        event.attributes.insert("traceparent".to_owned(), value);
        self.service.publish(&event).await.unwrap();
    }

    pub async fn is_completed(&self, id: &InstanceId) -> bool {
        let instance = self.store.instance(id).await.unwrap().unwrap();
        instance.state.status == swirl_model::instance::Status::Completed
    }

    pub async fn shutdown(&self) {
        for telemetry in &self.telemetry {
            telemetry.shutdown(Duration::from_secs(5)).await;
        }
    }
}

fn data_event(kind: &str) -> CloudEvent {
    CloudEvent {
        specversion: "1.0".to_owned(),
        id: "e1".to_owned(),
        source: "/shop".to_owned(),
        kind: kind.to_owned(),
        attributes: Default::default(),
        data: Some(data!({"secret": SECRET})),
    }
}
