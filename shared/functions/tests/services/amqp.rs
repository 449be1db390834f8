//! Messages over AMQP.

use std::time::Duration;

use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind};
use serde_json::{Value, json};
use swirl_model::{Data, data};
use swirl_servers::{Proxy, RabbitServer, eventually};
use tokio::time::timeout;

use crate::services::asyncapi::code;
use crate::services::fixture::{basic, bearer};
use crate::services::listen::{document, function, heard};
use crate::services::silent::{is_renewed, sender};
use crate::services::subscribe::{Rule, all_lumens};

async fn channel(server: &RabbitServer) -> Channel {
    let uri = format!("amqp://{}", server.address());
    let connection = Connection::connect(&uri, ConnectionProperties::default());
    connection.await.unwrap().create_channel().await.unwrap()
}

async fn declare(channel: &Channel, queue: &str) {
    let options = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel.queue_declare(queue.into(), options, FieldTable::default());
    declared.await.unwrap();
}

async fn publish(channel: &Channel, exchange: &str, key: &str, payload: &str) {
    let options = BasicPublishOptions::default();
    let properties = BasicProperties::default().with_delivery_mode(2);
    let payload = payload.as_bytes();
    let sent = channel.basic_publish(exchange.into(), key.into(), options, payload, properties);
    sent.await.unwrap().await.unwrap();
}

/// The payload of the next message in a queue, and its properties.
async fn get(channel: &Channel, queue: &str) -> Option<(Value, BasicProperties)> {
    let options = BasicGetOptions { no_ack: true };
    let got = channel.basic_get(queue.into(), options).await.unwrap()?;
    let payload = serde_json::from_slice(&got.delivery.data).unwrap();
    Some((payload, got.delivery.properties.clone()))
}

