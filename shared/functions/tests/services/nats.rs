//! Messages over NATS.

use futures::StreamExt as _;
use serde_json::{Value, json};
use swirl_model::{Data, data};
use swirl_servers::{NatsOptions, NatsServer};

use crate::services::asyncapi::{code, document, does_not_end, function, make};
use crate::services::fixture::{basic, bearer};

fn nats(server: &NatsServer) -> String {
    let port = server.port();
    let variables = format!("variables: {{port: {{default: {port}}}}}");
    document(&format!(
        "{{url: '127.0.0.1:{{port}}', protocol: nats, {variables}}}"
    ))
    .replace("light/measured", "light.measured")
    .replace("light/{id}/{what}", "light.{id}.{what}")
}

/// AsyncAPI 3 with a reply.
fn document_3(server: &NatsServer) -> String {
    json!({
        "asyncapi": "3.0.0",
        "servers": {"broker": {"host": server.address(), "protocol": "nats"}},
        "channels": {"price": {
            "address": "price.{item}",
            "servers": [{"$ref": "#/servers/broker"}],
            "parameters": {"item": {"enum": ["book", "pen"], "location": "$message.payload#/item"}},
            "messages": {
                "plain": {"payload": {"type": "object", "required": ["item"]}},
                "note": {"contentType": "text/plain", "payload": {"type": "string"}},
            },
        }},
        "operations": {
            "ask": {"action": "receive", "channel": {"$ref": "#/channels/price"}, "reply": {}},
            "tell": {
                "action": "receive",
                "channel": {"$ref": "#/channels/price"},
                "messages": [{"$ref": "#/channels/price/messages/note"}],
            },
        },
    })
    .to_string()
}

/// Returns when the server has processed the client's subscriptions.
async fn settle(client: &async_nats::Client) {
    let inbox = client.new_inbox();
    let mut echo = client.subscribe(inbox.clone()).await.unwrap();
    client.publish(inbox, "".into()).await.unwrap();
    echo.next().await.unwrap();
}

#[tokio::test]
async fn a_message_is_sent_with_its_id() {
    let mut server = NatsServer::start().unwrap();
    let document = nats(&server);
    let (measured, light) = (
        function(&document, "onLightMeasured"),
        function(&document, "onLight"),
    );
    {
        let client = async_nats::connect(server.url()).await.unwrap();
        let mut messages = client.subscribe("light.>").await.unwrap();
        settle(&client).await;
        let arguments = data!({"id": 7, "headers": {"Place": "north"}});
        assert_eq!(measured.call(arguments).await.unwrap(), Data::NULL);
        light.call(data!({"id": 8})).await.unwrap();
        let first = messages.next().await.unwrap();
        assert_eq!(first.subject.as_str(), "light.measured");
        let sent: Value = serde_json::from_slice(&first.payload).unwrap();
        assert_eq!(sent, json!({"id": 7}));
        let headers = first.headers.unwrap();
        let header = |name: &str| headers.get(name).map(|value| value.as_str());
        assert_eq!(header("Nats-Msg-Id"), Some("key-1"));
        assert_eq!(header("Content-Type"), Some("application/json"));
        assert_eq!(header("Place"), Some("north"));
        assert_eq!(
            messages.next().await.unwrap().subject.as_str(),
            "light.8.state"
        );
    }
    let error = light
        .call(data!({"id": 8, "what": "a.>"}))
        .await
        .unwrap_err();
    assert_eq!(code(error).0, "arguments");

    // The server is stopped and restarted.
    server.kill().unwrap();
    let (found, message) = code(measured.call(data!({"id": 7})).await.unwrap_err());
    assert_eq!(found, "connection", "{message}");
    server.restart().unwrap();
    measured.call(data!({"id": 7})).await.unwrap();
    server.pause().unwrap();
    does_not_end(async || measured.call(data!({"id": 7})).await).await;
}

