//! Every route of the API, over HTTP.
//!
//! One process serves all parts, so that gaps can be found at the end: each operation of `openapi.json` must have
//! answered with each status that the document lists, and each code of a refusal that the documentation lists must have
//! occurred.

mod audit;
mod batches;
mod called;
mod changes;
mod console;
mod definitions;
mod events;
mod guard;
mod inspect;
mod instances;
mod large;
mod lifecycle;
mod migrate;
mod operate;
mod rehearsals;
mod removed;
mod rewind;
mod search;
mod start;
mod states;
mod steer;
mod system;
mod tasks;
mod views;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::dev::http::{JSON, Seen};
use crate::dev::process::{Dev, demo};

/// Codes that occur only if a store or machine is broken, or when the server stops. `tests/contract` covers the code
/// for effects that are not carried out yet.
const BROKEN: [&str; 8] = [
    "definition-broken",
    "internal",
    "no-randomness",
    "still-busy",
    "stopping",
    "store-damaged",
    "store-unavailable",
    "timeout",
];
/// Codes that only a coordinator uses: `swirl dev` requires no tokens, has no dead letters, and doesn't limit starts.
/// The code for deployments needs many concurrent requests, those for queries need many instances
/// (coordinator/tests/access). The code for rehearsals needs several at once. The codes for bodies and answers need time or much memory (shared/process/http-server, coordinator/tests/access).
const GUARDED: [&str; 15] = [
    "body-too-slow",
    "query-too-broad",
    "too-many-instances",
    "letter-cut",
    "letter-of-task",
    "too-many-deployments",
    "too-many-answers",
    "too-many-bodies",
    "too-many-refusals",
    "rehearsals-off",
    "too-many-rehearsals",
    "too-many-starts",
    "forbidden",
    "provider-unavailable",
    "unauthenticated",
];

const WAITER: &str = r#"
id: waiter
version: "1.0.0"
specVersion: "0.8"
events:
  - name: Go
    type: test.go
    source: /test
    correlation: [{contextAttributeName: order, contextAttributeValue: "${ .order }"}]
states:
  - name: Begin
    type: inject
    data: {begun: true}
    transition: Wait
  - name: Wait
    type: event
    onEvents: [{eventRefs: [Go]}]
    end: true
"#;

const STARTER: &str = r#"
id: starter
version: "1.0.0"
specVersion: "0.8"
events: [{name: Begin, type: test.begin, source: /test}]
states:
  - {name: Start, type: event, onEvents: [{eventRefs: [Begin]}], end: true}
"#;

const PAIR: &str = r#"
id: pair
version: "1.0.0"
specVersion: "0.8"
events:
  - {name: Left, type: test.left, source: /test}
  - {name: Right, type: test.right, source: /test}
states:
  - {name: Start, type: event, exclusive: false, onEvents: [{eventRefs: [Left]}, {eventRefs: [Right]}], end: true}
"#;

const TIMED: &str = r#"
id: timed
version: "1.0.0"
specVersion: "0.8"
start: {stateName: Only, schedule: R/PT1H}
states:
  - {name: Only, type: inject, data: {a: 1}, end: true}
"#;

/// Fails as often as its input says.
const FAULTY: &str = r#"
id: faulty
version: "1.0.0"
specVersion: "0.8"
functions:
  - {name: flaky, operation: "http://ADDRESS/openapi.json#flaky"}
states:
  - name: Prepare
    type: inject
    data: {prepared: true}
    transition: Work
  - name: Work
    type: operation
    actions:
      - functionRef: {refName: flaky, arguments: {key: "${ .key }", failures: "${ .failures }"}}
        actionDataFilter: {toStateData: .result}
    end: true
"#;

/// Handles the failure of its sub-workflow.
const TAKER: &str = r#"
id: taker
version: "1.0.0"
specVersion: "0.8"
errors: [{name: Any, code: "*"}]
states:
  - name: Sub
    type: operation
    actions: [{subFlowRef: faulty}]
    onErrors: [{errorRef: Any, end: true}]
    end: true
"#;

