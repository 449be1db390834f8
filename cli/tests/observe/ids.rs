//! The ids of an instance, and of everything that it sends, are unique: across namespaces, across installations on the
//! same servers, and for the next instance with the same key.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use futures::StreamExt;
use serde_json::{Value, json};
use swirl_servers::{NatsOptions, NatsServer, PATIENCE, RedisServer, eventually};

use crate::observe::processes::Cluster;
use crate::observe::service::Service;

/// Two accounts, each with its own streams.
const ACCOUNTS: &str = "accounts {
    A { jetstream: enabled, users: [{user: a, password: p}] }
    B { jetstream: enabled, users: [{user: b, password: p}] }
}";

fn charge() -> Value {
    json!({
        "id": "charge", "version": "1.0.0", "specVersion": "0.8", "start": "Call",
        "functions": [{"name": "pass", "operation": "service.json#pass"}],
        "events": [{"name": "done", "type": "charged", "source": "/charge", "kind": "produced"}],
        "states": [{
            "name": "Call", "type": "operation", "actions": [{"functionRef": "pass"}],
            "end": {"produceEvents": [{"eventRef": "done"}]},
        }],
    })
}

/// Everything by which an instance is known outside.
#[derive(Debug)]
struct Known {
    instance: String,
    idempotency_key: String,
    event: String,
    trace: String,
}

/// Starts an instance with the key that all tests use.
async fn started(cluster: &Cluster, user: &str, events: &str, input: &Value) -> Known {
    let service = Service::serve().await;
    let mut definition = charge();
    // Each round has its own service, and therefore its own version.
    let version = format!("{}.0.0", input["round"]);
    definition["version"] = json!(version);
    cluster.deploy(&definition, &service.document()).await;
    let login = async_nats::ConnectOptions::with_user_and_password(user.to_owned(), "p".to_owned());
    let nats = login.connect(cluster.nats.url()).await.unwrap();
    let mut produced = nats.subscribe(format!("{events}.charged")).await.unwrap();
    nats.flush().await.unwrap();
    let url = format!(
        "{}/api/v1/workflows/charge/instances",
        cluster.coordinator.url
    );
    let request = cluster.http.post(url).header("idempotency-key", "order-1");
    let answer = request.body(input.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let event = tokio::time::timeout(PATIENCE, produced.next());
    let Ok(event) = event.await else {
        let passed = service.passed();
        panic!("{events}: no event; calls {passed:?}; {}", cluster.logs());
    };
    let event: Value = serde_json::from_slice(&event.unwrap().payload).unwrap();
    let passed = service.passed();
    let [[idempotency_key, traceparent]] = &passed[..] else {
        panic!("not called exactly once: {passed:?}");
    };
    Known {
        instance: answer["id"].as_str().unwrap().to_owned(),
        idempotency_key: idempotency_key.clone(),
        event: event["id"].as_str().unwrap().to_owned(),
        trace: traceparent[3..35].to_owned(),
    }
}

fn all_differ(known: &[Known], of: impl Fn(&Known) -> &String) {
    let different: BTreeSet<&String> = known.iter().map(&of).collect();
    assert_eq!(different.len(), known.len(), "{known:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_in_namespaces_installations_and_after_retention() {
    let redis = Arc::new(RedisServer::start().unwrap());
    let nats = NatsServer::start_with(NatsOptions {
        config: ACCOUNTS.to_owned(),
        ..NatsOptions::default()
    });
    let nats = Arc::new(nats.unwrap());
    let mut known = Vec::new();
    for (namespace, database, user) in [("default", 0, "a"), ("pay", 0, "a"), ("default", 1, "b")] {
        let urls = [format!("{}/{database}", redis.url()), nats.url()];
        let flags = [
            "--namespace",
            namespace,
            "--redis-keep-ended",
            "1s",
            "--nats-user",
            user,
            "--nats-password",
            "p",
            "--redis-dedup",
            "1s",
        ];
        let cluster = Cluster::on(redis.clone(), nats.clone(), &urls, 1, &flags).await;
        let events = match namespace {
            "default" => "swirl.events".to_owned(),
            other => format!("swirl.{other}.events"),
        };
        let first = started(&cluster, user, &events, &json!({"round": 1})).await;
        let url = format!(
            "{}/api/v1/instances/{}",
            cluster.coordinator.url, first.instance
        );
        eventually("its removal", async || {
            let answer = cluster.http.get(&url).send().await.ok()?;
            (answer.status() == 404).then_some(())
        })
        .await;
        let second = started(&cluster, user, &events, &json!({"round": 2})).await;
        assert_eq!(second.instance, first.instance, "the key says which");
        for different in [
            first.idempotency_key != second.idempotency_key,
            first.event != second.event,
            first.trace != second.trace,
        ] {
            assert!(different, "{first:?} {second:?}");
        }
        known.extend([first, second]);
    }
    all_differ(&known, |known| &known.idempotency_key);
    all_differ(&known, |known| &known.event);
    all_differ(&known, |known| &known.trace);
    let instances: BTreeSet<&String> = known.iter().map(|known| &known.instance).collect();
    assert_eq!(instances.len(), 3, "{known:#?}");
}

/// Two runs of one command are two instances.
#[tokio::test(flavor = "multi_thread")]
async fn two_runs_without_a_store() {
    let service = Service::serve().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("charge.sw.json"), charge().to_string()).unwrap();
    std::fs::write(folder.path().join("service.json"), service.document()).unwrap();
    for _ in 0..2 {
        let mut run = Command::new(env!("CARGO_BIN_EXE_swirl"));
        run.args(["run", "charge.sw.json"])
            .current_dir(folder.path());
        let done = tokio::task::spawn_blocking(move || run.output());
        let done = done.await.unwrap().unwrap();
        let output = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{output}");
    }
    let passed = service.passed();
    assert_eq!(passed.len(), 2);
    assert_ne!(passed[0][0], passed[1][0], "{passed:?}");
}
