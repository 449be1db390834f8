//! The audit log: the names of operators, its bound, and entries that are written whatever happens to the client.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use swirl_embedded::Embedded;
use swirl_ports::{AuditEntry, AuditLog, Error, ExecutionStore, InstanceRecords, Result};
use swirl_servers::{PATIENCE, eventually};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::batches::instance;
use crate::running::{Reads, Running, Setup, client, guarded};

const DOCUMENT: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "inject", "data": {"a": 1}, "end": true}]}"#;

async fn send(
    running: &Running,
    method: Method,
    path: &str,
    role: &str,
    body: &str,
) -> (u16, Value) {
    let request = client().request(method, running.url(&format!("/api/v1{path}")));
    let request = request.bearer_auth(format!("{role}-token"));
    let answer = request.body(body.to_owned()).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or_default())
}

async fn entries(running: &Running, query: &str) -> Vec<Value> {
    let path = format!("/audit?{query}");
    let (status, page) = send(running, Method::GET, &path, "operator", "").await;
    assert_eq!(status, 200, "{page}");
    page["entries"].as_array().unwrap().clone()
}

#[tokio::test]
async fn an_entry_names_the_operator() {
    let setup = Setup {
        reader: Arc::new(Reads),
        ..Setup::new(guarded(None))
    };
    setup.store.create(instance("i")).await.unwrap();
    let running = setup.start().await;
    let suspend = "/instances/i/suspend?reason=over%20lunch";
    let (status, _) = send(&running, Method::POST, suspend, "operator", "").await;
    assert_eq!(status, 202);
    let deploy = "/definitions?reason=version%20one";
    let (status, body) = send(&running, Method::POST, deploy, "deployer", DOCUMENT).await;
    assert_eq!(status, 201, "{body}");
    let delete = "/definitions/w/1?reason=a%20mistake";
    let (status, _) = send(&running, Method::DELETE, delete, "admin", "").await;
    assert_eq!(status, 200);
    let found = entries(&running, "").await;
    let shown: Vec<Value> = found
        .iter()
        .map(|entry| {
            json!([
                entry["by"],
                entry["action"],
                entry["subject"]["id"],
                entry["reason"]
            ])
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!(["admin", "delete", "w", "a mistake"]),
            json!(["deployer", "deploy", "w", "version one"]),
            json!(["operator", "suspend", "i", "over lunch"]),
        ]
    );
    let of = entries(&running, "by=deployer&kind=definition").await;
    assert_eq!(of, found[1..2]);
    assert_eq!(entries(&running, "action=suspend").await, found[2..]);

    // Refused, unchanged, or only checked: nothing was done.
    let again = [
        (Method::POST, "/instances/i/suspend", "operator", "", 409),
        (Method::POST, "/instances/i/cancel", "viewer", "", 403),
        (
            Method::POST,
            "/definitions?dryRun=true",
            "deployer",
            DOCUMENT,
            200,
        ),
        (Method::DELETE, "/definitions/w/1", "deployer", "", 404),
        (
            Method::POST,
            "/definitions?reason=",
            "deployer",
            DOCUMENT,
            201,
        ),
        (Method::POST, "/definitions", "deployer", DOCUMENT, 200),
    ];
    for (method, path, role, body, expected) in again {
        let (status, answer) = send(&running, method, path, role, body).await;
        assert_eq!(status, expected, "{path}: {answer}");
    }
    let all = entries(&running, "").await;
    assert_eq!(
        all.len(),
        4,
        "only the second deployment has changed something"
    );
    assert_eq!(all[0]["reason"], Value::Null);
}

#[tokio::test]
async fn the_log_is_bounded() {
    let setup = Setup {
        keep_audit_max: 3,
        ..Setup::new(guarded(None))
    };
    for n in 0..5 {
        setup
            .store
            .create(instance(&format!("i{n}")))
            .await
            .unwrap();
    }
    let running = setup.start().await;
    for n in 0..5 {
        let path = format!("/instances/i{n}/cancel");
        let (status, _) = send(&running, Method::POST, &path, "operator", "").await;
        assert_eq!(status, 202);
    }
    let found = entries(&running, "").await;
    let ids: Vec<&Value> = found.iter().map(|entry| &entry["subject"]["id"]).collect();
    assert_eq!(ids, ["i4", "i3", "i2"]);
}