#[tokio::test]
async fn a_stream_drops_duplicates() {
    let server = NatsServer::start().unwrap();
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let stream = jetstream.create_stream(async_nats::jetstream::stream::Config {
        name: "light".to_owned(),
        subjects: vec!["light.>".to_owned()],
        ..Default::default()
    });
    let mut stream = stream.await.unwrap();
    let measured = function(&nats(&server), "onLightMeasured");
    for _ in 0..3 {
        measured.call(data!({"id": 7})).await.unwrap();
    }
    assert_eq!(stream.info().await.unwrap().state.messages, 1);
}

#[tokio::test]
async fn a_reply_is_the_result() {
    let server = NatsServer::start().unwrap();
    let document = document_3(&server);
    let ask = function(&document, "ask");
    let (found, message) = code(ask.call(data!({"item": "book"})).await.unwrap_err());
    assert_eq!(found, "connection");
    assert!(message.contains("no responders"), "{message}");

    let client = async_nats::connect(server.url()).await.unwrap();
    let mut asked = client.subscribe("price.*").await.unwrap();
    settle(&client).await;
    tokio::spawn(async move {
        while let Some(message) = asked.next().await {
            if let Some(reply) = message.reply {
                let answer = format!("{{\"price\": 5, \"of\": {:?}}}", message.subject.as_str());
                client.publish(reply, answer.into()).await.unwrap();
            }
        }
    });
    let result = ask.call(data!({"item": "book"})).await.unwrap();
    assert_eq!(result, data!({"price": 5, "of": "price.book"}));
    let (_, message) = code(ask.call(data!({"item": "car"})).await.unwrap_err());
    assert!(
        message.contains("the parameter `item` must be one of \"book\", \"pen\""),
        "{message}"
    );
    let (_, message) = code(ask.call(data!({})).await.unwrap_err());
    assert!(
        message.contains("none of the 2 messages fits; the first: "),
        "{message}"
    );

    let tell = function(&document, "tell");
    let arguments = data!({"item": "pen", "payload": "it writes"});
    assert_eq!(tell.call(arguments).await.unwrap(), Data::NULL);
}

#[tokio::test]
async fn the_servers_permissions_are_reported() {
    let permissions = "authorization { users: [ \
        {user: ada, password: s3cret, permissions: {publish: [\"light.measured\"], subscribe: \">\"}}, \
        {user: bob, password: s3cret} ] }";
    let server = NatsServer::start_with(NatsOptions {
        config: permissions.to_owned(),
        ..NatsOptions::default()
    })
    .unwrap();
    let document = nats(&server);
    let (measured, light) = (
        function(&document, "onLightMeasured"),
        function(&document, "onLight"),
    );
    for user in ["ada", "bob"] {
        // Ada may not publish to her own inbox.
        let sent = measured
            .request(data!({"id": 1}), None, basic(user, "s3cret"))
            .await;
        assert_eq!(sent.unwrap(), Data::NULL);
    }
    let sent = light
        .request(data!({"id": 1}), None, basic("ada", "s3cret"))
        .await;
    let (found, message) = code(sent.unwrap_err());
    assert_eq!(found, "auth", "{message}");
    assert!(message.contains("the server refused it"), "{message}");
    for auth in [None, basic("ada", "wrong-one"), bearer("wrong-one")] {
        let sent = measured.request(data!({"id": 1}), None, auth).await;
        let (found, message) = code(sent.unwrap_err());
        assert_eq!(found, "auth", "{message}");
        assert!(!message.contains("wrong-one"), "{message}");
    }

    let server = NatsServer::start_with(NatsOptions {
        config: "authorization { token: s3cret }".to_owned(),
        ..NatsOptions::default()
    })
    .unwrap();
    let chosen = data!({"server": server.url()});
    let measured = make(&document, "onLightMeasured", chosen).unwrap();
    let sent = measured
        .request(data!({"id": 1}), None, bearer("s3cret"))
        .await;
    assert_eq!(sent.unwrap(), Data::NULL);
}
