//! An instance that kills every process that continues it, by an abort or as the kernel does when memory runs out. It
//! is suspended after five attempts, and other instances continue meanwhile.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use swirl_assembly::{Calls, System};
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_model::event::Event;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, FunctionCaller, InstanceQueries, InstanceRecords, Secrets};
use swirl_runtime::{Registry, Settings};
use swirl_servers::eventually;
use swirl_service::{Deployment, Service, StartRequest, Started};
use swirl_worker::pool;

const FOLDER: &str = "SWIRL_TEST_ATTEMPTS_FOLDER";
const HOW: &str = "SWIRL_TEST_ATTEMPTS_HOW";
/// The exit code of the process when the instance is suspended.
const STANDS_STILL: i32 = 42;

fn document(id: &str, secrets: &str) -> String {
    format!(
        r#"{{"id": "{id}", "version": "1", "specVersion": "0.8", "name": "{id}", "start": "A",
        "secrets": [{secrets}],
        "functions": [{{"name": "f", "operation": "service.json#f"}}],
        "states": [
        {{"name": "A", "type": "operation", "transition": "B",
          "actions": [{{"functionRef": {{"refName": "f"}}}}]}},
        {{"name": "B", "type": "inject", "data": {{"a": 1}}, "end": true}}]}}"#
    )
}

/// Kills the process if the definition has a secret; answers calls.
struct Ends(String);

#[async_trait]
impl Secrets for Ends {
    async fn get(&self, names: &[String]) -> Data {
        if !names.is_empty() {
            if self.0 == "abort" {
                std::process::abort();
            }
            let mut kill = Command::new("kill");
            let _ = kill.args(["-9", &std::process::id().to_string()]).status();
        }
        Data::object()
    }
}

#[async_trait]
impl FunctionCaller for Ends {
    async fn call(&self, _: CallRequest) -> Result<Data, WorkflowError> {
        // Time has to pass: so that the call is in flight when the process dies.
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(Data::object())
    }
}

async fn started(service: &Service, id: &str, document: String) -> InstanceId {
    let none = swirl_spec::resource::MapResources::default();
    let reading = swirl_spec::read(document.as_bytes(), &none, &Default::default());
    let workflow = reading.workflow.unwrap();
    let deployment = Deployment {
        name: String::new(),
        document,
        resources: Vec::new(),
        workflow,
    };
    let _ = service.deploy(deployment).await.unwrap();
    let request = StartRequest {
        workflow: id.to_owned(),
        input: Data::object(),
        key: Some("one".to_owned()),
        request: id.to_owned(),
        ..StartRequest::default()
    };
    match service.start(request).await.unwrap() {
        Ok(Started::New(id) | Started::Existing(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// One process of the tests below. It works until both instances have ended or are suspended.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let how = std::env::var(HOW).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async move {
        let store = Arc::new(Embedded::open(&folder, swirl_embedded::Options::default()).unwrap());
        let queue = Arc::new(MemoryQueue::default());
        let lower = Box::new(|record: &swirl_ports::DefinitionRecord| {
            let none = swirl_spec::resource::MapResources::default();
            let read = swirl_spec::read(record.document.as_bytes(), &none, &Default::default());
            let workflow = read
                .workflow
                .ok_or_else(|| "it cannot be read".to_owned())?;
            Ok(workflow)
        });
        let registry = Arc::new(Registry::new(store.clone(), lower));
        let clock = Arc::new(SystemClock);
        let system = System::new(store.clone(), store.clone(), queue.clone(), clock, registry)
            .running_inline(false);
        let service = system.service();
        let ends = Arc::new(Ends(how));
        let calls = Calls {
            caller: ends.clone(),
            secrets: ends,
        };
        let effects = Arc::new(service.clone());
        let driver = Arc::new(system.driver(calls, effects, Settings::default()));
        let is_first = store
            .list(&swirl_ports::Filter {
                limit: 1,
                ..Default::default()
            })
            .await;
        let is_first = is_first.unwrap().is_empty();
        let bad = started(&service, "bad", document("bad", "\"s\"")).await;
        let good = started(&service, "good", document("good", "")).await;
        if !is_first {
            service.sweep(&service.clone()).await.unwrap();
        }
        let settings = pool::Settings::default();
        tokio::spawn(pool::run(
            driver,
            queue,
            settings,
            std::future::pending::<()>(),
        ));
        let state = async |id: &InstanceId| store.instance(id).await.unwrap().unwrap().state;
        eventually("the end of both", async || {
            let is_over =
                state(&bad).await.suspended && state(&good).await.status == Status::Completed;
            is_over.then_some(())
        })
        .await;
        let history = store.history(&bad).await.unwrap();
        let reason = history.iter().find_map(|entry| match &entry.event {
            Event::GivenUp { reason } => Some(reason.as_str()),
            _ => None,
        });
        assert!(
            reason.is_some_and(|reason| reason.contains("5 attempts")),
            "{history:?}"
        );
        std::process::exit(STANDS_STILL);
    });
}

fn run(folder: &Path, how: &str) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "attempts::child", "--nocapture"]);
    command.env(FOLDER, folder).env(HOW, how);
    command.output().unwrap().status
}

fn stands_still_after_five(how: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut ended = 0;
    loop {
        let status = run(folder.path(), how);
        if status.code() == Some(STANDS_STILL) {
            break;
        }
        assert_eq!(status.code(), None, "it was ended by a signal");
        ended += 1;
        assert!(ended < 10, "it is retried for ever");
    }
    assert_eq!(ended, 5);
}

#[test]
fn an_instance_that_aborts_its_process_is_tried_five_times() {
    stands_still_after_five("abort");
}

#[test]
fn an_instance_that_runs_out_of_memory_is_tried_five_times() {
    stands_still_after_five("kill");
}
