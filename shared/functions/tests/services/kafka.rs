//! Messages over Kafka, with librdkafka's mock brokers.

use serde_json::{Value, json};
use swirl_functions::egress::Egress;
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, data};
use swirl_servers::KafkaMock;

use crate::services::asyncapi::{URI, code};
use crate::services::fixture::{Callable, bearer, config};
use crate::services::listen::{document, function, heard};

fn keyed(server: &KafkaMock) -> String {
    let url = format!("kafka://{}", server.address());
    let mut all: Value = serde_json::from_str(&document(&url, "light.{id}", json!({}))).unwrap();
    all["channels"]["readings"]["messages"]["reading"]["bindings"] =
        json!({"kafka": {"key": {"type": "string"}}});
    all.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_over_kafka() {
    let server = KafkaMock::start(2).unwrap();
    let text = keyed(&server);
    let (tell, hear) = (function(&text, "tell"), function(&text, "hear"));
    let (found, message) = code(tell.call(data!({"lumens": 1})).await.unwrap_err());
    assert_eq!(found, "failed");
    assert!(
        message.contains("the cluster has no topic `light.7`"),
        "{message}"
    );

    // Messages with one key go to one partition, in the order in which they were sent.
    server.produce("light.7", "k:{\"lumens\": 0}\n").unwrap();
    for lumens in [1, 2, 3] {
        let arguments = json!({"lumens": lumens, "key": "abc", "headers": {"place": "north"}});
        let result = tell.call(Data::from(arguments)).await;
        assert_eq!(result.unwrap(), Data::NULL);
    }
    let all = server.consume("light.7", 4).unwrap();
    let own: Vec<&str> = all.lines().filter(|line| line.contains(" abc ")).collect();
    assert_eq!(own.len(), 3, "{all}");
    for (line, lumens) in own.iter().zip(1..) {
        // The hash of `abc` is 479470107, and there are four partitions.
        assert!(line.starts_with("3 abc "), "{line}");
        assert!(
            line.ends_with(&format!(" {{\"lumens\":{lumens}}}")),
            "{line}"
        );
        for header in [
            "place=north",
            "Idempotency-Key=key-1",
            "Content-Type=application/json",
        ] {
            assert!(line.contains(header), "{line}");
        }
    }

    // Messages that were sent before the wait aren't received. Later messages to any partition are.
    let result = heard(hear.call(data!({})), async || {
        server
            .produce("light.7", "x:{\"lumens\": 50}\ny:{\"lumens\": 50}\n")
            .unwrap();
    });
    assert_eq!(result.await.unwrap(), data!({"lumens": 50}));

    let (found, message) = code(
        tell.request(data!({"lumens": 1}), None, bearer("s3cret"))
            .await
            .unwrap_err(),
    );
    assert_eq!(found, "auth");
    assert!(
        message.contains("Kafka takes auth of scheme `basic`"),
        "{message}"
    );
    let (found, message) = code(
        tell.call(data!({"lumens": 1, "id": "a b"}))
            .await
            .unwrap_err(),
    );
    assert_eq!(found, "arguments");
    assert!(
        message.contains("the parameter `id` has a ' ', which topics don't have"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_cannot_redirect_to_forbidden_addresses() {
    let server = loop {
        let server = KafkaMock::start(2).unwrap();
        server.produce("light.7", "k:{\"lumens\": 0}\n").unwrap();
        if server.leads(&server.brokers()[1], "light.7").unwrap() {
            break server;
        }
    };
    let text = keyed(&server);
    let operation = format!("{URI}#tell");
    let tell = |own: u16| {
        let mut config = config();
        config.egress = Egress::default().without([("127.0.0.1".to_owned(), own)]);
        let kind = FunctionKind::Asyncapi;
        Callable::with(kind, &operation, Data::NULL, &[(URI, &text)], config).unwrap()
    };
    let port = |address: &str| address.rsplit(':').next().unwrap().parse().unwrap();
    // The first broker that is contacted, and another one that it names. Only messages to that one's partitions need
    // it.
    for own in [port(server.address()), port(&server.brokers()[1])] {
        let mut refused = None;
        for key in 0..32 {
            let arguments = data!({"lumens": 1, "key": (key.to_string())});
            if let Err(error) = tell(own).call(arguments).await {
                refused = Some(code(error));
                break;
            }
        }
        let (found, message) = refused.expect("all messages went there");
        assert_eq!(found, "arguments", "{message}");
        assert!(
            message.contains("a server of this installation"),
            "{message}"
        );
    }
    tell(1).call(data!({"lumens": 1})).await.unwrap();
}

#[tokio::test]
async fn a_missing_cluster_is_an_error() {
    let text = document("kafka://127.0.0.1:1", "light.{id}", json!({}));
    for (operation, arguments) in [("tell", data!({"lumens": 1})), ("hear", data!({}))] {
        let call = function(&text, operation);
        let (found, message) = code(call.call(arguments).await.unwrap_err());
        assert_eq!(found, "connection", "{message}");
    }
}
