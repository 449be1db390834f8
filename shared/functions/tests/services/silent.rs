//! Services whose connections go silent: a call ends within its limit, and the next one has a new connection.

use std::time::{Duration, Instant};

use serde_json::json;
use swirl_functions::http::HttpConfig;
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, data};
use swirl_servers::{MosquittoServer, NatsServer, Proxy, RedisServer};

use crate::services::asyncapi::{URI, code};
use crate::services::fixture::{Callable, Server, config, json as answer};
use crate::services::listen::document;

/// The limit of a call.
const LIMIT: Duration = Duration::from_secs(2);

fn limited() -> HttpConfig {
    HttpConfig {
        timeout: LIMIT,
        ..config()
    }
}

/// A function that sends messages to a broker.
pub fn sender(url: &str) -> Callable {
    let text = document(url, "light.{id}", json!({}));
    let (operation, documents) = (format!("{URI}#tell"), [(URI, text.as_str())]);
    let kind = FunctionKind::Asyncapi;
    Callable::with(kind, &operation, Data::NULL, &documents, limited()).unwrap()
}

pub async fn is_renewed(what: &str, proxy: &Proxy, function: &Callable) {
    let call = || function.call(data!({"lumens": 1}));
    call().await.unwrap();
    proxy.silence();
    let begun = Instant::now();
    // A caller may notice it during the call.
    if let Err(error) = call().await {
        let (found, message) = code(error);
        let is_silence = matches!(found.as_str(), "timeout" | "connection");
        assert!(is_silence, "{what}: {found}: {message}");
    }
    assert!(begun.elapsed() < 2 * LIMIT, "{what}: {:?}", begun.elapsed());
    let renewed = call().await.map_err(code);
    assert!(renewed.is_ok(), "{what}: {renewed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_http_and_to_brokers_get_new_connections() {
    let server = Server::start(|_| answer(200, &json!({}))).await;
    let proxy = Proxy::start(server.base.trim_start_matches("http://")).unwrap();
    let operation = format!("rest:post:http://{}/light", proxy.address());
    let custom = FunctionKind::Custom("custom".to_owned());
    let http = Callable::with(custom, &operation, Data::NULL, &[], limited()).unwrap();
    is_renewed("http", &proxy, &http).await;

    let nats = NatsServer::start().unwrap();
    let redis = RedisServer::start().unwrap();
    let mosquitto = MosquittoServer::start().unwrap();
    for (protocol, address) in [
        ("nats", nats.address()),
        ("redis", redis.address()),
        ("mqtt", mosquitto.address()),
    ] {
        let proxy = Proxy::start(address).unwrap();
        let tell = sender(&format!("{protocol}://{}", proxy.address()));
        is_renewed(protocol, &proxy, &tell).await;
    }
}
