//! Hostile definitions, events, and clients that hold connections or read what is expensive. Each tries to exhaust
//! shared resources. Ordinary instances run beside them, and must have the same outcome as without them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use async_nats::jetstream;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::api::Api;

/// The pause between two rounds. Each round starts all definitions.
const PAUSE: Duration = Duration::from_secs(2);
/// The number of instances of the most expensive definitions that are started at once.
const AT_ONCE: usize = 8;
/// The number of silent connections, which come from a separate address.
const IDLE: usize = 500;
const IDLE_FROM: [u8; 4] = [127, 0, 0, 9];

/// The bytes of an event's data, and the number of such events that are sent at once.
const EVENT_BYTES: usize = 900_000;
const EVENTS: usize = 4;
/// The number of large events that are published to NATS at once, more than it holds for a connection, and of rounds
/// between two such floods.
const FLOOD: usize = 150;
const FLOOD_ROUNDS: usize = 5;
/// The number of events that become dead letters in a round, and the bytes of a header of each.
const LETTERS: usize = 20;
const LETTER_BYTES: usize = 60_000;
/// The number of requests at once for what is expensive to read.
const READERS: usize = 4;
/// The number of requests whose bodies never become complete, and the bytes that they send of them.
const INCOMPLETE: usize = 50;
const BODY_BYTES: usize = 500_000;

/// The outcome of the hostile activity.
#[derive(Debug, Default)]
pub struct Hostility {
    /// The answer to each deployment.
    pub deployed: BTreeMap<&'static str, u16>,
    pub started: usize,
    /// The number of starts that were refused or not answered.
    pub refused: usize,
    /// The number of connections that were held in all rounds.
    pub idle: usize,
    /// The number of large events that nobody waits for, of those that came in floods, of dead letters, and of expensive
    /// answers with their bytes.
    pub events: usize,
    pub flood: usize,
    pub letters: usize,
    pub read: usize,
    pub read_bytes: usize,
}

impl Hostility {
    pub fn text(&self) -> String {
        let (taken, refused): (Vec<_>, Vec<_>) =
            self.deployed.iter().partition(|(_, status)| **status < 300);
        let names = |all: Vec<(&&'static str, &u16)>| {
            let names: Vec<&str> = all.into_iter().map(|(name, _)| *name).collect();
            names.join(", ")
        };
        format!(
            "refused: {}; taken: {}, of which {} instances were started, and {} starts were not answered \
             with one; {} idle connections; {} large events were taken, {} came in floods; {} dead letters; {} expensive answers with {} \
             bytes",
            names(refused),
            names(taken),
            self.started,
            self.refused,
            self.idle,
            self.events,
            self.flood,
            self.letters,
            self.read,
            self.read_bytes
        )
    }
}

fn definition(id: &str, more: &Value) -> Value {
    let mut document = json!({"id": id, "version": "1.0.0", "specVersion": "0.8", "name": id});
    for (key, value) in more.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    document
}

fn inject(filter: &str) -> Value {
    json!({"states": [{"name": "A", "type": "inject", "data": {"a": 1},
        "stateDataFilter": {"output": format!("${{ {filter} }}")}, "end": true}]})
}

/// A schema whose references double forty times.
fn doubling_schema(word: &str) -> Value {
    let doubled = |level: usize| {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        let mut both = serde_json::Map::new();
        both.insert(word.to_owned(), json!([next, next]));
        (format!("l{level}"), Value::Object(both))
    };
    let mut defs: serde_json::Map<String, Value> = (0..40).map(doubled).collect();
    defs.insert("l40".to_owned(), json!({"type": "object"}));
    json!({
        "dataInputSchema": {"schema": {"$defs": defs, "$ref": "#/$defs/l0"}, "failOnValidationErrors": true},
        "states": [{"name": "A", "type": "inject", "data": {}, "end": true}],
    })
}

/// From each of 110 states to each.
fn dense() -> Value {
    const STATES: usize = 110;
    let state = |from: usize| {
        let way = |to: usize| json!({"condition": "${ .n }", "transition": format!("S{to}")});
        let ways: Vec<Value> = (0..STATES).map(way).collect();
        json!({"name": format!("S{from}"), "type": "switch", "dataConditions": ways, "defaultCondition": {"end": true}})
    };
    json!({"states": (0..STATES).map(state).collect::<Vec<_>>()})
}

