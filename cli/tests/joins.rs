//! A coordinator joins a wide fork, and is killed between receiving the message and joining.

use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::consumer::{Info, PullConsumer};
use axum::Router;
use axum::routing::post;
use rustix::process::Signal;
use serde_json::{Value, json};
use swirl_chaos::{Cluster, Role};
use swirl_model::time::Timestamp;
use swirl_servers::eventually;
use tokio::sync::watch;

const ITEMS: usize = 300;
/// A document with its files.
const WHOLE: &str = "application/vnd.swirl.deployment+json";

/// Calls a service, then forks.
fn definition() -> Value {
    json!({
        "id": "wide", "version": "1", "specVersion": "0.8", "name": "wide", "start": "wait",
        "functions": [
            {"name": "gate", "operation": "gate.json#gate"},
            {"name": "double", "type": "expression", "operation": "{doubled: (.item * 2)}"},
        ],
        "states": [
            {"name": "wait", "type": "operation", "transition": "each",
                "actions": [{"functionRef": "gate", "actionDataFilter": {"useResults": false}}]},
            {"name": "each", "type": "foreach", "inputCollection": "${ .items }", "iterationParam": "item",
                "outputCollection": "${ .out }", "end": true,
                "actions": [{"functionRef": "double", "actionDataFilter": {"results": "${ .doubled }"}}],
                "stateDataFilter": {"output": "${ {out} }"}},
        ],
    })
}

