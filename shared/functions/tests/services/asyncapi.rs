//! Messages to brokers and services that are described by an AsyncAPI document.

use std::time::Duration;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, Publish};
use rumqttc::v5::{AsyncClient, Event, MqttOptions};
use serde_json::{Value, json};
use swirl_model::data;
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, WorkflowError};
use swirl_servers::{MosquittoOptions, MosquittoServer, PATIENCE, eventually};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::services::fixture::{
    Callable, Server, basic, bearer, config, error_parts, json as answer,
};

pub const URI: &str = "file://streetlightsapi.yaml";

/// The example document of the language specification, with this server, and with a parameter in the channel.
pub fn document(server: &str) -> String {
    format!(
        "
asyncapi: 2.1.0
info: {{title: Streetlights API, version: 1.0.0}}
servers:
  broker: {server}
channels:
  light/measured:
    publish: &measured
      summary: Inform about environmental lighting conditions for a particular streetlight.
      operationId: onLightMeasured
      message:
        name: LightMeasured
        payload:
          type: object
          properties:
            id: {{$ref: '#/components/schemas/id'}}
            lumens: {{type: integer, minimum: 0}}
            sentAt: {{type: string, format: date-time}}
  light/{{id}}/{{what}}:
    parameters:
      id: {{schema: {{type: integer}}}}
      what: {{schema: {{type: string, default: state}}}}
    publish:
      <<: *measured
      operationId: onLight
      bindings: {{mqtt: {{qos: 2, retain: true}}}}
    subscribe: {{operationId: lights}}
components:
  schemas:
    id: {{type: integer, minimum: 0}}
"
    )
}

pub fn function(document: &str, operation: &str) -> Callable {
    make(document, operation, Data::NULL).unwrap()
}

pub fn make(document: &str, operation: &str, metadata: Data) -> Result<Callable, String> {
    let kind = FunctionKind::Asyncapi;
    let operation = format!("{URI}#{operation}");
    Callable::with(kind, &operation, metadata, &[(URI, document)], config())
}

pub fn code(error: WorkflowError) -> (String, String) {
    let (_, code, _, message) = error_parts(error);
    (code, message)
}

/// Checks that a call of a stopped server doesn't end. The server may take a moment to stop.
pub async fn does_not_end(call: impl AsyncFn() -> Result<Data, WorkflowError>) {
    eventually("a call without an answer", async || {
        // Time has to pass: more than an answer takes.
        let answered = timeout(Duration::from_secs(1), call()).await;
        answered.is_err().then_some(())
    })
    .await;
}

fn mqtt(broker: &MosquittoServer, more: &str) -> String {
    let address = broker.address();
    document(&format!(
        "{{url: 'mqtt://{address}', protocol: mqtt{more}}}"
    ))
}

/// The messages that are published to a topic.
async fn subscribe(port: u16, topic: &str) -> UnboundedReceiver<Publish> {
    let options = MqttOptions::new("the-test", "127.0.0.1", port);
    let (client, mut events) = AsyncClient::new(options, 10);
    client.subscribe(topic, QoS::ExactlyOnce).await.unwrap();
    let (sender, receiver) = unbounded_channel();
    let (ready, mut is_ready) = unbounded_channel();
    tokio::spawn(async move {
        let _client = client;
        while let Ok(event) = events.poll().await {
            match event {
                Event::Incoming(Packet::SubAck(_)) => ready.send(()).unwrap(),
                Event::Incoming(Packet::Publish(publish)) => {
                    // The receiver is gone after a test has ended.
                    let _ = sender.send(publish);
                }
                _ => {}
            }
        }
    });
    is_ready.recv().await.unwrap();
    receiver
}

