//! Subscriptions, which take several messages in one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use swirl_model::messages::Consumes;
use swirl_model::{Data, WorkflowError, data};
use swirl_servers::{MosquittoServer, NatsServer, RedisServer, until};

use crate::services::asyncapi::code;
use crate::services::fixture::{Callable, config};
use crate::services::listen::{document, function, heard};

/// Takes readings of more than one lumen.
#[derive(Debug, Default)]
pub struct Rule {
    amount: usize,
    span: Option<Duration>,
    /// The call takes one message of this subscription.
    number: Option<u32>,
}

impl Rule {
    pub fn of(amount: usize) -> Rule {
        Rule {
            amount,
            ..Rule::default()
        }
    }

    pub fn one_of(number: u32) -> Rule {
        Rule {
            amount: 1,
            number: Some(number),
            ..Rule::default()
        }
    }
}

impl Consumes for Rule {
    fn span(&self) -> Option<Duration> {
        self.span
    }

    fn subscription(&self) -> Option<u32> {
        self.number
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

pub fn all_lumens(list: &Data) -> Vec<i64> {
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
        ..Rule::default()
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
        ..Rule::default()
    };
    let taken = heard(hear.take(some()), async || say().await)
        .await
        .unwrap();
    assert!(!all_lumens(&taken).is_empty());
    assert_eq!(hear.take(some()).await.unwrap(), data!([]));
    let nothing = Rule {
        amount: 0,
        span: None,
        ..Rule::default()
    };
    assert_eq!(hear.take(nothing).await.unwrap(), data!([]));
    step_by_step(&tell, &hear).await;
}

/// While the task processes a message, the next ones wait.
async fn step_by_step(tell: &Callable, hear: &Callable) {
    let say = async |counts: &[i64]| {
        for count in counts {
            tell.call(data!({"lumens": *count})).await.unwrap();
        }
    };
    let first = heard(hear.take(Rule::one_of(1)), async || say(&[2]).await);
    assert_eq!(all_lumens(&first.await.unwrap()), [2]);
    say(&[1, 7, 8, 9]).await;
    let mut taken = Vec::new();
    // The first may have come several times, until it was heard.
    while taken.last() != Some(&8) {
        taken.extend(all_lumens(&hear.take(Rule::one_of(1)).await.unwrap()));
    }
    taken.retain(|count| *count != 2);
    assert_eq!(taken, [7, 8], "in their order, and none is lost");
    // One whose result isn't stored is taken again.
    for _ in 0..2 {
        let (result, stored) = hear.take_unstored(Rule::one_of(1)).await;
        assert_eq!(all_lumens(&result.unwrap()), [9]);
        drop(stored);
    }
    let again = hear.take(Rule::one_of(1)).await.unwrap();
    assert_eq!(all_lumens(&again), [9]);
    // Others of the scope stay, this one ends.
    say(&[3]).await;
    hear.keep_subscriptions(&[1, 2]);
    let kept = hear.take(Rule::one_of(1)).await.unwrap();
    assert_eq!(all_lumens(&kept), [3]);
    say(&[4]).await;
    hear.keep_subscriptions(&[2]);
    let new = heard(hear.take(Rule::one_of(1)), async || say(&[5]).await);
    assert_eq!(all_lumens(&new.await.unwrap()), [5]);
    hear.keep_subscriptions(&[]);
    // What has come when the time is over is taken.
    let timed = || Rule {
        span: Some(Duration::from_millis(1500)),
        ..Rule::one_of(3)
    };
    let first = heard(hear.take(timed()), async || say(&[2, 3]).await);
    assert_eq!(all_lumens(&first.await.unwrap()), [2]);
    // Time has to pass: the subscription ends by itself.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let over = || Rule {
        span: Some(Duration::ZERO),
        ..Rule::one_of(3)
    };
    assert_eq!(all_lumens(&hear.take(over()).await.unwrap()), [3]);
    let mut last = hear.take(over()).await.unwrap();
    while last != data!([]) {
        last = hear.take(over()).await.unwrap();
    }
    hear.keep_subscriptions(&[]);
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
        ..Rule::default()
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

/// Takes the message of 2 lumens, and is busy with the first other one until the flood is over.
#[derive(Debug)]
struct Busy(Arc<Flood>);

#[derive(Debug, Default)]
struct Flood {
    has_reached: AtomicBool,
    is_over: AtomicBool,
}

impl Consumes for Busy {
    fn span(&self) -> Option<Duration> {
        None
    }

    fn takes(&self, message: &Data) -> bool {
        self.0.has_reached.store(true, Ordering::Relaxed);
        let is_over = || self.0.is_over.load(Ordering::Relaxed).then_some(());
        until("the end of the flood", is_over);
        lumens(message) == 2
    }

