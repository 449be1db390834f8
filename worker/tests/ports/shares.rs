//! No definition takes more than its share of processor time that others want, or of room in the store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use swirl_assembly::{Calls, System};
use swirl_embedded::{Embedded, MemoryQueue, Options};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Status;
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::{CallRequest, FunctionCaller, InstanceRecords, Queue, Tasks};
use swirl_runtime::{Places, Settings, Shares};
use swirl_service::Service;
use swirl_worker::pool;
use tokio::sync::watch;

use crate::rig::{Nobody, deploy, ended, nobody, service, start};

const HEAVY: &str = r#"{"id": "heavy", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "inject", "data": {}, "transition": "B",
        "stateDataFilter": {"output": "${ {i: ((.i // 0) + 1), x: ([range(30000)] | length)} }"}},
    {"name": "B", "type": "switch", "dataConditions": [{"condition": "${ .i < 15 }", "transition": "A"}],
        "defaultCondition": {"end": true}}]}"#;

const LIGHT: &str = r#"{"id": "light", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "inject", "data": {"a": 1}, "end": true}]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expensive_expressions_delay_no_other_workflow() {
    let store = Arc::new(Embedded::memory());
    let queue = Arc::new(MemoryQueue::default());
    let service = service(&store, queue.clone());
    for document in [HEAVY, LIGHT] {
        deploy(&service, document).await;
    }
    let mut heavy = Vec::new();
    for request in 0..6 {
        heavy.push(start(&service, "heavy", request).await);
    }
    let light = start(&service, "light", 0).await;
    let effects = Arc::new(service.clone());
    let mut driver = System::from(&service).driver(nobody(), effects, Settings::default());
    driver.shares = Some(Shares::new(2));
    let mut over = 0;
    let stop = async {
        ended(&store, &light).await;
        for id in &heavy {
            let status = store.instance(id).await.unwrap().unwrap().state.status;
            over += u32::from(status.ended());
        }
        for id in &heavy {
            ended(&store, id).await;
        }
    };
    pool::run(Arc::new(driver), queue, pool::Settings::default(), stop).await;
    assert!(
        over <= 2,
        "{over} of 6 expensive ones ended before the cheap one"
    );
    for id in heavy.iter().chain([&light]) {
        let state = store.instance(id).await.unwrap().unwrap().state;
        assert_eq!(state.status, Status::Completed, "{state:?}");
    }
}

/// Answers calls of `slow` when the test says so.
struct Slow(watch::Receiver<bool>);

#[async_trait]
impl FunctionCaller for Slow {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        if &*request.definition.workflow == "slow" {
            let mut answers = self.0.clone();
            answers.wait_for(|answers| *answers).await.unwrap();
        }
        Ok(Data::object())
    }
}

/// More instances of `slow` than there are places wait for their calls. An instance of `quick`, which has the same
/// text, is not behind them, and none is forgotten. The worker stops when `drained` is done. Returns the number of
/// scopes that it left.
pub async fn quick_passes_slow(
    store: &Embedded,
    service: &Service,
    tasks: Arc<dyn Tasks>,
    count: u32,
    drained: impl Future<Output = ()>,
) -> usize {
    for id in ["slow", "quick"] {
        let document = data!({
            "id": id, "version": "1", "specVersion": "0.8",
            "functions": [{"name": "f", "type": "custom", "operation": "nobody"}],
            "states": [{"name": "A", "type": "operation", "actions": [{"functionRef": "f"}], "end": true}],
        });
        deploy(service, &document.to_string()).await;
    }
    let mut slow = Vec::new();
    for request in 0..count {
        slow.push(start(service, "slow", request).await);
    }
    let quick = start(service, "quick", 0).await;
    let (answer, answers) = watch::channel(false);
    let calls = Calls {
        caller: Arc::new(Slow(answers)),
        ..nobody()
    };
    let effects = Arc::new(service.clone());
    let mut driver = System::from(service).driver(calls, effects, Settings::default());
    driver.places = Some(Places::new(4));
    let settings = pool::Settings {
        concurrency: 4,
        ..pool::Settings::default()
    };
    let stop = async {
        ended(store, &quick).await;
        for id in &slow {
            let status = store.instance(id).await.unwrap().unwrap().state.status;
            assert_eq!(status, Status::Running);
        }
        answer.send_replace(true);
        for id in &slow {
            ended(store, id).await;
        }
        drained.await;
    };
    let left = pool::run(Arc::new(driver), tasks, settings, stop).await;
    for id in slow.iter().chain([&quick]) {
        let state = store.instance(id).await.unwrap().unwrap().state;
        assert_eq!(state.status, Status::Completed, "{state:?}");
    }
    left
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_calls_leave_places_to_other_workflows() {
    let store = Arc::new(Embedded::memory());
    let queue = Arc::new(MemoryQueue::default());
    let service = service(&store, queue.clone());
    quick_passes_slow(&store, &service, queue, 20, async {}).await;
}

/// Returns 20 KB, and records the calls.
#[derive(Default)]
struct Large(Mutex<Vec<String>>);

#[async_trait]
impl FunctionCaller for Large {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        self.0.lock().unwrap().push(request.key);
        Ok(Data::string("x".repeat(20_000)))
    }
}

