//! Operations in which the service sends messages and the function waits for one.

use std::cell::Cell;
use std::time::Duration;

use serde_json::{Value, json};
use swirl_functions::http::HttpConfig;
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, WorkflowError, data};
use swirl_servers::{MosquittoServer, NatsServer, RedisServer, eventually};
use tokio::time::timeout;

use crate::services::asyncapi::{URI, code};
use crate::services::fixture::{Callable, basic, config};

/// AsyncAPI 3: `tell` sends a message to the service, `hear` waits for one from it. `channel`: further members of the
/// channel.
pub fn document(server: &str, address: &str, channel: Value) -> String {
    let (protocol, host) = server.split_once("://").unwrap();
    let mut readings = json!({
        "address": address,
        "parameters": {"id": {"default": "7"}},
        "messages": {
            "reading": {"payload": {
                "type": "object",
                "required": ["lumens"],
                "properties": {"lumens": {"type": "integer"}},
            }},
            "note": {"contentType": "text/plain", "payload": {"type": "string", "minLength": 1}},
        },
    });
    for (key, value) in channel.as_object().into_iter().flatten() {
        readings[key] = value.clone();
    }
    let to = json!({"$ref": "#/channels/readings"});
    json!({
        "asyncapi": "3.0.0",
        "servers": {"broker": {"host": host, "protocol": protocol}},
        "channels": {"readings": readings},
        "operations": {
            "tell": {"action": "receive", "channel": to},
            "hear": {"action": "send", "channel": to},
        },
    })
    .to_string()
}

pub fn function(document: &str, operation: &str) -> Callable {
    made(document, operation, Data::NULL).unwrap()
}

pub fn made(document: &str, operation: &str, metadata: Data) -> Result<Callable, String> {
    made_with(document, operation, metadata, config())
}

pub fn made_with(
    document: &str,
    operation: &str,
    metadata: Data,
    config: HttpConfig,
) -> Result<Callable, String> {
    let operation = format!("{URI}#{operation}");
    let documents = [(URI, document)];
    let kind = FunctionKind::Asyncapi;
    Callable::with(kind, &operation, metadata, &documents, config)
}

/// The result of a wait while messages are sent repeatedly.
pub async fn heard(
    wait: impl Future<Output = Result<Data, WorkflowError>>,
    send: impl AsyncFn(),
) -> Result<Data, WorkflowError> {
    let mut wait = std::pin::pin!(wait);
    let heard = eventually("a message", async || {
        // Time has to pass: messages sent before the wait begins aren't received.
        match timeout(Duration::from_millis(200), &mut wait).await {
            Ok(result) => Some(result),
            Err(_) => {
                send().await;
                None
            }
        }
    });
    heard.await
}

/// Waits until a wait has begun, which cannot be observed from outside.
async fn begun(wait: impl Future<Output = Result<Data, WorkflowError>>) {
    // Time has to pass: much more than connecting takes.
    assert!(timeout(Duration::from_secs(2), wait).await.is_err());
}

/// Sends messages through `tell` that `hear` must receive, and others that it must not receive.
async fn exchange(document: &str) {
    let (tell, hear) = (function(document, "tell"), function(document, "hear"));
    let say = async |arguments: Data| {
        tell.call(arguments).await.unwrap();
    };
    let result = heard(hear.call(data!({})), async || {
        say(data!({"lumens": 3})).await
    })
    .await;
    assert_eq!(result.unwrap(), data!({"lumens": 3}));
    // Other messages are sent to another address.
    let result = heard(hear.call(data!({"id": "8"})), async || {
        say(data!({"lumens": 3})).await;
        say(data!({"id": "8", "payload": "a note"})).await;
    });
    assert_eq!(result.await.unwrap(), data!("a note"));
    for (arguments, reason) in [
        (
            data!({"lumens": 1}),
            "the argument `lumens` isn't used: `hear` waits for a message",
        ),
        (data!(5), "the arguments must be an object"),
        (
            data!({"id": null}),
            "the parameter `id` of the channel is missing",
        ),
    ] {
        let (found, message) = code(hear.call(arguments).await.unwrap_err());
        assert_eq!(found, "arguments");
        assert!(message.contains(reason), "{message}");
    }
}

#[tokio::test]
async fn a_message_is_received_over_nats() {
    let mut server = NatsServer::start().unwrap();
    let text = document(&server.url(), "light.{id}", json!({}));
    exchange(&text).await;

    // A payload that fits no message of the operation.
    let client = async_nats::connect(server.url()).await.unwrap();
    let send = async |payload: &'static str| {
        client.publish("light.7", payload.into()).await.unwrap();
    };
    let hear = function(&text, "hear");
    let result = heard(hear.call(data!({})), async || send("").await).await;
    let (found, message) = code(result.unwrap_err());
    assert_eq!(found, "response");
    assert!(
        message.contains("message from `light.7`")
            && message
                .contains("it fits none of the 2 messages; the first: the payload doesn't fit"),
        "{message}"
    );

    // A wait survives a restart of the server.
    let wait = hear.call(data!({}));
    let mut wait = std::pin::pin!(wait);
    begun(&mut wait).await;
    server.restart().unwrap();
    let tell = function(&text, "tell");
    let result = heard(wait, async || {
        let _ = tell.call(data!({"lumens": 4})).await;
    });
    assert_eq!(result.await.unwrap(), data!({"lumens": 4}));
    // A wait that cannot begin is an error.
    server.kill().unwrap();
    let hear = function(&text, "hear");
    let (found, message) = code(hear.call(data!({})).await.unwrap_err());
    assert_eq!(found, "connection", "{message}");
}