/// A service that answers when the gate is open, and reports when it is called.
async fn gate(open: watch::Receiver<bool>, called: watch::Sender<bool>) -> Value {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = async move || {
        called.send_replace(true);
        open.clone().wait_for(|open| *open).await.unwrap();
        axum::Json(json!({}))
    };
    let router = Router::new().route("/gate", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let operation = json!({"operationId": "gate", "responses": {"200": {"description": "open"}}});
    json!({
        "openapi": "3.0.3", "info": {"title": "gate", "version": "1"},
        "servers": [{"url": format!("http://{address}")}],
        "paths": {"/gate": {"post": operation}},
    })
}

struct Rig {
    cluster: Cluster,
    http: reqwest::Client,
    nats: async_nats::Client,
    /// Opens the gate.
    open: watch::Sender<bool>,
    /// A worker waits at the gate.
    called: watch::Receiver<bool>,
}

impl Rig {
    async fn new() -> Rig {
        Rig::with(&definition(), Duration::from_secs(3)).await
    }

    async fn with(definition: &Value, lease: Duration) -> Rig {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let binary = Path::new(env!("CARGO_BIN_EXE_swirl"));
        let flags = ["--nats-ack-wait", "2s"].map(str::to_owned);
        let cluster = Cluster::start_with(binary, 2, 1, lease, false, &flags).unwrap();
        let (open, opened) = watch::channel(false);
        let (calls, called) = watch::channel(false);
        let rig = Rig {
            nats: async_nats::connect(cluster.nats.url()).await.unwrap(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            cluster,
            open,
            called,
        };
        let resources = json!({"gate.json": gate(opened, calls).await.to_string()});
        let whole = json!({"document": definition.to_string(), "resources": resources});
        rig.post("definitions", WHOLE, whole).await;
        rig
    }

    async fn post(&self, path: &str, kind: &str, body: Value) -> Value {
        let server = &self.cluster.apis()[0];
        let request = self.http.post(format!("{server}/api/v1/{path}"));
        let request = request.header("content-type", kind);
        let answer = request.body(body.to_string()).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn start(&self) -> String {
        let items: Vec<usize> = (0..ITEMS).collect();
        let started = self
            .post(
                "workflows/wide/instances",
                "application/json",
                json!({"items": items}),
            )
            .await;
        started["id"].as_str().unwrap().to_owned()
    }

    async fn view(&self, id: &str) -> Option<Value> {
        let server = &self.cluster.apis()[0];
        let answer = self.http.get(format!("{server}/api/v1/instances/{id}"));
        let answer = answer.send().await.ok()?.error_for_status().ok()?;
        serde_json::from_str(&answer.text().await.ok()?).ok()
    }

    /// Its view when it has ended, and how long it took by the store's clock, in milliseconds.
    async fn ended(&self, id: &str) -> (Value, i64) {
        let view = eventually("the end", async || {
            let view = self.view(id).await?;
            (view["status"] != "running").then_some(view)
        })
        .await;
        let server = &self.cluster.apis()[0];
        let url = format!("{server}/api/v1/instances/{id}/history");
        let history = self.http.get(url).send().await.unwrap();
        let history: Value = serde_json::from_str(&history.text().await.unwrap()).unwrap();
        let instant = |entry: Option<&Value>| {
            let at = entry.unwrap()["at"].as_str().unwrap();
            at.parse::<Timestamp>().unwrap().0
        };
        let entries = history["entries"].as_array().unwrap();
        (view, instant(entries.last()) - instant(entries.first()))
    }

    async fn joins(&self) -> Option<Info> {
        let context = async_nats::jetstream::new(self.nats.clone());
        let found = context.get_consumer_from_stream("joiners", "SWIRL_default_JOINS");
        let mut found: PullConsumer = found.await.ok()?;
        found.info().await.ok().cloned()
    }

    /// Freezes the coordinator after it has requested messages, so that it gets the next one while frozen. Returns the
    /// message's position.
    async fn freeze_with_the_message(&self) -> usize {
        let called = self.called.clone();
        eventually("the call", async || called.borrow().then_some(())).await;
        let at = self.cluster.of(Role::Coordinator)[0];
        self.cluster.processes[at].signal(Signal::STOP).unwrap();
        self.open.send_replace(true);
        eventually("the message at the coordinator", async || {
            self.joins()
                .await
                .filter(|joins| joins.num_ack_pending == 1)
        })
        .await;
        at
    }

    async fn is_joined(&self, id: &str) {
        let ended = eventually("its end", async || {
            let view = self.view(id).await?;
            (view["status"] != "running").then_some(view)
        })
        .await;
        let expected: Vec<usize> = (0..ITEMS).map(|item| 2 * item).collect();
        assert_eq!(ended["output"]["out"], json!(expected), "{ended:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_joins_a_wide_fork() {
    let rig = Rig::new().await;
    rig.open.send_replace(true);
    let id = rig.start().await;
    rig.is_joined(&id).await;
    let joins = eventually("the join's end", async || {
        rig.joins().await.filter(|joins| joins.num_ack_pending == 0)
    })
    .await;
    assert_eq!(joins.delivered.consumer_sequence, 1);
}

/// It has received the message, and is killed before it joins.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_survives_the_killed_coordinator() {
    let mut rig = Rig::new().await;
    let id = rig.start().await;
    let at = rig.freeze_with_the_message().await;
    rig.cluster.processes[at].kill().unwrap();
    rig.cluster.processes[at].start().unwrap();
    rig.is_joined(&id).await;
    let joins = eventually("the join's end", async || {
        rig.joins().await.filter(|joins| joins.num_ack_pending == 0)
    })
    .await;
    assert!(joins.delivered.consumer_sequence > 1, "{joins:?}");
}

/// Its message is lost together with the stream, and the reconciler finds the scope.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_join_message_is_recovered() {
    let mut rig = Rig::new().await;
    let id = rig.start().await;
    let at = rig.freeze_with_the_message().await;
    let context = async_nats::jetstream::new(rig.nats.clone());
    context.delete_stream("SWIRL_default_JOINS").await.unwrap();
    rig.cluster.processes[at].kill().unwrap();
    rig.cluster.processes[at].start().unwrap();
    rig.is_joined(&id).await;
}

/// The timeout of an action is in force although the lease of the worker that made the call is still held: it comes
/// within a second of a sleep of the same length, which no lease holds up.
#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_does_not_wait_for_a_killed_worker() {
    let calling = json!({
        "id": "wide", "version": "1", "specVersion": "0.8", "name": "wide", "start": "wait",
        "functions": [{"name": "gate", "operation": "gate.json#gate"}],
        "states": [{"name": "wait", "type": "operation", "end": true,
            "timeouts": {"actionExecTimeout": "PT5S"}, "actions": [{"functionRef": "gate"}]}],
    });
    let sleeping = json!({
        "id": "nap", "version": "1", "specVersion": "0.8", "name": "nap", "start": "wait",
        "states": [{"name": "wait", "type": "sleep", "duration": "PT5S", "end": true}],
    });
    let mut rig = Rig::with(&calling, Duration::from_secs(60)).await;
    rig.post("definitions", "application/json", sleeping).await;
    let call = rig.start().await;
    let called = rig.called.clone();
    eventually("the call", async || called.borrow().then_some(())).await;
    let nap = rig
        .post("workflows/nap/instances", "application/json", json!({}))
        .await;
    for at in rig.cluster.of(Role::Worker) {
        rig.cluster.processes[at].kill().unwrap();
        rig.cluster.processes[at].start().unwrap();
    }
    let (view, took) = rig.ended(&call).await;
    assert_eq!(view["status"], "faulted", "{view:#}");
    let message = view["error"]["message"].as_str().unwrap();
    assert!(message.contains("actionExecTimeout"), "{view:#}");
    let (_, slept) = rig.ended(nap["id"].as_str().unwrap()).await;
    assert!(
        (5_000..slept + 1_000).contains(&took),
        "{took} ms, and {slept} ms of a sleep"
    );
}
