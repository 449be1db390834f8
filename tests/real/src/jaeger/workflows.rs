//! The definitions and the documents of the services.

use serde_json::{Map, Value, json};
use swirl_servers::{NatsServer, RedisServer};

use super::shop::Shop;

/// Sub-workflows first.
const ALL: [&str; 9] = [
    include_str!("../../workflows/ship.sw.yaml"),
    include_str!("../../workflows/tell.sw.yaml"),
    include_str!("../../workflows/part.sw.yaml"),
    include_str!("../../workflows/calls.sw.yaml"),
    include_str!("../../workflows/order.sw.yaml"),
    include_str!("../../workflows/tasks.sw.yaml"),
    include_str!("../../workflows/faulty.sw.yaml"),
    include_str!("../../workflows/placed.sw.yaml"),
    include_str!("../../workflows/keyed.sw.yaml"),
];

/// Of the service that takes OTLP.
const PROTO: &str = r#"syntax = "proto3";
package opentelemetry.proto.collector.trace.v1;
service TraceService { rpc Export(Nothing) returns (Nothing); }
message Nothing {}
"#;

/// Each definition with the documents that it refers to.
pub fn all(
    shop: &Shop,
    nats: &NatsServer,
    redis: &RedisServer,
) -> Vec<(String, Map<String, Value>)> {
    let names = [
        ("GRPCHOST", shop.grpc.ip().to_string()),
        ("GRPCPORT", shop.grpc.port().to_string()),
        ("GRPC", shop.grpc.to_string()),
        ("HTTP", shop.http.to_string()),
    ];
    let resources = [
        ("shop.json", openapi(shop)),
        ("shop.proto", PROTO.to_owned()),
        (
            "web.json",
            asyncapi("http", &shop.http.to_string(), "asyncapi/told"),
        ),
        ("nats.json", asyncapi("nats", &nats.address(), "shop.told")),
        (
            "redis.json",
            asyncapi("redis", &redis.address(), "shop.told"),
        ),
    ];
    let with = |text: &str| {
        let text = names.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        });
        let used = resources.iter().filter(|(name, _)| text.contains(name));
        let used = used.map(|(name, document)| ((*name).to_owned(), json!(document)));
        let used = used.collect();
        (text, used)
    };
    ALL.iter().map(|text| with(text)).collect()
}

fn openapi(shop: &Shop) -> String {
    let operation = |name: &str| json!({"post": {"operationId": name, "responses": {"200": {"description": "done"}}}});
    let paths =
        ["ok", "flaky", "busy", "slow"].map(|name| (format!("/rest/{name}"), operation(name)));
    json!({
        "openapi": "3.0.3", "info": {"title": "shop", "version": "1"},
        "servers": [{"url": format!("http://{}", shop.http)}],
        "paths": Map::from_iter(paths),
    })
    .to_string()
}

/// A service that takes messages.
fn asyncapi(protocol: &str, host: &str, address: &str) -> String {
    json!({
        "asyncapi": "3.0.0", "info": {"title": "shop", "version": "1"},
        "servers": {"one": {"host": host, "protocol": protocol}},
        "channels": {"told": {"address": address, "messages": {"told": {"payload": {"type": "object"}}}}},
        "operations": {"told": {"action": "receive", "channel": {"$ref": "#/channels/told"}}},
    })
    .to_string()
}