/// The definitions with their names.
fn definitions() -> Vec<(&'static str, Value)> {
    let large = "${ {text: (\"x\" * 8000000)} }";
    let all = [
        ("long-path", inject(&format!(".a{}", "?[0]".repeat(6_000)))),
        ("long-sum", inject(&format!("1{}", "+1".repeat(32_000)))),
        ("heavy", inject("{a: ([range(1000000000)] | length)}")),
        ("endless", inject("{a: (0 | until(false; . + 1))}")),
        (
            "large",
            json!({
                "functions": [{"name": "fill", "type": "expression", "operation": large}],
                "states": [{"name": "A", "type": "foreach", "inputCollection": "${ [range(150)] }",
                    "iterationParam": "n", "outputCollection": "${ .all }",
                    "actions": [{"functionRef": "fill"}], "end": true}],
            }),
        ),
        ("schema-all", doubling_schema("allOf")),
        ("schema-any", doubling_schema("anyOf")),
        (
            "echo",
            json!({
                "events": [{"name": "again", "type": "hostile.again", "source": "/hostile"},
                    {"name": "said", "type": "hostile.again", "source": "/hostile", "kind": "produced"}],
                "start": "A",
                "states": [{"name": "A", "type": "event", "onEvents": [{"eventRefs": ["again"], "actions": []}],
                    "end": {"produceEvents": [{"eventRef": "said"}]}}],
            }),
        ),
        (
            "circle",
            json!({"states": [{"name": "A", "type": "inject", "data": {}, "end": {"continueAs": "circle"}}]}),
        ),
        (
            "double",
            json!({"states": [{"name": "A", "type": "operation", "end": true, "actions": [
                {"subFlowRef": {"workflowId": "double", "invoke": "async", "onParentComplete": "continue"}},
                {"subFlowRef": {"workflowId": "double", "invoke": "async", "onParentComplete": "continue"}},
            ]}]}),
        ),
        (
            "spin",
            json!({"states": [
                {"name": "A", "type": "sleep", "duration": "PT0S", "transition": "B"},
                {"name": "B", "type": "inject", "data": {}, "transition": "A"},
            ]}),
        ),
        (
            "wheel",
            json!({"states": [
                {"name": "A", "type": "switch", "dataConditions": [{"condition": "${ true }", "transition": "B"}],
                    "defaultCondition": {"end": true}},
                {"name": "B", "type": "switch", "dataConditions": [{"condition": "${ true }", "transition": "A"}],
                    "defaultCondition": {"end": true}},
            ]}),
        ),
        ("dense", dense()),
        (
            "keeper",
            json!({
                "events": [{"name": "kept", "type": "hostile.kept", "source": "/hostile",
                    "correlation": [{"contextAttributeName": "order"}]}],
                "start": "A",
                "states": [
                    {"name": "A", "type": "sleep", "duration": "PT1H", "transition": "B"},
                    {"name": "B", "type": "event", "onEvents": [{"eventRefs": ["kept"], "actions": []}], "end": true},
                ],
            }),
        ),
        (
            "tick",
            json!({
                "start": {"stateName": "A", "schedule": "R/PT0.001S"},
                "states": [{"name": "A", "type": "inject", "data": {}, "end": true}],
            }),
        ),
    ];
    all.into_iter()
        .map(|(id, more)| (id, definition(id, &more)))
        .collect()
}

/// Deploys all definitions, and returns those that were accepted.
async fn deploy(api: &Api, seen: &mut Hostility) -> Result<Vec<&'static str>> {
    let mut taken = Vec::new();
    for (id, document) in definitions() {
        let status = api.try_deploy(&document).await?;
        seen.deployed.insert(id, status);
        if status < 300 {
            taken.push(id);
        }
    }
    Ok(taken)
}

/// Opens connections without sending requests. A server may refuse them.
async fn idle(servers: &[SocketAddr]) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for number in 0..IDLE {
        let connect = async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((IDLE_FROM, 0).into())?;
            socket.connect(servers[number % servers.len()]).await
        };
        if let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(1), connect).await {
            held.push(stream);
        }
    }
    held
}

