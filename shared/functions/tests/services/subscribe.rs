//! Subscriptions, which take several messages in one call.

use std::time::Duration;

use serde_json::{Value, json};
use swirl_model::messages::Consumes;
use swirl_model::{Data, WorkflowError, data};
use swirl_servers::{MosquittoServer, NatsServer, RedisServer};

use crate::asyncapi::code;
use crate::fixture::config;
use crate::listen::{document, function, heard};

/// Takes readings of more than one lumen.
#[derive(Debug)]
struct Rule {
    amount: usize,
    span: Option<Duration>,
}

impl Consumes for Rule {
    fn span(&self) -> Option<Duration> {
        self.span
    }

    fn takes(&self, message: &Data) -> bool {
        lumens(message) > 1
    }

    fn is_enough(&self, taken: &[Data]) -> Result<bool, WorkflowError> {
        Ok(taken.len() >= self.amount)
    }
}

fn lumens(message: &Data) -> i64 {
    let payload = message.get("payload").unwrap_or_default();
    payload
        .get("lumens")
        .map_or(0, |count| count.to_text().parse().unwrap_or_default())
}

fn all_lumens(list: &Data) -> Vec<i64> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| lumens(&Data(item.clone()))).collect()
}

/// Sends readings of one, two and three lumens until a subscription has what it wants.
async fn subscribe(document: &str) {
    let (tell, hear) = (function(document, "tell"), function(document, "hear"));
    let say = async || {
        for count in 1..=3 {
            tell.call(data!({"lumens": count})).await.unwrap();
        }
    };
    let enough = Rule {
        amount: 5,
        span: None,
    };
    let taken = heard(hear.take(enough), async || say().await)
        .await
        .unwrap();
    let taken = all_lumens(&taken);
    assert_eq!(taken.len(), 5);
    // None is lost between two others.
    for two in taken.windows(2) {
        assert_eq!(two[0] + two[1], 5, "{taken:?}");
    }
    // The messages that have come when the time is over.
    let some = || Rule {
        amount: 1000,
        span: Some(Duration::from_millis(1500)),
    };
    let taken = heard(hear.take(some()), async || say().await)
        .await
        .unwrap();
    assert!(!all_lumens(&taken).is_empty());
    assert_eq!(hear.take(some()).await.unwrap(), data!([]));
    let nothing = Rule {
        amount: 0,
        span: None,
    };
    assert_eq!(hear.take(nothing).await.unwrap(), data!([]));
}

#[tokio::test]
async fn messages_are_taken_over_nats() {
    let server = NatsServer::start().unwrap();
    let text = document(&server.url(), "light.{id}", json!({}));
    subscribe(&text).await;
    // Headers, and the correlation id that the document finds there.
    let mut all: Value = serde_json::from_str(&text).unwrap();
    let message = &mut all["channels"]["readings"]["messages"]["reading"];
    message["correlationId"] = json!({"location": "$message.header#/case"});
    let hear = function(&all.to_string(), "hear");
    let client = async_nats::connect(server.url()).await.unwrap();
    let one = Rule {
        amount: 1,
        span: None,
    };
    let taken = heard(hear.take(one), async || {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("case", "c1");
        let sent = client.publish_with_headers("light.7", headers, r#"{"lumens": 2}"#.into());
        sent.await.unwrap();
    });
    let expected =
        data!([{"payload": {"lumens": 2}, "headers": {"case": "c1"}, "correlationId": "c1"}]);
    assert_eq!(taken.await.unwrap(), expected);
}

#[tokio::test]
async fn messages_are_taken_over_mqtt() {
    let broker = MosquittoServer::start().unwrap();
    for version in ["5", "3.1.1"] {
        let server = format!("mqtt://{}", broker.address());
        let text = document(&server, "light/{id}", json!({}));
        let mut all: Value = serde_json::from_str(&text).unwrap();
        all["servers"]["broker"]["protocolVersion"] = json!(version);
        subscribe(&all.to_string()).await;
    }
}

#[tokio::test]
async fn messages_are_taken_over_redis() {
    let server = RedisServer::start().unwrap();
    subscribe(&document(&server.url(), "light:{id}", json!({}))).await;
}

#[tokio::test]
async fn all_messages_together_have_a_limit() {
    let server = NatsServer::start().unwrap();
    let text = document(&server.url(), "light.{id}", json!({}));
    let mut small = config();
    small.response_bytes_max = 100;
    let hear = crate::listen::made_with(&text, "hear", Data::NULL, small).unwrap();
    let tell = function(&text, "tell");
    let many = Rule {
        amount: 1000,
        span: None,
    };
    let result = heard(hear.take(many), async || {
        for _ in 0..20 {
            tell.call(data!({"lumens": 2})).await.unwrap();
        }
    });
    let (found, message) = code(result.await.unwrap_err());
    assert_eq!(found, "limit");
    assert!(message.contains("more than 100 bytes"), "{message}");
}
