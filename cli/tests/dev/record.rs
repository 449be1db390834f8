//! `swirl record`: a history becomes a scenario that passes unchanged.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use swirl_servers::eventually;

use crate::dev::http::JSON;
use crate::dev::process::{Dev, command};

/// One in this many changing calls is refused.
const BUSY_EVERY: usize = 5;

/// The shop of the examples, which is busy from time to time, and services for other function types.
async fn services() -> String {
    let calls = Arc::new(AtomicUsize::new(0));
    let connectors = Router::new().route("/connect", post(connected));
    let router = swirl_demo_service::router()
        .merge(connectors)
        .layer(from_fn_with_state(calls, busy));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn busy(State(calls): State<Arc<AtomicUsize>>, request: Request, next: Next) -> Response {
    let is_call = request.method() == Method::POST && request.uri().path() != "/connect";
    if is_call && calls.fetch_add(1, Ordering::Relaxed) % BUSY_EVERY == BUSY_EVERY - 1 {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

async fn connected(Json(call): Json<Value>) -> Json<Value> {
    let function = call["function"].as_str().unwrap_or_default();
    Json(match function {
        "estimate" => json!(250),
        "transfer" => json!({"transfer": "T-${1}"}),
        "score" => json!({"score": 700, "of": 850}),
        _ => json!({"done": function}),
    })
}

/// Copies definitions of the examples, and inserts the service's address.
fn copy_examples(to: &Path, service: &str) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    for name in [
        "approval/approval.sw.yaml",
        "claim/claim.sw.yaml",
        "expression-library/expression-library.sw.yaml",
        "hello/hello.sw.yaml",
        "http-service/http-service.sw.yaml",
        "loan/loan.sw.json",
        "order/order.sw.yaml",
        "polling/polling.sw.yaml",
        "saga/saga.sw.yaml",
        "subscription/subscription.sw.yaml",
        "subworkflow/subworkflow.sw.yaml",
        "subworkflow/welcome.sw.yaml",
    ] {
        let text = std::fs::read_to_string(examples.join(name)).unwrap();
        let text = text.replace("127.0.0.1:8090", service);
        let file = Path::new(name).file_name().unwrap();
        std::fs::write(to.join(file), text).unwrap();
    }
}

async fn start(dev: &Dev, workflow: &str, input: Value) -> String {
    let path = format!("/api/v1/workflows/{workflow}/instances");
    let body = dev.post(&path, &[JSON], input.to_string()).await;
    assert!(matches!(body.status, 200..=202), "{body:#?}");
    body.body["id"].as_str().unwrap().to_owned()
}

async fn publish(dev: &Dev, event: Value) {
    let headers = [("content-type", "application/cloudevents+json")];
    let answer = dev
        .post("/api/v1/events", &headers, event.to_string())
        .await;
    assert!(matches!(answer.status, 200..=202), "{answer:#?}");
}

/// Starts instances of all workflows except those that events start. Instances that wait for an event get it.
async fn instances(dev: &Dev) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..12 {
        let items = match n % 4 {
            0 => json!([{"item": "apple", "quantity": 4}, {"item": "book", "quantity": 1}]),
            1 => json!([{"item": "unicorn", "quantity": 1}]),
            2 => {
                json!([{"item": "book", "quantity": 10}, {"item": "lamp", "quantity": 3}, {"item": "apple", "quantity": 2}])
            }
            _ => json!([{"item": "sofa", "quantity": 1}]),
        };
        let input = json!({"order": format!("A-{n}"), "items": items});
        ids.push(start(dev, "order", input).await);
    }
    for n in 0..10 {
        let amount = if n % 3 == 0 { 100_001 } else { 2500 };
        let input =
            json!({"order": format!("S-{n}"), "item": "book", "quantity": 2, "amount": amount});
        ids.push(start(dev, "saga", input).await);
    }
    let mut asked = Vec::new();
    for n in 0..8 {
        let input =
            json!({"request": format!("R-{n}"), "amount": 100 * n, "purpose": "a \"desk\""});
        asked.push(start(dev, "approval", input).await);
    }
    for n in 0..4 {
        let people = json!([{"name": "Ada", "remote": n % 2 == 0}, {"name": "Bob"}]);
        ids.push(start(dev, "welcome-team", json!({"people": people})).await);
    }
    for n in 0..4 {
        ids.push(start(dev, "hello", json!({"name": format!("N{n}")})).await);
        let basket = json!([{"item": "lamp", "kind": "other", "price": 3990, "quantity": n}]);
        ids.push(start(dev, "expression-library", json!({"basket": basket})).await);
    }
    for n in 0..3 {
        ids.push(start(dev, "polling", json!({"polls": n})).await);
        let input = json!({"applicant": {"name": "Ann", "age": 17 + n}});
        ids.push(start(dev, "loan", input).await);
    }
    let bought = json!({"order": "H-1", "item": "book", "quantity": 2, "name": "Ada"});
    ids.push(start(dev, "http-service", bought).await);

    // The others continue to wait.
    for (n, id) in asked.iter().enumerate().take(6) {
        let path = format!("/api/v1/instances/{id}");
        dev.until(&path, "the wait", |body| {
            body["status"] != "running" || !body["scopes"][0]["waitsFor"].is_null()
        })
        .await;
        let decided = json!({"specversion": "1.0", "id": format!("d{n}"), "source": "/approvals",
            "type": "org.example.expenses.decided", "request": format!("R-{n}"),
            "data": {"approved": n % 2 == 0, "by": "Grace"}});
        publish(dev, decided).await;
    }
    ids.extend(asked);
    ids
}

/// Instances that events start and continue.
async fn by_events(dev: &Dev) -> Vec<String> {
    let event = |kind: &str, id: &str, attribute: &str, value: String, data: Value| {
        json!({"specversion": "1.0", "id": format!("{id}-{value}"), "type": kind, attribute: value, "data": data,
            "source": if attribute == "claimid" { "/desk" } else { "/shop" }})
    };
    let subscription = |name: &str| format!("org.example.subscription.{name}");
    for n in 0..4 {
        let customer = format!("C-{n}");
        let started = subscription("started");
        publish(
            dev,
            event(
                &started,
                "s",
                "customer",
                customer,
                json!({"plan": "small"}),
            ),
        )
        .await;
        let claim = json!({"claim": n, "customer": {"name": "Ada", "trusted": n % 2 == 0}});
        publish(
            dev,
            event("org.desk.claimed", "c", "claimid", format!("D-{n}"), claim),
        )
        .await;
    }
    let mut found = Vec::new();
    for workflow in ["subscription", "claim"] {
        let path = format!("/api/v1/instances?workflow={workflow}");
        let all = dev
            .until(&path, "the instances", |body| {
                body["instances"]
                    .as_array()
                    .is_some_and(|all| all.len() == 4)
            })
            .await;
        let ids = all["instances"].as_array().unwrap().iter();
        found.extend(ids.map(|one| one["id"].as_str().unwrap().to_owned()));
    }
    for n in 0..3 {
        let customer = format!("C-{n}");
        let paid = subscription("paid");
        publish(
            dev,
            event(&paid, "p", "customer", customer, json!({"amount": 9})),
        )
        .await;
    }
    let cancelled = subscription("cancelled");
    publish(
        dev,
        event(&cancelled, "x", "customer", "C-0".to_owned(), json!({})),
    )
    .await;
    for n in 0..4 {
        let approved = event(
            "org.desk.approved",
            "a",
            "claimid",
            format!("D-{n}"),
            json!({"by": "Bob"}),
        );
        publish(dev, approved).await;
    }
    found
}

fn swirl(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_swirl"))
        .args(arguments)
        .args(["--color", "never"])
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout) + &text(output.stderr),
    )
}