/// Sends the beginnings of requests. A server may refuse them.
async fn incomplete(servers: &[SocketAddr]) -> Vec<TcpStream> {
    let body = " ".repeat(BODY_BYTES);
    let mut held = Vec::new();
    for number in 0..INCOMPLETE {
        let server = servers[number % servers.len()];
        let path = match number % 2 {
            0 => "/api/v1/definitions",
            _ => "/console/definitions",
        };
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: {server}\r\ncontent-length: 1000000\r\n\r\n");
        let send = async {
            let mut stream = TcpStream::connect(server).await?;
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
            std::io::Result::Ok(stream)
        };
        if let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(1), send).await {
            held.push(stream);
        }
    }
    held
}

/// Reads what is expensive: pictures, and listings of what was put aside.
async fn read(api: &Api, seen: &mut Hostility) {
    let paths = [
        "api/v1/definitions/dense/1.0.0/diagram",
        "api/v1/definitions/dense/1.0.0/states?diagram=true",
        "api/v1/dead-letters?limit=500",
    ];
    let all = (0..READERS).flat_map(|_| paths.map(|path| api.try_get(path)));
    for bytes in futures::future::join_all(all).await.into_iter().flatten() {
        seen.read += 1;
        seen.read_bytes += bytes;
    }
}

/// Sends large events that correlate with an instance, and that no instance waits for.
async fn keep(api: &Api, seen: &mut Hostility) {
    let data = "x".repeat(EVENT_BYTES);
    let event = |number: usize| {
        json!({
            "specversion": "1.0", "id": format!("kept-{number}"), "order": format!("o{number}"),
            "source": "/hostile", "type": "hostile.kept", "data": data,
        })
    };
    let first = seen.events;
    let events: Vec<Value> = (first..first + EVENTS).map(event).collect();
    let sent = futures::future::join_all(events.iter().map(|event| api.try_event(event)));
    seen.events += sent.await.into_iter().filter(|is_taken| *is_taken).count();
}

/// Publishes what the coordinators have to fetch: at times many large events at once, and always some that aren't events.
/// NATS may refuse them.
async fn flood(nats: &async_nats::Client, round: usize, seen: &mut Hostility) {
    let context = jetstream::new(nats.clone());
    let mut sent = Vec::new();
    if round.is_multiple_of(FLOOD_ROUNDS) {
        let data = "x".repeat(EVENT_BYTES);
        for number in 0..FLOOD {
            let event = json!({
                "specversion": "1.0", "id": format!("flood-{round}-{number}"), "source": "/hostile",
                "type": "hostile.flood", "data": data,
            });
            let publish = context.publish("swirl.events.hostile", event.to_string().into());
            sent.extend(publish.await);
        }
    }
    for sent in std::mem::take(&mut sent) {
        seen.flood += usize::from(sent.await.is_ok());
    }
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Large", "x".repeat(LETTER_BYTES));
    for _ in 0..LETTERS {
        let publish =
            context.publish_with_headers("swirl.events.hostile", headers.clone(), "{}".into());
        sent.extend(publish.await);
    }
    for sent in sent {
        seen.letters += usize::from(sent.await.is_ok());
    }
}

/// Starts all definitions repeatedly until the run is over, without waiting for the ends of the instances.
///
/// # Errors
/// A deployment was not answered.
pub async fn run(
    api: &Api,
    nats: &async_nats::Client,
    servers: &[SocketAddr],
    over: &AtomicBool,
) -> Result<Hostility> {
    let mut seen = Hostility::default();
    let taken = deploy(api, &mut seen).await?;
    for round in 0.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let held = idle(servers).await;
        seen.idle += held.len();
        for id in &taken {
            let count = match *id {
                "heavy" | "endless" => AT_ONCE,
                _ => 1,
            };
            let starts = (0..count).map(|_| api.try_start(id));
            for is_started in futures::future::join_all(starts).await {
                match is_started {
                    true => seen.started += 1,
                    false => seen.refused += 1,
                }
            }
        }
        if taken.contains(&"echo") {
            api.try_event(&json!({
                "specversion": "1.0", "id": format!("first-{}", seen.started),
                "source": "/hostile", "type": "hostile.again",
            }))
            .await;
        }
        let incomplete = incomplete(servers).await;
        keep(api, &mut seen).await;
        flood(nats, round, &mut seen).await;
        read(api, &mut seen).await;
        // Time has to pass: the started instances have their effect, and the connections are held.
        tokio::time::sleep(PAUSE).await;
        drop((held, incomplete));
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_definitions() {
        let all = definitions();
        assert!(all.len() >= 10);
        for (id, document) in all {
            assert_eq!(document["id"], id);
        }
    }
}
