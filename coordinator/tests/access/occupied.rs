//! Instances by state, where there are more than are counted.

use reqwest::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;
use swirl_coordinator::access::Access;
use swirl_ports::ExecutionStore;

use crate::batches::instance;
use crate::running::{Reads, Setup, client};

const DOCUMENT: &str = "id: flow
version: '1'
specVersion: '0.8'
start: A
states:
  - {name: A, type: sleep, duration: PT1H, end: true}
";

#[tokio::test(flavor = "multi_thread")]
async fn the_count_has_a_limit_and_says_so() {
    let setup = Setup {
        reader: Arc::new(Reads),
        ..Setup::new(Access::open("shop"))
    };
    let store = setup.store.clone();
    let running = setup.start().await;
    let deploy = client().post(running.url("/api/v1/definitions"));
    let deploy = deploy.header("content-type", "application/yaml");
    let answer = deploy.body(DOCUMENT).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let states = async || -> Value {
        let url = running.url("/api/v1/definitions/flow/1/states");
        let answer = client().get(url).send().await.unwrap();
        answer.json().await.unwrap()
    };
    let elsewhere =
        |running: u64| json!({"running": running, "waiting": 0, "suspended": 0, "faulted": 0});
    for number in 0..500 {
        store.create(instance(&format!("i{number}"))).await.unwrap();
    }
    let all = states().await;
    assert_eq!(
        (&all["complete"], &all["counted"], &all["elsewhere"]),
        (&json!(true), &json!(500), &elsewhere(500)),
        "{all:#}"
    );
    store.create(instance("one-more")).await.unwrap();
    let cut = states().await;
    assert_eq!(
        (&cut["complete"], &cut["counted"]),
        (&json!(false), &json!(500)),
        "{cut:#}"
    );
    let page = running.url("/console/definitions/flow/1");
    let page = client().get(page).send().await.unwrap();
    let page = page.text().await.unwrap();
    assert!(
        page.contains("There are too many instances to count all of them."),
        "{page}"
    );
}

/// A picture of everything would take seconds of each request, and tens of megabytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_definition_has_a_simple_picture() {
    const STATES: usize = 50;
    let setup = Setup {
        reader: Arc::new(Reads),
        ..Setup::new(Access::open("shop"))
    };
    let running = setup.start().await;
    // From each state to each.
    let state = |from: usize| {
        let condition = |to| json!({"condition": "${ .n == 1 }", "transition": format!("S{to}")});
        let conditions: Vec<Value> = (0..STATES).map(condition).collect();
        json!({
            "name": format!("S{from}"),
            "type": "switch",
            "dataConditions": conditions,
            "defaultCondition": {"end": true},
        })
    };
    let states: Vec<Value> = (0..STATES).map(state).collect();
    let document = json!({"id": "dense", "version": "1", "specVersion": "0.8", "states": states});
    let deploy = client().post(running.url("/api/v1/definitions"));
    let answer = deploy.body(document.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    for path in ["diagram", "states?diagram=true"] {
        let url = running.url(&format!("/api/v1/definitions/dense/1/{path}"));
        let answer = client().get(url).send().await.unwrap();
        let drawn = answer.text().await.unwrap();
        assert!(drawn.len() < 100_000, "{path}: {}", drawn.len());
        assert!(drawn.contains("too large to be drawn"), "{path}: {drawn}");
        assert!(drawn.contains(">S49<"), "{path}: {drawn}");
    }
}