/// It may hold what services have answered.
fn only_for_its_owner(file: &Path) {
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", file.display());
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_of_fifty_instances_pass_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let scenarios = tempfile::tempdir().unwrap();
    let service = services().await;
    copy_examples(folder.path(), &service);
    let mut dev = command(folder.path());
    for connector in ["desk", "credit", "mail"] {
        dev.arg("--connector");
        dev.arg(format!("{connector}=http://{service}/connect"));
    }
    let dev = Dev::of(dev).await;
    let mut ids = instances(&dev).await;
    ids.extend(by_events(&dev).await);

    let (mut retried, mut consumed, mut faulted, mut waiting) = (0, 0, 0, 0);
    for id in &ids {
        let path = format!("/api/v1/instances/{id}");
        // An instance that waits for an event which never comes stays unchanged.
        let waits = |body: &Value| !body["scopes"][0]["waitsFor"].is_null();
        // A call that nothing waits for may be made after the end.
        let calls = |body: &Value| {
            let open = body["scopes"].as_array();
            body["status"] == "completed" && open.is_some_and(|open| !open.is_empty())
        };
        let body = eventually("an end", async || {
            let body = dev.get(&path).await.is(200);
            let is_over = body["status"] != "running" && !calls(&body);
            (is_over || waits(&body)).then_some(body)
        });
        let body = body.await;
        let history = dev.get(&format!("{path}/history")).await.is(200);
        let has = |what: &dyn Fn(&Value) -> bool| {
            usize::from(history["entries"].as_array().unwrap().iter().any(what))
        };
        retried += has(&|entry| entry["retry_ms"].is_u64());
        consumed += has(&|entry| entry["event"] == "event_consumed");
        faulted += usize::from(body["status"] == "faulted");
        waiting += usize::from(body["status"] == "running");
        let workflow = body["workflow"].as_str().unwrap();
        let out = scenarios
            .path()
            .join(format!("{workflow}-{id}.scenario.yaml"));
        let (code, _, said) = dev.run(&["record", id, "-o", out.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{workflow} {id}: {said}\n{history:#}");
        only_for_its_owner(&out);
    }
    assert!(ids.len() >= 50, "{} instances", ids.len());
    assert!(
        retried >= 3 && consumed >= 10 && faulted >= 3 && waiting >= 3,
        "{retried} with retries, {consumed} with events, {faulted} faulted, {waiting} waiting"
    );
    drop(dev);
    let (code, said) = swirl(&["test", scenarios.path().to_str().unwrap()]);
    assert!(
        said.ends_with(&format!("{} passed, 0 failed\n", ids.len())),
        "{said}"
    );
    assert_eq!(code, Some(0));
    // The scenarios are formatted like all other files.
    let (code, said) = swirl(&["fmt", "--check", scenarios.path().to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
}

const PAYMENT: &str = r#"id: payment
version: "1.0.0"
specVersion: "0.8"
secrets: [shop]
functions:
  - {name: score, type: credit, operation: score}
states:
  - name: Charge
    type: operation
    actions:
      - functionRef: {refName: score, arguments: {sum: "${ .sum }", key: "${ $SECRETS.shop }"}}
        actionDataFilter: {toStateData: "${ .scored }"}
    transition: Decide
  - name: Decide
    type: switch
    dataConditions:
      - {condition: "${ .scored.score > 600 }", transition: Accept}
    defaultCondition: {transition: Refuse}
  - {name: Accept, type: inject, data: {accepted: true}, end: true}
  - {name: Refuse, type: inject, data: {accepted: false}, end: true}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_finds_the_first_difference() {
    const SECRET: &str = "k3y-of-the-shop";
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let service = services().await;
    std::fs::write(folder.path().join("payment.sw.yaml"), PAYMENT).unwrap();
    let mut dev = command(folder.path());
    dev.arg("--connector");
    dev.arg(format!("credit=http://{service}/connect"));
    dev.arg("--secret").arg(format!("shop={SECRET}"));
    let dev = Dev::of(dev).await;
    let id = start(&dev, "payment", json!({"sum": 7})).await;
    let path = format!("/api/v1/instances/{id}");
    dev.until(&path, "the end", |body| body["status"] == "completed")
        .await;
    let export = files.path().join("payment.json");
    let export = export.to_str().unwrap();
    let (code, _, said) = dev.run(&["record", &id, "--export", export]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!std::fs::read_to_string(export).unwrap().contains(SECRET));
    only_for_its_owner(Path::new(export));

    let changed = files.path().join("payment.sw.yaml");
    let changed = changed.to_str().unwrap();
    let replay = |text: &str, more: &[&str]| {
        std::fs::write(changed, text).unwrap();
        let arguments = [&["replay", export, "--definition", changed], more].concat();
        let (code, said) = swirl(&arguments);
        assert!(!said.contains(SECRET), "{said}");
        (code, said)
    };
    let (code, said) = replay(PAYMENT, &[]);
    assert!(
        said.starts_with(&format!("same: {id} of payment:1.0.0 takes the same path")),
        "{said}"
    );
    assert_eq!(code, Some(0));
    // The same with the server instead of an export.
    let (code, said, _) = dev.run(&["replay", "--id", &id, "--definition", changed]);
    assert_eq!(
        (code, said.starts_with("same: ")),
        (Some(0), true),
        "{said}"
    );

    for (from, to, state, expected, got, more) in [
        (
            "> 600",
            "> 701",
            "Decide",
            "entered Accept",
            "entered Refuse",
            "/accepted: expected true, got false",
        ),
        (
            "${ .sum }",
            "${ .sum + 1 }",
            "Charge",
            "action score completed",
            "action score completed",
            "/data/arguments/sum: expected 7, got 8",
        ),
        (
            "transition: Decide",
            "transition: Note\n  - {name: Note, type: inject, data: {noted: 1}, transition: Decide}",
            "Charge",
            "entered Decide",
            "entered Note",
            "/noted: not expected, got 1",
        ),
        (
            "refName: score,",
            "refName: rate,",
            "Charge",
            "action score",
            "action rate",
            "no answer is recorded for rate",
        ),
    ] {
        assert!(PAYMENT.contains(from));
        let mut text = PAYMENT.replace(from, to);
        if to.contains("rate") {
            text = text.replace(
                "functions:\n",
                "functions:\n  - {name: rate, type: credit, operation: rate}\n",
            );
        }
        let (code, said) = replay(&text, &[]);
        assert_eq!(code, Some(1), "{said}");
        let line = text
            .lines()
            .position(|line| line.contains(&format!("name: {state}")))
            .unwrap()
            + 1;
        let place = format!("  in state '{state}' ({changed}:{line}):\n");
        let ends = |word: &str, text: &str| {
            let mut lines = said
                .lines()
                .filter(|line| line.trim_start().starts_with(word));
            lines.next().is_some_and(|line| line.ends_with(text))
        };
        assert!(said.contains(&place), "{place}\n{said}");
        assert!(
            ends("expected", expected) && ends("got", got) && said.contains(more),
            "{said}"
        );
    }

    let (code, said) = replay(&PAYMENT.replace("> 600", "> 701"), &["--output", "json"]);
    assert_eq!(code, Some(1));
    let json: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&json["same"], &json["different"]), (&json!(0), &json!(1)));
    assert_eq!(
        json["replays"][0]["first"]["actual"]["entry"]["name"],
        "Refuse"
    );
    // If a replay isn't possible, the reason is shown.
    let (code, said) = replay("id: payment\n", &[]);
    assert!(said.contains("missing-property"), "{said}");
    assert_eq!(code, Some(1));
    let (code, said) = replay(&PAYMENT.replace("id: payment", "id: other"), &[]);
    assert!(said.contains("the recording is of payment"), "{said}");
    assert_eq!(code, Some(2));
    let history = dev.get(&format!("{path}/history")).await.is(200);
    let alone = files.path().join("history.json");
    std::fs::write(&alone, history.to_string()).unwrap();
    let (code, said) = swirl(&["replay", alone.to_str().unwrap(), "--definition", changed]);
    assert!(said.contains("swirl record ID --export FILE"), "{said}");
    assert_eq!(code, Some(2));
}
