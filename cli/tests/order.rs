//! Events of one key reach their instance in the order in which they were published.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use swirl_chaos::Cluster;
use swirl_servers::eventually;

const ORDERS: usize = 4;
const EVENTS: usize = 60;

/// Waits for one event after another, and notes what each of them says.
fn collector() -> Value {
    json!({
        "id": "collector", "version": "1.0.0", "specVersion": "0.8", "name": "c", "start": "begin",
        "events": [{"name": "step", "type": "step", "source": "/test", "correlation": [
            {"contextAttributeName": "order", "contextAttributeValue": "${ .order }"}]}],
        "states": [
            {"name": "begin", "type": "inject", "data": {"all": []}, "transition": "take"},
            {"name": "take", "type": "event", "transition": "next",
                "onEvents": [{"eventRefs": ["step"], "actions": [],
                    "eventDataFilter": {"data": "${ .n }", "toStateData": "${ .last }"}}],
                "stateDataFilter": {"output": "${ . + {all: (.all + [.last])} }"}},
            {"name": "next", "type": "switch",
                "dataConditions": [
                    {"condition": format!("${{ (.all | length) < {EVENTS} }}"), "transition": "take"}],
                "defaultCondition": {"end": true}},
        ],
    })
}

/// With an attribute that nobody correlates by, and that each has for itself.
#[tokio::test(flavor = "multi_thread")]
async fn one_coordinator_keeps_the_order_of_each_key() {
    let binary = Path::new(env!("CARGO_BIN_EXE_swirl"));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cluster = Cluster::start(binary, 2, 1, Duration::from_secs(3), false).unwrap();
    let server = cluster.apis().remove(0);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = async |path: &str, body: Value| -> Value {
        let request = http.post(format!("{server}/api/v1/{path}"));
        let request = request.header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    };
    post("definitions", collector()).await;
    let mut ids = Vec::new();
    for order in 0..ORDERS {
        let started = post(
            "workflows/collector/instances",
            json!({"order": order.to_string()}),
        );
        ids.push(started.await["id"].as_str().unwrap().to_owned());
    }

    let nats = async_nats::connect(cluster.nats.url()).await.unwrap();
    for n in 0..EVENTS {
        for order in 0..ORDERS {
            let event = json!({
                "specversion": "1.0", "id": format!("{order}-{n}"), "source": "/test", "type": "step",
                "order": order.to_string(), "sequence": n.to_string(), "data": {"n": n},
            });
            let payload = event.to_string().into();
            nats.publish("swirl.events.step", payload).await.unwrap();
        }
    }
    nats.flush().await.unwrap();

    let expected: Vec<usize> = (0..EVENTS).collect();
    for id in ids {
        let ended = eventually("its end", async || {
            let answer = http
                .get(format!("{server}/api/v1/instances/{id}"))
                .send()
                .await;
            let text = answer.unwrap().text().await.unwrap();
            let view: Value = serde_json::from_str(&text).unwrap();
            (view["status"] != "running").then_some(view)
        })
        .await;
        assert_eq!(ended["output"]["all"], json!(expected), "{ended:#}");
    }
}
