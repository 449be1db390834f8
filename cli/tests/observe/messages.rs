//! Calls that send messages, made by a worker.

use async_nats::HeaderMap;
use futures::StreamExt;
use serde_json::{Value, json};
use swirl_servers::{NatsServer, PATIENCE};

use crate::observe::processes::Cluster;

fn definition() -> Value {
    json!({
        "id": "tell", "version": "1.0.0", "specVersion": "0.8",
        "functions": [{"name": "tell", "type": "asyncapi", "operation": "service.json#told"}],
        "states": [{"name": "Tell", "type": "operation", "end": true, "actions": [
            {"functionRef": {"refName": "tell", "arguments": {"order": 7}}},
        ]}],
    })
}

fn document(host: &str) -> String {
    let payload = json!({"type": "object"});
    json!({
        "asyncapi": "3.0.0", "info": {"title": "shop", "version": "1"},
        "servers": {"one": {"host": host, "protocol": "nats"}},
        "channels": {"told": {"address": "shop.told", "messages": {"told": {"payload": payload}}}},
        "operations": {"told": {"action": "receive", "channel": {"$ref": "#/channels/told"}}},
    })
    .to_string()
}

/// The worker connects for it, deep in the drive of the scope: without enough of a stack it would end there.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_connects_and_sends() {
    let mut cluster = Cluster::start(1, &[]).await;
    // The cluster's own is out of reach for calls.
    let server = NatsServer::start().unwrap();
    let nats = async_nats::connect(server.url()).await.unwrap();
    let mut told = nats.subscribe("shop.told").await.unwrap();
    nats.flush().await.unwrap();
    let service = document(&server.address());
    cluster.deploy(&definition(), &service).await;
    let id = cluster.start_instance("tell").await;
    let message = tokio::time::timeout(PATIENCE, told.next()).await;
    let message = message.unwrap_or_else(|_| panic!("{}", cluster.logs()));
    let headers: Option<HeaderMap> = message.unwrap().headers;
    assert!(headers.unwrap().get("traceparent").is_some());
    assert_eq!(cluster.end(&id).await, "completed");
    // It ends as asked, not by a signal of its own.
    cluster.workers[0].stop().await;
}