fn greeting(version: &str) -> String {
    format!(
        "id: greeting\nversion: {version}\nspecVersion: '0.8'\nstates:\n  - name: Greet\n    \
         type: inject\n    data: {{version: {version}}}\n    end: true\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route() {
    let address = demo().await;
    let folder = tempfile::tempdir().unwrap();
    for (name, document) in [
        ("waiter", WAITER),
        ("faulty", FAULTY),
        ("taker", TAKER),
        ("passer", removed::PASSER),
        ("torn", removed::TORN),
        ("late", removed::LATE),
        ("branched", batches::BRANCHED),
        ("orders", called::ORDERS),
        ("wide", large::WIDE),
        ("long", large::LONG),
        ("starter", STARTER),
        ("pair", PAIR),
        ("timed", TIMED),
        ("hourly", steer::HOURLY),
        ("found", search::FOUND),
        ("found-late", search::FOUND_LATE),
        ("tasks", tasks::TASKS),
    ] {
        let file = folder.path().join(format!("{name}.sw.yaml"));
        std::fs::write(file, document.replace("ADDRESS", &address)).unwrap();
    }
    let dev = Dev::start(folder.path()).await;
    guard::check(&dev).await;
    definitions::check(&dev).await;
    rehearsals::check(&dev).await;
    start::check(&dev).await;
    instances::check(&dev).await;
    operate::check(&dev).await;
    removed::check(&dev).await;
    batches::check(&dev).await;
    tasks::check(&dev).await;
    migrate::check(&dev).await;
    rewind::check(&dev).await;
    called::check(&dev).await;
    search::check(&dev).await;
    search::attributes(&dev).await;
    large::check(&dev).await;
    events::check(&dev).await;
    inspect::check(&dev).await;
    steer::check(&dev).await;
    views::check(&dev).await;
    states::check(&dev).await;
    changes::check(&dev).await;
    system::check(&dev).await;
    console::check(&dev).await;
    lifecycle::check(&dev).await;
    definitions::running_instances_keep_theirs(&dev).await;
    audit::check(&dev).await;
    dev.get("/api/v1/instances/%ff").await.is(400);

    let document = dev.get("/api/v1/openapi.json").await.is(200);
    let seen = dev.http.seen();
    assert_eq!(unseen_statuses(&document, &seen), BTreeSet::new());
    assert_eq!(unseen_codes(&seen), BTreeSet::new());
}

/// The statuses that the document lists and that no request returned.
fn unseen_statuses(document: &Value, seen: &[Seen]) -> BTreeSet<String> {
    let mut unseen = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(responses) = operation["responses"].as_object() else {
                continue;
            };
            for status in responses.keys().filter(|status| *status != "default") {
                let is_seen = seen.iter().any(|seen| {
                    seen.method == *method
                        && seen.status.to_string() == *status
                        && matches(path, &seen.path)
                });
                // One process has no dead letters; cli/tests/dead_letters.rs covers them.
                let is_letter = path.starts_with("/api/v1/dead-letters/") && status != "404";
                let elsewhere = [
                    // Of a process that only a restart helps: coordinator/src/api.
                    ("/healthz", "503"),
                    ("/readyz", "503"),
                    ("/api/v1/batches", "422"),
                    // They are switched off there: coordinator/tests/access.
                    ("/api/v1/rehearsals", "403"),
                ];
                let is_elsewhere =
                    is_letter || elsewhere.contains(&(path.as_str(), status.as_str()));
                if !is_seen && !is_elsewhere {
                    unseen.insert(format!("{method} {path}: {status}"));
                }
            }
        }
    }
    unseen
}

fn matches(template: &str, path: &str) -> bool {
    let (template, path): (Vec<&str>, Vec<&str>) =
        (template.split('/').collect(), path.split('/').collect());
    let fits = |(template, part): (&&str, &&str)| template == part || template.starts_with('{');
    template.len() == path.len() && template.iter().zip(&path).all(fits)
}

/// The codes that docs/api.md lists and that no refusal had.
fn unseen_codes(seen: &[Seen]) -> BTreeSet<String> {
    let page = include_str!("../../../../docs/api.md");
    let (_, listed) = page.split_once("with a stable `code`:").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let mut unseen: BTreeSet<String> = listed
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    assert!(unseen.len() > 20, "{unseen:?}");
    let seen: BTreeSet<String> = seen.iter().filter_map(|seen| seen.code.clone()).collect();
    let undocumented: Vec<&String> = seen.difference(&unseen).collect();
    assert!(
        undocumented.is_empty(),
        "docs/api.md lacks {undocumented:?}"
    );
    unseen.retain(|code| {
        let elsewhere = BROKEN.iter().chain(&GUARDED).any(|known| known == code);
        !seen.contains(code) && !elsewhere
    });
    unseen
}

/// Starts an instance and returns its id.
async fn started(dev: &Dev, workflow: &str, input: Value) -> String {
    let path = format!("/api/v1/workflows/{workflow}/instances");
    let answer = dev.post(&path, &[JSON], input.to_string()).await.is(201);
    answer["id"].as_str().unwrap().to_owned()
}

/// The instance, once it has this status.
async fn having(dev: &Dev, id: &str, status: &str) -> Value {
    let there = |instance: &Value| instance["status"] == status;
    dev.until(&format!("/api/v1/instances/{id}"), status, there)
        .await
}

/// Returns a waiter, once it waits.
async fn waiting(dev: &Dev, order: &str) -> String {
    let id = started(dev, "waiter", json!({"order": order})).await;
    let there = |instance: &Value| instance["scopes"][0]["waitsFor"].is_array();
    dev.until(&format!("/api/v1/instances/{id}"), "waiting", there)
        .await;
    id
}