async fn next<T>(receiver: &mut UnboundedReceiver<T>) -> T {
    timeout(PATIENCE, receiver.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_specifications_example_is_sent_over_mqtt() {
    let broker = MosquittoServer::start().unwrap();
    let mut messages = subscribe(broker.port(), "light/#").await;
    let publish = function(&mqtt(&broker, ""), "onLightMeasured");
    let payload = json!({"id": 7, "lumens": 300, "sentAt": "2024-01-01T00:00:00Z"});
    for _ in 0..3 {
        let result = publish.call(Data::from(payload.clone())).await.unwrap();
        assert_eq!(result, Data::NULL);
        let message = next(&mut messages).await;
        assert_eq!(message.topic, "light/measured");
        let sent: Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(sent, payload);
        let properties = message.properties.unwrap();
        assert_eq!(properties.content_type.as_deref(), Some("application/json"));
        let key = ("Idempotency-Key".to_owned(), "key-1".to_owned());
        assert_eq!(properties.user_properties, [key]);
    }
    // One connection served all three calls.
    let log = std::fs::read_to_string(broker.log()).unwrap();
    assert_eq!(log.matches("as swirl").count(), 1, "{log}");

    // Parameters. One that the payload has too stays in the payload. Quality of service 2.
    let publish = function(&mqtt(&broker, ""), "onLight");
    publish.call(data!({"id": 7, "what": "on"})).await.unwrap();
    let message = next(&mut messages).await;
    assert_eq!(message.topic, "light/7/on");
    assert_eq!(&message.payload[..], b"{\"id\":7}");
    assert_eq!(message.qos, QoS::ExactlyOnce);
    publish.call(data!({"id": 8})).await.unwrap();
    assert_eq!(next(&mut messages).await.topic, "light/8/state");
    let (found, message) = code(
        publish
            .call(data!({"id": 8, "what": "a/b"}))
            .await
            .unwrap_err(),
    );
    assert_eq!(found, "arguments");
    assert!(
        message.contains("the parameter `what` has a '/'"),
        "{message}"
    );
    let (_, message) = code(publish.call(data!({"lumens": 8})).await.unwrap_err());
    assert!(
        message.contains("the parameter `id` of the channel is missing"),
        "{message}"
    );
}

#[tokio::test]
async fn mqtt_3_is_used_if_the_document_says_so() {
    let broker = MosquittoServer::start().unwrap();
    let mut messages = subscribe(broker.port(), "light/#").await;
    let document = mqtt(&broker, ", protocolVersion: 3.1.1");
    for operation in ["onLightMeasured", "onLight"] {
        function(&document, operation)
            .call(data!({"id": 1}))
            .await
            .unwrap();
        assert_eq!(&next(&mut messages).await.payload[..], b"{\"id\":1}");
    }
    // `p2` means MQTT 3.1.1 in the broker's log; version 5 would be `p5`.
    let log = std::fs::read_to_string(broker.log()).unwrap();
    assert_eq!(log.matches("(p2, c1, k10)").count(), 2, "{log}");
}

#[tokio::test]
async fn credentials_are_sent_to_a_broker() {
    let broker = MosquittoServer::start_with(MosquittoOptions {
        login: Some(("ada".to_owned(), "s3cret".to_owned())),
    })
    .unwrap();
    for version in ["", ", protocolVersion: '3.1.1'"] {
        let publish = function(&mqtt(&broker, version), "onLightMeasured");
        let call = async |auth| publish.request(data!({"id": 1}), None, auth).await;
        assert_eq!(call(basic("ada", "s3cret")).await.unwrap(), Data::NULL);
        for (auth, reason) in [
            (None, "refused"),
            (basic("ada", "wrong-one"), "refused"),
            (bearer("s3cret"), "MQTT takes auth of scheme `basic`"),
        ] {
            let (code, message) = code(call(auth).await.unwrap_err());
            assert_eq!(code, "auth", "{message}");
            assert!(message.contains(reason), "{message}");
            assert!(!message.contains("s3cret") && !message.contains("wrong-one"));
        }
    }
}

#[tokio::test]
async fn a_restarted_broker_is_used_again() {
    let mut broker = MosquittoServer::start().unwrap();
    let publish = function(&mqtt(&broker, ""), "onLightMeasured");
    let call = async || publish.call(data!({"id": 1})).await;
    call().await.unwrap();
    broker.kill().unwrap();
    let (found, message) = code(call().await.unwrap_err());
    assert_eq!(found, "connection");
    let start = format!("message to `light/measured` at {}: ", broker.address());
    assert!(message.starts_with(&start), "{message}");
    broker.restart().unwrap();
    // The kept connection is broken.
    call().await.unwrap();
    broker.kill().unwrap();
    broker.restart().unwrap();
    call().await.unwrap();
    // A silent broker costs only the time limit of the call.
    broker.pause().unwrap();
    does_not_end(call).await;
}

#[tokio::test]
async fn over_http_the_answer_is_the_result() {
    let server = Server::start(|seen| match seen.uri.path() {
        "/api/light/measured" => answer(200, &json!({"got": seen.body})),
        _ => (503, "text/plain", "dark".to_owned()),
    })
    .await;
    let document = document(&format!(
        "{{url: '{}/{{base}}', protocol: http, variables: {{base: {{default: api}}}}}}",
        server.base
    ));
    let measured = function(&document, "onLightMeasured");
    let arguments = data!({"id": 7, "headers": {"x-place": "north"}});
    let result = measured
        .request(arguments, None, bearer("s3cret-token"))
        .await;
    assert_eq!(result.unwrap(), data!({"got": {"id": 7}}));
    let seen = &server.seen()[0];
    assert_eq!(seen.method.as_str(), "POST");
    assert_eq!(seen.header("idempotency-key"), "key-1");
    assert_eq!(seen.header("authorization"), "Bearer s3cret-token");
    assert_eq!(seen.header("x-place"), "north");
    let light = function(&document, "onLight");
    let error = light
        .call(data!({"id": 7, "what": "a/b ?"}))
        .await
        .unwrap_err();
    let (_, code, status, message) = error_parts(error);
    assert_eq!((code.as_str(), status), ("503", Some(503)));
    assert!(
        message.contains("/api/light/7/a%2Fb%20%3F: 503"),
        "{message}"
    );
}

#[tokio::test]
async fn invalid_messages_are_not_sent() {
    let server = Server::start(|_| answer(200, &json!(null))).await;
    let document = document(&format!("{{url: '{}', protocol: http}}", server.base));
    let measured = function(&document, "onLightMeasured");
    for (arguments, reason) in [
        (
            data!({"lumens": "s3cret"}),
            "message `LightMeasured`: payload/lumens: ",
        ),
        (data!({"id": -1}), "payload/id: "),
        (data!({"payload": [1]}), "payload: "),
        (
            data!({"payload": {}, "id": 1}),
            "so `id` can't be added to it",
        ),
        (data!({"headers": 1}), "`headers` must be an object"),
    ] {
        let (code, message) = code(measured.call(arguments).await.unwrap_err());
        assert_eq!(code, "arguments");
        assert!(message.contains(reason), "{message}");
        assert!(
            message.starts_with("operation `onLightMeasured`: "),
            "{message}"
        );
        assert!(!message.contains("s3cret"), "{message}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_server_can_be_chosen() {
    let server = Server::start(|_| answer(200, &json!(1))).await;
    let two = format!(
        "
  pulsar: {{url: 'k:6650', protocol: pulsar}}
  second: {{url: '{}', protocol: http}}
  third: {{url: 'http://127.0.0.1:1', protocol: http}}",
        server.base
    );
    let document = document("{url: 'b', protocol: pulsar}")
        .replace("\nchannels:", &format!("{two}\nchannels:"));
    // The first supported one; one by name; one by URL.
    for (metadata, is_ok) in [
        (data!(null), true),
        (data!({"server": "third"}), false),
        (data!({"server": "second"}), true),
        (data!({"server": server.base}), true),
    ] {
        let function = make(&document, "onLightMeasured", metadata.clone()).unwrap();
        assert_eq!(
            function.call(data!({"id": 1})).await.is_ok(),
            is_ok,
            "{metadata}"
        );
    }
    for (server, reason) in [
        (
            "pulsar",
            "the server `pulsar` speaks `pulsar`, which this version doesn't speak; it speaks amqp, ",
        ),
        (
            "fourth",
            "the channel has no server `fourth`; it has broker, pulsar, second, third",
        ),
        ("stomp://127.0.0.1", "speaks `stomp`"),
        ("mqtt://u:p@127.0.0.1", "its URL has credentials"),
    ] {
        let made = make(&document, "onLightMeasured", data!({"server": server}));
        let error = made.err().unwrap();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn unsupported_operations_are_rejected_at_deployment() {
    let good = document("{url: 'mqtt://b', protocol: mqtt}");
    for (document, operation, reason) in [
        (
            good.clone(),
            "onLightMeasurd",
            "did you mean `onLightMeasured`?",
        ),
        (
            good.replace("2.1.0", "1.2.0"),
            "onLight",
            "AsyncAPI version 1.2.0 is not supported",
        ),
        ("a: 1".to_owned(), "onLight", "not an AsyncAPI document"),
        ("{".to_owned(), "onLight", "neither JSON nor YAML"),
        (
            good.replace("'#/components/schemas/id'", "'other.yaml#/id'"),
            "onLight",
            "it refers to `file://other.yaml`, which isn't among the definition's resources",
        ),
        (
            good.replace(
                "operationId: onLight\n",
                "operationId: onLight\n      tags: [{$ref: 'ftp://h/a'}]\n",
            ),
            "onLight",
            "it refers to `ftp://h/a`, which isn't among the definition's resources",
        ),
        (
            good.replace("minimum: 0", "minimum: x"),
            "onLight",
            "this is not a valid schema",
        ),
        (
            good.replace("qos: 2", "qos: 3"),
            "onLight",
            "it is 0, 1 or 2",
        ),
        (
            good.replace(
                "name: LightMeasured",
                "schemaFormat: application/vnd.apache.avro;version=1.9.0",
            ),
            "onLight",
            "the format `application/vnd.apache.avro;version=1.9.0` isn't supported",
        ),
        (
            good.replace("mqtt://b", "{host}"),
            "onLight",
            "the variable `host` has no default",
        ),
    ] {
        let error = make(&document, operation, Data::NULL).err().unwrap();
        assert!(
            error.starts_with(&format!("`{URI}`: ")) && error.contains(reason),
            "{error}"
        );
    }
}

#[tokio::test]
async fn documents_may_refer_to_other_documents() {
    let server = Server::start(|seen| answer(200, &json!({"got": seen.body}))).await;
    let main = format!(
        "
asyncapi: 3.0.0
servers: {{main: {{host: '{}', protocol: http}}}}
operations:
  tell: {{action: receive, channel: {{$ref: 'parts/channels.yaml#/light'}}}}
  other: {{action: receive, channel: {{$ref: 'nowhere.yaml#/a'}}}}
components: {{schemas: {{id: {{type: integer, minimum: 0}}}}}}
",
        server.base.trim_start_matches("http://")
    );
    let channels = "
light:
  address: light
  messages: {one: {payload: {$ref: '../schemas/light.json'}}}
";
    let schema = "{\"properties\": {\"id\": {\"$ref\": \"../streetlightsapi.yaml#/components/schemas/id\"}}}";
    let documents = [
        (URI, main.as_str()),
        ("file://parts/channels.yaml", channels),
        ("file://schemas/light.json", schema),
    ];
    let operation = format!("{URI}#tell");
    let kind = FunctionKind::Asyncapi;
    let tell = Callable::with(kind, &operation, Data::NULL, &documents, config()).unwrap();
    let result = tell.call(data!({"id": 7})).await;
    assert_eq!(result.unwrap(), data!({"got": {"id": 7}}));
    let (found, message) = code(tell.call(data!({"id": -1})).await.unwrap_err());
    assert_eq!(found, "arguments");
    assert!(message.contains("payload/id: "), "{message}");
}