/// All branches share one limit on data. Exceeding it is an error that the definition can handle.
#[tokio::test]
async fn an_instance_has_a_limit_over_all_its_branches() {
    let functions = [
        r#"{"name": "f", "type": "expression", "operation": "\"x\" * 20000"}"#,
        r#"{"name": "f", "operation": "service.json#f"}"#,
    ];
    let handled = r#", "onErrors": [{"errorRef": "LimitExceeded", "transition": "Small"}]"#;
    for function in functions {
        for handled in [handled, ""] {
            let document = r#"{"id": "w", "version": "1", "specVersion": "0.8",
                "errors": [{"name": "LimitExceeded"}], "functions": [FUNCTION], "states": [
                {"name": "Items", "type": "inject", "data": {"items": [1,2,3,4,5,6,7,8,9,10]}, "transition": "Each"},
                {"name": "Each", "type": "foreach", "inputCollection": "${ .items }", "outputCollection": "${ .all }",
                    "actions": [{"functionRef": "f"}], "end": true HANDLED},
                {"name": "Small", "type": "inject", "data": {"small": true}, "end": true}]}"#;
            let document = document
                .replace("FUNCTION", function)
                .replace("HANDLED", handled);
            let options = Options {
                instance_bytes: 100 << 10,
                ..Options::default()
            };
            let store = Arc::new(Embedded::memory_with(options));
            let queue = Arc::new(MemoryQueue::default());
            let service = service(&store, queue.clone());
            deploy(&service, &document).await;
            let id = start(&service, "w", 0).await;
            let caller = Arc::new(Large::default());
            let calls = Calls {
                caller: caller.clone(),
                secrets: Arc::new(Nobody),
            };
            let effects = Arc::new(service.clone());
            let driver = System::from(&service).driver(calls, effects, Settings::default());
            queue.push(vec![ScopeRef::root(id.clone())]).await;
            let stop = ended(&store, &id);
            pool::run(Arc::new(driver), queue, pool::Settings::default(), stop).await;
            let state = store.instance(&id).await.unwrap().unwrap().state;
            if handled.is_empty() {
                let error = state.error.unwrap();
                assert_eq!(
                    (state.status, error.name.as_str()),
                    (Status::Faulted, "LimitExceeded")
                );
                assert!(
                    error
                        .message
                        .contains("102400 bytes in all of its branches"),
                    "{error}"
                );
            } else {
                let output = state.output.unwrap();
                assert_eq!(output.get("small"), Some(data!(true)), "{output}");
            }
            // No call was made again.
            let keys = caller.0.lock().unwrap().clone();
            let unlike: BTreeSet<&String> = keys.iter().collect();
            assert_eq!(unlike.len(), keys.len(), "{keys:?}");
        }
    }
}

/// A queue with a long backlog, which records late tasks.
#[derive(Default)]
struct Behind(Mutex<Vec<ScopeRef>>);

#[async_trait]
impl Queue for Behind {
    async fn push(&self, _: Vec<ScopeRef>) {}

    async fn push_late(&self, tasks: Vec<ScopeRef>) {
        self.0.lock().unwrap().extend(tasks);
    }

    async fn room(&self) -> usize {
        0
    }
}

/// A lost task is put into the queue again, however many others are waiting in it.
#[tokio::test]
async fn a_queue_with_a_backlog_gets_some_late_tasks() {
    let store = Arc::new(Embedded::memory());
    let queue = Arc::new(Behind::default());
    let service = service(&store, queue.clone());
    deploy(&service, LIGHT).await;
    for request in 0..120 {
        start(&service, "light", request).await;
    }
    service.sweep(&service).await.unwrap();
    let late = queue.0.lock().unwrap().len();
    assert_eq!(late, 100, "the maximum per workflow");
}