// A single test, because a broker takes many seconds to start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_over_amqp() {
    let mut server = RabbitServer::start().unwrap();
    let url = format!("amqp://{}", server.address());
    let plain = document(&url, "light.{id}", json!({}));
    let (tell, hear) = (function(&plain, "tell"), function(&plain, "hear"));
    let own = channel(&server).await;
    declare(&own, "light.7").await;

    // To a queue by its name.
    let arguments = data!({"lumens": 3, "headers": {"place": "north"}});
    assert_eq!(tell.call(arguments).await.unwrap(), Data::NULL);
    let (payload, properties) = get(&own, "light.7").await.unwrap();
    assert_eq!(payload, json!({"lumens": 3}));
    let text = |value: &Option<lapin::types::ShortString>| value.as_ref().unwrap().to_string();
    assert_eq!(text(properties.message_id()), "key-1");
    assert_eq!(text(properties.content_type()), "application/json");
    assert_eq!(*properties.delivery_mode(), Some(2));
    let headers = properties.headers().as_ref().unwrap().inner();
    let place = headers["place"].as_long_string().unwrap();
    assert_eq!(place.as_bytes(), b"north");
    // A missing queue is an error; the message isn't lost silently.
    let (found, message) = code(
        tell.call(data!({"lumens": 3, "id": "8"}))
            .await
            .unwrap_err(),
    );
    assert_eq!(found, "failed");
    assert!(message.contains("no queue accepts it"), "{message}");
    let (found, _) = code(
        tell.call(data!({"lumens": 3, "id": "a.b"}))
            .await
            .unwrap_err(),
    );
    assert_eq!(found, "arguments");

    // One message is taken from a queue, and the others stay.
    publish(&own, "", "light.7", "{\"lumens\": 1}").await;
    publish(&own, "", "light.7", "{\"lumens\": 2}").await;
    assert_eq!(hear.call(data!({})).await.unwrap(), data!({"lumens": 1}));
    assert_eq!(get(&own, "light.7").await.unwrap().0, json!({"lumens": 2}));
    // It is acknowledged when it is stored. If it is never stored, it returns to the queue.
    publish(&own, "", "light.7", "{\"lumens\": 4}").await;
    let (result, stored) = hear.call_unstored(data!({})).await;
    assert_eq!(result.unwrap(), data!({"lumens": 4}));
    assert_eq!(get(&own, "light.7").await, None, "it is not given to two");
    drop(stored);
    let back = eventually("it is back", async || get(&own, "light.7").await).await;
    assert_eq!(back.0, json!({"lumens": 4}));
    publish(&own, "", "light.7", "{\"lumens\": 5}").await;
    let (result, stored) = hear.call_unstored(data!({})).await;
    assert_eq!(result.unwrap(), data!({"lumens": 5}));
    stored.notify().await;
    assert_eq!(get(&own, "light.7").await, None, "it is acknowledged");

    // A subscription of a task that processes each message takes one, and the others stay.
    for lumens in [1, 2, 3] {
        publish(&own, "", "light.7", &format!("{{\"lumens\": {lumens}}}")).await;
    }
    let taken = hear.take(Rule::one_of(1)).await.unwrap();
    assert_eq!(
        all_lumens(&taken),
        [2],
        "the filter doesn't let the first through"
    );
    let (taken, stored) = hear.take_unstored(Rule::one_of(1)).await;
    assert_eq!(all_lumens(&taken.unwrap()), [3]);
    drop(stored);
    let back = eventually("it is back", async || get(&own, "light.7").await).await;
    assert_eq!(back.0, json!({"lumens": 3}));

    // An abandoned wait takes no message.
    assert!(
        timeout(Duration::from_secs(1), hear.call(data!({})))
            .await
            .is_err()
    );
    publish(&own, "", "light.7", "{\"lumens\": 3}").await;
    assert_eq!(hear.call(data!({})).await.unwrap(), data!({"lumens": 3}));
    let (found, message) = code(hear.call(data!({"id": "8"})).await.unwrap_err());
    assert_eq!(found, "failed", "{message}");
    assert!(
        message.contains("NOT-FOUND") || message.contains("NOT_FOUND"),
        "{message}"
    );

    // Over an exchange.
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let made = own.exchange_declare(
        "all".into(),
        ExchangeKind::Topic,
        options,
        FieldTable::default(),
    );
    made.await.unwrap();
    let bound = own.queue_bind(
        "light.7".into(),
        "all".into(),
        "light.*".into(),
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    bound.await.unwrap();
    let routed = |exchange: &str| {
        let binding = json!({"is": "routingKey", "exchange": {"name": exchange}});
        document(&url, "light.{id}", json!({"bindings": {"amqp": binding}}))
    };
    let (tell, hear) = (
        function(&routed("all"), "tell"),
        function(&routed("all"), "hear"),
    );
    tell.call(data!({"lumens": 5, "id": "9"})).await.unwrap();
    assert_eq!(get(&own, "light.7").await.unwrap().0, json!({"lumens": 5}));
    let result = heard(hear.call(data!({"id": "9"})), async || {
        publish(&own, "all", "light.8", "{\"lumens\": 8}").await;
        publish(&own, "all", "light.9", "{\"lumens\": 9}").await;
    });
    assert_eq!(result.await.unwrap(), data!({"lumens": 9}));
    let nowhere = function(&routed("nowhere"), "tell");
    let (found, message) = code(nowhere.call(data!({"lumens": 5})).await.unwrap_err());
    assert_eq!(found, "failed", "{message}");

    // A queue with another name than the channel.
    declare(&own, "readings").await;
    let binding = json!({"is": "queue", "queue": {"name": "readings"}});
    let named = document(&url, "light.{id}", json!({"bindings": {"amqp": binding}}));
    function(&named, "tell")
        .call(data!({"lumens": 6}))
        .await
        .unwrap();
    assert_eq!(
        function(&named, "hear").call(data!({})).await.unwrap(),
        data!({"lumens": 6})
    );

    // With credentials.
    server.control(&["add_user", "ada", "s3cret"]).unwrap();
    server
        .control(&["set_permissions", "ada", "", ".*", ".*"])
        .unwrap();
    let tell = function(&plain, "tell");
    let call = async |auth| tell.request(data!({"lumens": 1}), None, auth).await;
    call(basic("ada", "s3cret")).await.unwrap();
    for auth in [basic("ada", "wrong-one"), bearer("s3cret")] {
        let (found, message) = code(call(auth).await.unwrap_err());
        assert_eq!(found, "auth", "{message}");
        assert!(
            !message.contains("wrong-one") && !message.contains("s3cret"),
            "{message}"
        );
    }

    // A broker whose connection goes silent.
    let proxy = Proxy::start(server.address()).unwrap();
    is_renewed(
        "amqp",
        &proxy,
        &sender(&format!("amqp://{}", proxy.address())),
    )
    .await;

    // A broker that has gone away.
    server.kill().unwrap();
    for (operation, arguments) in [("tell", data!({"lumens": 1})), ("hear", data!({}))] {
        let call = function(&plain, operation);
        let (found, message) = code(call.call(arguments).await.unwrap_err());
        assert_eq!(found, "connection", "{message}");
    }
}