/// Each entry waits for a permit, and is refused once the permits are gone for good.
struct Slow {
    store: Arc<Embedded>,
    permits: Semaphore,
}

#[async_trait]
impl AuditLog for Slow {
    async fn add_audit(&self, entry: &AuditEntry, keep_max: usize) -> Result<()> {
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| Error::Unavailable("it is gone".to_owned()))?;
        permit.forget();
        self.store.add_audit(entry, keep_max).await
    }

    async fn audit(&self, before: Option<&str>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.store.audit(before, limit).await
    }
}

async fn slow() -> (Arc<Slow>, Running) {
    let setup = Setup {
        reader: Arc::new(Reads),
        ..Setup::new(guarded(None))
    };
    setup.store.create(instance("i")).await.unwrap();
    let slow = Arc::new(Slow {
        store: setup.store.clone(),
        permits: Semaphore::new(0),
    });
    let setup = Setup {
        audit: Some(slow.clone()),
        ..setup
    };
    (slow, setup.start().await)
}

/// The client goes away while its action waits for the entry, which is written nevertheless.
async fn left(log: &Slow, asked: JoinHandle<reqwest::Result<Response>>, action: &str) {
    assert!(!asked.is_finished(), "the answer waits for the entry");
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    // Time has to pass: the server notices that the connection is closed.
    tokio::time::sleep(Duration::from_millis(300)).await;
    log.permits.add_permits(1);
    eventually("the entry", async || {
        let found = log.store.audit(None, 10).await.unwrap();
        (found.first()?.action == action).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_an_entry() {
    let (log, running) = slow().await;
    let request = client().post(running.url("/api/v1/instances/i/suspend"));
    let request = request.bearer_auth("operator-token").send();
    let asked = tokio::spawn(request);
    let id = swirl_model::ids::InstanceId::new("i");
    eventually("that it is suspended", async || {
        let instance = log.store.instance(&id).await.unwrap().unwrap();
        instance.state.suspended.then_some(())
    })
    .await;
    left(&log, asked, "suspend").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_leaves_an_entry_as_well() {
    let (log, running) = slow().await;
    log.permits.add_permits(1);
    let deploy = "/definitions";
    let (status, body) = send(&running, Method::POST, deploy, "deployer", DOCUMENT).await;
    assert_eq!(status, 201, "{body}");
    let request = client().delete(running.url("/api/v1/definitions/w/1"));
    let asked = tokio::spawn(request.bearer_auth("deployer-token").send());
    eventually("that it is deleted", async || {
        let found = send(&running, Method::GET, "/definitions/w/1", "viewer", "").await;
        (found.0 == 404).then_some(())
    })
    .await;
    left(&log, asked, "delete").await;
}

/// Only a deployment is given up.
#[tokio::test(flavor = "multi_thread")]
async fn an_activation_leaves_an_entry_as_well() {
    let (log, running) = slow().await;
    log.permits.add_permits(2);
    for version in ["1", "2"] {
        let document = DOCUMENT.replace("\"1\"", &format!("\"{version}\""));
        let (status, body) = send(
            &running,
            Method::POST,
            "/definitions",
            "deployer",
            &document,
        )
        .await;
        assert_eq!(status, 201, "{body}");
    }
    let request = client().post(running.url("/api/v1/definitions/w/1/activate"));
    let asked = tokio::spawn(request.bearer_auth("deployer-token").send());
    eventually("that it is current", async || {
        let found = send(&running, Method::GET, "/definitions/w", "viewer", "").await;
        (found.1["version"] == "1").then_some(())
    })
    .await;
    left(&log, asked, "activate").await;
}

/// An operator has to be able to cancel instances while the log cannot be written.
#[tokio::test]
async fn an_action_stands_without_its_entry() {
    let (log, running) = slow().await;
    log.permits.close();
    let cancel = send(
        &running,
        Method::POST,
        "/instances/i/cancel",
        "operator",
        "",
    );
    let (status, _) = tokio::time::timeout(PATIENCE, cancel).await.unwrap();
    assert_eq!(status, 202);
    assert!(entries(&running, "").await.is_empty());
}
