//! One instance is a single trace, across two workers, an external event and calls over HTTP.

use std::collections::{BTreeSet, HashMap, HashSet};

use async_nats::HeaderMap;
use futures::StreamExt;
use serde_json::{Value, json};
use swirl_collector::{Receiver, Span, Value as Kept, attribute};
use swirl_servers::{PATIENCE, eventually};

use crate::observe::processes::Cluster;
use crate::observe::service::Service;

/// The span of a client of the API.
const CLIENT: &str = "00-3333333333333333333333333333333c-444444444444444d-01";
/// OTLP's number for a server span.
const SERVER: i32 = 2;

/// The span in which a shop pays.
const PAYMENT: &str = "00-1111111111111111111111111111111a-222222222222222b-01";

fn order() -> Value {
    let meet =
        |name: &str| json!({"name": name, "actions": [{"name": name, "functionRef": "meet"}]});
    json!({
        "id": "order", "version": "1.0.0", "specVersion": "0.8", "start": "All",
        "functions": [{"name": "meet", "operation": "service.json#meet"}],
        "events": [
            {"name": "Asked", "type": "asked", "source": "/orders", "kind": "produced"},
            {"name": "Paid", "type": "paid", "source": "/shop"},
        ],
        "states": [{
            "name": "All", "type": "parallel", "end": true,
            "branches": [meet("left"), meet("right"), {"name": "pay", "actions": [
                {"name": "ask", "eventRef": {"produceEventRef": "Asked", "consumeEventRef": "Paid"}},
            ]}],
        }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_over_processes_events_and_calls() {
    let (receiver, endpoint) = Receiver::serve().await;
    let flags = [
        "--telemetry-otlp-endpoint",
        &endpoint,
        "--telemetry-sampling-ratio",
        "1",
    ];
    let mut cluster = Cluster::start(2, &flags).await;
    let service = Service::serve().await;
    cluster.deploy(&order(), &service.document()).await;
    let nats = async_nats::connect(cluster.nats.url()).await.unwrap();
    let mut produced = nats.subscribe("swirl.events.asked").await.unwrap();
    nats.flush().await.unwrap();
    let url = format!(
        "{}/api/v1/workflows/order/instances?secret=s3cret",
        cluster.coordinator.url
    );
    let request = cluster.http.post(url).header("traceparent", CLIENT);
    let answer = request.body("{}").send().await.unwrap();
    assert_eq!(answer.status(), 400, "there is no such parameter");
    let id = cluster.start_instance("order").await;
    let asked = tokio::time::timeout(PATIENCE, produced.next()).await;
    let asked = asked.unwrap().unwrap();

    // While it waits, the beginning of the trace is available, and both workers have done their part.
    eventually("the beginning of the trace", async || {
        let spans = receiver.spans();
        spans
            .iter()
            .any(|(_, span)| span.name == "start order")
            .then_some(())
    })
    .await;
    eventually("the calls", async || {
        (service.seen().len() == 2).then_some(())
    })
    .await;
    let paid = json!({
        "specversion": "1.0", "id": "p1", "source": "/shop", "type": "paid", "traceparent": PAYMENT,
    });
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/cloudevents+json");
    let sent = nats.publish_with_headers("swirl.events.shop", headers, paid.to_string().into());
    sent.await.unwrap();
    nats.flush().await.unwrap();
    assert_eq!(cluster.end(&id).await, "completed");
    for process in cluster.workers.iter_mut().chain([&mut cluster.coordinator]) {
        process.stop().await;
    }

    let all = receiver.spans();
    let (served, all): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, span)| span.kind == SERVER);
    server_spans_follow_the_conventions(&served);
    let root = &all
        .iter()
        .find(|(_, span)| span.name == "start order")
        .unwrap()
        .1;
    let (own, others): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|(_, span)| span.trace_id == root.trace_id);
    let by_id: HashMap<&[u8], &Span> = own.iter().map(|(_, span)| (&*span.span_id, span)).collect();
    assert_eq!(by_id.len(), own.len(), "no span comes twice");
    let mut tree: Vec<String> = by_id.values().map(|span| path(span, &by_id)).collect();
    tree.sort();
    let fork = "start order/state All/fork";
    let branch = |name: &str, more: &str| format!("{fork}/branch {name}{more}");
    let expected = [
        "start order",
        "start order/state All",
        fork,
        &branch("left", ""),
        &branch("left", "/action left"),
        &branch("left", "/action left/call meet"),
        &branch("pay", ""),
        &branch("pay", "/action ask"),
        &branch("pay", "/action ask/publish Asked"),
        &branch("pay", "/action ask/receive Paid"),
        &branch("right", ""),
        &branch("right", "/action right"),
        &branch("right", "/action right/call meet"),
        "start order/workflow order",
    ];
    assert_eq!(tree, expected);
    let workers: BTreeSet<_> = calls(&own).map(|(sender, _)| sender).collect();
    assert_eq!(workers.len(), 2, "each worker made a call");

    for (_, span) in calls(&own) {
        client_spans_follow_the_conventions(span, service.address());
    }
    let publish = named(&own, "publish Asked");
    for (name, value) in [
        ("messaging.operation.name", "publish"),
        ("messaging.operation.type", "send"),
        ("messaging.destination.name", "Asked"),
    ] {
        assert_eq!(attribute(publish, name), Some(text(value)), "{publish:?}");
    }
    let waited = attribute(named(&own, "receive Paid"), "swirl.wait.duration_ms");
    assert!(matches!(waited, Some(Kept::IntValue(_))), "{waited:?}");

    // Outgoing requests and events carry the span that sent them.
    let called: HashSet<String> = calls(&own).map(|(_, span)| traceparent(span)).collect();
    assert_eq!(called, service.seen().into_iter().collect());
    let header = asked.headers.as_ref().unwrap().get("traceparent").unwrap();
    assert_eq!(header.as_str(), traceparent(publish));
    let event: Value = serde_json::from_slice(&asked.payload).unwrap();
    assert_eq!(event["traceparent"], traceparent(publish).as_str());

    // A received event is linked to its sender's span, and is visible in the sender's trace. Waiting creates no long
    // span.
    let receive = named(&own, "receive Paid");
    let links: Vec<_> = receive
        .links
        .iter()
        .map(|link| id_of(&link.trace_id, &link.span_id))
        .collect();
    assert_eq!(links, [PAYMENT]);
    let took = receive.end_time_unix_nano - receive.start_time_unix_nano;
    assert!(took < 1_000_000, "{took} ns");
    assert_eq!(others.len(), 1, "{others:?}");
    let (sender, process) = others[0];
    assert_eq!(process.name, "process paid");
    assert_eq!(id_of(&process.trace_id, &process.parent_span_id), PAYMENT);
    assert!(!workers.contains(sender), "a coordinator takes events in");
}

fn text(value: &str) -> Kept {
    Kept::StringValue(value.to_owned())
}

/// By OpenTelemetry's conventions for HTTP clients: numbers are numbers.
fn client_spans_follow_the_conventions(span: &Span, address: &str) {
    let (host, port) = address.rsplit_once(':').unwrap();
    for (name, value) in [
        ("http.request.method", text("POST")),
        ("url.full", text(&format!("http://{address}/meet"))),
        ("server.address", text(host)),
        ("server.port", Kept::IntValue(port.parse().unwrap())),
        ("http.response.status_code", Kept::IntValue(200)),
    ] {
        assert_eq!(attribute(span, name), Some(value), "{name}: {span:?}");
    }
}

/// The API's requests, each in the client's trace or in a trace of its own. Health checks have no span.
fn server_spans_follow_the_conventions(served: &[(String, Span)]) {
    let named = |name: &str| -> Vec<&Span> {
        let spans = served.iter().map(|(_, span)| span);
        spans.filter(|span| span.name == name).collect()
    };
    let starts = named("POST /api/v1/workflows/{id}/instances");
    let [refused, started] = &starts[..] else {
        panic!("{starts:?}");
    };
    assert_eq!(id_of(&refused.trace_id, &refused.parent_span_id), CLIENT);
    assert!(started.parent_span_id.is_empty());
    for (name, value) in [
        ("http.request.method", text("POST")),
        ("http.route", text("/api/v1/workflows/{id}/instances")),
        ("http.response.status_code", Kept::IntValue(201)),
        ("url.path", text("/api/v1/workflows/order/instances")),
        ("url.scheme", text("http")),
        ("server.address", text("127.0.0.1")),
    ] {
        assert_eq!(attribute(started, name), Some(value), "{name}: {started:?}");
    }
    let port = attribute(started, "server.port");
    assert!(matches!(port, Some(Kept::IntValue(_))), "{port:?}");
    // The client caused this error, not the server.
    assert_eq!(attribute(refused, "error.type"), None, "{refused:?}");
    assert!(!format!("{served:?}").contains("s3cret"));
    assert!(named("GET /readyz").is_empty());
}

fn calls<'a>(spans: &[&'a (String, Span)]) -> impl Iterator<Item = (&'a String, &'a Span)> {
    let calls = spans.iter().filter(|(_, span)| span.name == "call meet");
    calls.map(|(sender, span)| (sender, span))
}

fn named<'a>(spans: &[&'a (String, Span)], name: &str) -> &'a Span {
    let mut named = spans.iter().filter(|(_, span)| span.name == name);
    let (_, span) = named.next().unwrap();
    assert!(named.next().is_none(), "{name} is there twice");
    span
}

/// The names from the root down.
fn path(span: &Span, by_id: &HashMap<&[u8], &Span>) -> String {
    if span.parent_span_id.is_empty() {
        return span.name.clone();
    }
    match by_id.get(&*span.parent_span_id) {
        Some(parent) => format!("{}/{}", path(parent, by_id), span.name),
        None => format!("?/{}", span.name),
    }
}

fn traceparent(span: &Span) -> String {
    id_of(&span.trace_id, &span.span_id)
}

fn id_of(trace: &[u8], span: &[u8]) -> String {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    format!("00-{}-{}-01", hex(trace), hex(span))
}