    fn is_enough(&self, taken: &[Data]) -> Result<bool, WorkflowError> {
        Ok(!taken.is_empty())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn redis_keeps_messages_that_nobody_has_taken_yet() {
    let server = RedisServer::start().unwrap();
    let hear = function(&document(&server.url(), "light:{id}", json!({})), "hear");
    let flood = Arc::new(Flood::default());
    let busy = Busy(Arc::clone(&flood));
    let taken = tokio::spawn(async move { hear.take(busy).await });
    let client = redis::Client::open(server.url()).unwrap();
    let mut client = client.get_multiplexed_async_connection().await.unwrap();
    let mut publish = async |lumens: u32, beside: usize| -> u64 {
        let message = json!({"lumens": lumens, "beside": "x".repeat(beside)}).to_string();
        let mut publish = redis::cmd("PUBLISH");
        let publish = publish.arg("light:7").arg(message);
        publish.query_async(&mut client).await.unwrap()
    };
    while !flood.has_reached.load(Ordering::Relaxed) {
        publish(1, 0).await;
    }
    for _ in 0..28 {
        assert_eq!(publish(1, 1 << 20).await, 1);
    }
    publish(2, 0).await;
    let mut list = redis::cmd("CLIENT");
    let list: String = list
        .arg(&["LIST", "TYPE", "pubsub"])
        .query_async(&mut client)
        .await
        .unwrap();
    let (_, kept) = list.split_once(" omem=").unwrap();
    let kept: usize = kept.split(' ').next().unwrap().parse().unwrap();
    assert!(kept > 4 << 20, "{list}");
    flood.is_over.store(true, Ordering::Relaxed);
    let taken = taken.await.unwrap().unwrap();
    assert_eq!(all_lumens(&taken), [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_flood_of_one_subscription_is_no_matter_for_others() {
    let server = NatsServer::start().unwrap();
    let hear = function(&document(&server.url(), "light.{id}", json!({})), "hear");
    let hear = Arc::new(hear);
    let flood = Arc::new(Flood::default());
    let busy = Busy(Arc::clone(&flood));
    let other = Rule {
        amount: 1,
        ..Rule::default()
    };
    let [flooded, other] = [
        {
            let hear = Arc::clone(&hear);
            tokio::spawn(async move { hear.take(busy).await })
        },
        tokio::spawn(async move { hear.take_of(data!({"id": "8"}), other).await }),
    ];
    let client = async_nats::connect(server.url()).await.unwrap();
    let publish = async |subject: &'static str, message: &'static str| {
        client.publish(subject, message.into()).await.unwrap();
    };
    while !flood.has_reached.load(Ordering::Relaxed) {
        publish("light.7", r#"{"lumens": 1}"#).await;
        client.flush().await.unwrap();
    }
    for _ in 0..5000 {
        publish("light.7", r#"{"lumens": 1}"#).await;
    }
    publish("light.7", r#"{"lumens": 2}"#).await;
    client.flush().await.unwrap();
    flood.is_over.store(true, Ordering::Relaxed);
    let flooded = flooded.await.unwrap().unwrap();
    assert_eq!(all_lumens(&flooded), [2]);
    let heard = heard(async { other.await.unwrap() }, async || {
        publish("light.8", r#"{"lumens": 3}"#).await;
    });
    assert_eq!(all_lumens(&heard.await.unwrap()), [3]);
}

#[tokio::test]
async fn all_messages_together_have_a_limit() {
    let server = NatsServer::start().unwrap();
    let text = document(&server.url(), "light.{id}", json!({}));
    let mut small = config();
    small.response_bytes_max = 100;
    let hear = crate::services::listen::made_with(&text, "hear", Data::NULL, small).unwrap();
    let tell = function(&text, "tell");
    let many = Rule {
        amount: 1000,
        span: None,
        ..Rule::default()
    };
    let result = heard(hear.take(many), async || {
        for _ in 0..20 {
            tell.call(data!({"lumens": 2})).await.unwrap();
        }
    });
    let (found, message) = code(result.await.unwrap_err());
    assert_eq!(found, "limit");
    assert!(message.contains("more than 100 bytes"), "{message}");
    // Those that wait for their turn, too.
    let step = || hear.take(Rule::one_of(1));
    let first = heard(step(), async || {
        tell.call(data!({"lumens": 2})).await.unwrap();
    });
    first.await.unwrap();
    for _ in 0..20 {
        tell.call(data!({"lumens": 2})).await.unwrap();
    }
    let error = loop {
        if let Err(error) = step().await {
            break error;
        }
    };
    let (found, message) = code(error);
    assert_eq!(found, "limit");
    assert!(
        message.contains("faster than they are processed"),
        "{message}"
    );
}