#[tokio::test]
async fn one_of_a_group_receives_a_message_over_nats() {
    let server = NatsServer::start().unwrap();
    let text = document(&server.url(), "light.{id}", json!({}));
    let mut grouped: Value = serde_json::from_str(&text).unwrap();
    grouped["operations"]["hear"]["bindings"] = json!({"nats": {"queue": "readers"}});
    let hear = function(&grouped.to_string(), "hear");
    let client = async_nats::connect(server.url()).await.unwrap();
    let mut waits = futures::stream::FuturesUnordered::new();
    waits.push(hear.call(data!({})));
    waits.push(hear.call(data!({})));
    // Only one of them receives each message, and messages sent before the wait are not received.
    let sent = Cell::new(0);
    let mut all = Vec::new();
    while !waits.is_empty() {
        let next = futures::StreamExt::next(&mut waits);
        let error_parts = heard(async { next.await.unwrap() }, async || {
            sent.set(sent.get() + 1);
            let payload = format!("{{\"lumens\": {}}}", sent.get());
            client.publish("light.7", payload.into()).await.unwrap();
        });
        all.push(error_parts.await.unwrap());
    }
    assert_ne!(all[0], all[1]);
}

#[tokio::test]
async fn a_message_is_received_over_mqtt() {
    let mut broker = MosquittoServer::start().unwrap();
    for version in ["5", "3.1.1"] {
        let server = format!("mqtt://{}", broker.address());
        let text = document(&server, "light/{id}", json!({}));
        let mut all: Value = serde_json::from_str(&text).unwrap();
        all["servers"]["broker"]["protocolVersion"] = json!(version);
        exchange(&all.to_string()).await;
    }
    // A wait survives a restart of the broker.
    let text = document(
        &format!("mqtt://{}", broker.address()),
        "light/{id}",
        json!({}),
    );
    let (tell, hear) = (function(&text, "tell"), function(&text, "hear"));
    let mut wait = std::pin::pin!(hear.call(data!({})));
    begun(&mut wait).await;
    broker.kill().unwrap();
    broker.restart().unwrap();
    let result = heard(wait, async || {
        let _ = tell.call(data!({"lumens": 4})).await;
    });
    assert_eq!(result.await.unwrap(), data!({"lumens": 4}));
}

#[tokio::test]
async fn messages_go_over_redis() {
    let mut server = RedisServer::start().unwrap();
    let text = document(&server.url(), "light:{id}", json!({}));
    exchange(&text).await;
    let (tell, hear) = (function(&text, "tell"), function(&text, "hear"));
    for (arguments, reason) in [
        (
            data!({"lumens": 1, "id": "a:b"}),
            "the parameter `id` has a ':'",
        ),
        (
            data!({"lumens": 1, "headers": {"a": "b"}}),
            "messages of Redis have no headers",
        ),
    ] {
        let (found, message) = code(tell.call(arguments).await.unwrap_err());
        assert_eq!(found, "arguments");
        assert!(message.contains(reason), "{message}");
    }
    // A wait survives a restart of the server, and the next call gets a new connection.
    let mut wait = std::pin::pin!(hear.call(data!({})));
    begun(&mut wait).await;
    server.restart().unwrap();
    tell.call(data!({"lumens": 4})).await.unwrap();
    let result = heard(wait, async || {
        tell.call(data!({"lumens": 4})).await.unwrap();
    });
    assert_eq!(result.await.unwrap(), data!({"lumens": 4}));

    server
        .cli(&["CONFIG", "SET", "requirepass", "s3cret"])
        .unwrap();
    for operation in [&tell, &hear] {
        let arguments = || match std::ptr::eq(operation, &tell) {
            true => data!({"lumens": 1}),
            false => data!({}),
        };
        for auth in [None, basic("default", "wrong-one")] {
            // The kept connection is logged in already.
            let fresh = function(
                &text,
                if std::ptr::eq(operation, &tell) {
                    "tell"
                } else {
                    "hear"
                },
            );
            let (found, message) = code(fresh.request(arguments(), None, auth).await.unwrap_err());
            assert_eq!(found, "auth", "{message}");
            assert!(!message.contains("wrong-one"), "{message}");
        }
    }
    let auth = basic("default", "s3cret");
    tell.request(data!({"lumens": 1}), None, auth)
        .await
        .unwrap();
    server.kill().unwrap();
    for (operation, arguments) in [(&tell, data!({"lumens": 1})), (&hear, data!({}))] {
        let (found, message) = code(operation.call(arguments).await.unwrap_err());
        assert_eq!(found, "connection", "{message}");
    }
}

#[tokio::test]
async fn the_direction_can_be_set() {
    let text = document("nats://127.0.0.1:1", "light.{id}", json!({}));
    let refused = |operation: &str, metadata: Data| {
        made(&text, operation, metadata).err().unwrap_or_default()
    };
    assert_eq!(refused("hear", Data::NULL), "");
    assert_eq!(refused("hear", data!({"action": "publish"})), "");
    assert_eq!(refused("tell", data!({"action": "subscribe"})), "");
    let error = refused("tell", data!({"action": "send"}));
    assert!(
        error.contains("`metadata.action` is `publish` or `subscribe`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_wait_times_out() {
    let server = NatsServer::start().unwrap();
    let text = document(&server.url(), "light.{id}", json!({}));
    let mut short = config();
    short.timeout = Duration::from_millis(500);
    let operation = format!("{URI}#hear");
    let kind = FunctionKind::Asyncapi;
    let hear = Callable::with(kind, &operation, Data::NULL, &[(URI, &text)], short).unwrap();
    let (found, message) = code(hear.call(data!({})).await.unwrap_err());
    assert_eq!(found, "timeout", "{message}");
}
