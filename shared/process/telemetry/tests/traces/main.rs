//! One trace per instance, across all processes that work on it.

#![allow(clippy::unwrap_used)] // A test: what fails here fails the test.

mod cluster;
mod random;
mod tasks;

use std::collections::{HashMap, HashSet};

use cluster::{Cluster, SECRET};
use swirl_collector::{Receiver, Span};
use swirl_model::event::Event;
use swirl_model::trace::TraceContext;
use swirl_ports::InstanceQueries;
use swirl_servers::eventually;

const ORDER: &str = r#"
id: order
version: "1.0.0"
specVersion: "0.8"
secrets: [token]
functions:
  - {name: charge, operation: "http://h/openapi.json#charge"}
events:
  - {name: Asked, type: asked, source: /orders, kind: produced}
  - {name: Paid, type: paid, source: /shop}
errors:
  - {name: Busy, code: "503"}
retries:
  - {name: Soon, delay: PT0.01S, maxAttempts: 3}
states:
  - name: Both
    type: parallel
    branches:
      - name: charge
        actions:
          - name: take
            functionRef: {refName: charge, arguments: {token: "${ $SECRETS.token }"}}
            retryRef: Soon
      - name: wait
        actions:
          - name: ask
            eventRef: {produceEventRef: Asked, consumeEventRef: Paid}
    transition: Ship
  - name: Ship
    type: operation
    actions: [{name: ship, subFlowRef: shipping}]
    end: true
"#;

const SHIPPING: &str = r#"
id: shipping
version: "1.0.0"
specVersion: "0.8"
states:
  - {name: Pack, type: inject, data: {packed: true}, end: true}
"#;

const CAUSE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const PAYMENT: &str = "00-1111111111111111111111111111111a-222222222222222b-01";

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_write_one_trace() {
    let (receiver, endpoint) = Receiver::serve().await;
    let mut cluster = Cluster::new(Some(&endpoint), 0.0);
    cluster.deploy(SHIPPING).await;
    cluster.deploy(ORDER).await;
    // The client that starts it has decided that the trace is kept.
    let cause: TraceContext = CAUSE.parse().unwrap();
    let id = cluster.start("order", Some(cause)).await;
    cluster.settle().await;
    cluster.send("paid", PAYMENT).await;
    cluster.settle().await;
    assert!(cluster.is_completed(&id).await);
    cluster.shutdown().await;

    let spans = receiver.spans();
    let senders: HashSet<_> = spans.iter().map(|(sender, _)| sender).collect();
    assert_eq!(senders.len(), 2, "both workers sent spans");
    let traces: HashSet<_> = spans.iter().map(|(_, span)| &span.trace_id).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let by_id: HashMap<&[u8], &Span> = spans
        .iter()
        .map(|(_, span)| (&*span.span_id, span))
        .collect();
    assert_eq!(by_id.len(), spans.len(), "no span is sent twice");
    let mut tree: Vec<String> = by_id.values().map(|span| path(span, &by_id)).collect();
    tree.sort();
    let charge = "start order/state Both/fork/branch charge";
    let wait = "start order/state Both/fork/branch wait";
    let shipping = "start order/state Ship/action ship/start shipping";
    let expected = [
        "start order",
        "start order/state Both",
        "start order/state Both/fork",
        charge,
        &format!("{charge}/action take"),
        &format!("{charge}/action take"),
        &format!("{charge}/action take/call charge"),
        &format!("{charge}/action take/call charge"),
        wait,
        &format!("{wait}/action ask"),
        &format!("{wait}/action ask/publish Asked"),
        &format!("{wait}/action ask/receive Paid"),
        "start order/state Ship",
        "start order/state Ship/action ship",
        shipping,
        &format!("{shipping}/state Pack"),
        &format!("{shipping}/workflow shipping"),
        "start order/workflow order",
    ];
    assert_eq!(tree, expected);

    let named = |name: &str| {
        let mut named = spans.iter().map(|(_, span)| span);
        named.find(|span| span.name == name).unwrap()
    };
    assert_eq!(links(named("start order")), [CAUSE]);
    assert_eq!(links(named("receive Paid")), [PAYMENT]);
    assert!(named("start shipping").links.is_empty());
    check_times(&spans);
    // The contexts that were sent to the service are those of the kept spans.
    let mut handed: Vec<String> = cluster
        .outside
        .calls
        .lock()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let calls = spans.iter().filter(|(_, span)| span.name == "call charge");
    let mut sent: Vec<String> = calls.map(|(_, span)| own(span)).collect();
    handed.sort();
    sent.sort();
    assert_eq!(handed, sent);
    // The service's first response repeated the secret, and the event contained it too.
    assert!(!format!("{spans:?}").contains(SECRET));
    let history = cluster.store.history(&id).await.unwrap();
    let failed = |entry: &swirl_model::event::HistoryEntry| {
        matches!(entry.event, Event::ActionFailed { .. })
    };
    assert!(history.iter().any(failed));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_of_unsampled_traces() {
    let (receiver, endpoint) = Receiver::serve().await;
    let mut cluster = Cluster::new(Some(&endpoint), 0.0);
    cluster.deploy(SHIPPING).await;
    let id = cluster.start("shipping", None).await;
    cluster.settle().await;
    assert!(cluster.is_completed(&id).await);
    cluster.shutdown().await;
    assert!(receiver.spans().is_empty());
}

/// The span of a failed state has the name of the error.
#[tokio::test(flavor = "multi_thread")]
async fn spans_have_the_names_of_errors() {
    let (receiver, endpoint) = Receiver::serve().await;
    let mut cluster = Cluster::new(Some(&endpoint), 1.0);
    let document = r#"
id: charge
version: "1.0.0"
specVersion: "0.8"
secrets: [token]
functions:
  - {name: charge, operation: "http://h/openapi.json#charge"}
states:
  - name: Charge
    type: operation
    actions: [{functionRef: {refName: charge, arguments: {token: "${ $SECRETS.token }"}}}]
    end: true
"#;
    cluster.deploy(document).await;
    cluster.start("charge", None).await;
    cluster.settle().await;
    cluster.shutdown().await;
    let spans = receiver.spans();
    for name in [
        "call charge",
        "action Charge",
        "state Charge",
        "workflow charge",
    ] {
        let mut found = spans.iter().filter(|(_, span)| {
            span.name == name || name.starts_with("action") && span.name.starts_with("action")
        });
        let (_, span) = found.next().unwrap_or_else(|| panic!("{name}: {spans:#?}"));
        let busy = swirl_collector::Value::StringValue("Busy".to_owned());
        let error = swirl_collector::attribute(span, "error.type");
        assert_eq!(error, Some(busy), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_that_the_collector_refuses_are_counted() {
    // No collector listens on this port.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut cluster = Cluster::new(Some(&endpoint), 1.0);
    cluster.deploy(SHIPPING).await;
    cluster.start("shipping", None).await;
    cluster.settle().await;
    let lost = |process: usize| {
        let text = cluster.telemetry[process].metrics().text().unwrap();
        let mut lines = text.lines().filter(|line| {
            line.starts_with("swirl_export_failures_total{") && line.contains("\"traces\"")
        });
        let line = lines.next().unwrap_or_else(|| panic!("{text}"));
        line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()
    };
    eventually("a failure that is counted", async || {
        (lost(0) + lost(1) > 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_exposed_without_a_collector() {
    let mut cluster = Cluster::new(None, 1.0);
    cluster.deploy(SHIPPING).await;
    cluster.start("shipping", None).await;
    cluster.settle().await;
    let text = cluster.telemetry[0].metrics().text().unwrap();
    for line in [
        r#"swirl_instances_started_total{swirl_workflow_id="shipping",otel_scope_name="swirl"} 1"#,
        r#"swirl_instances_ended_total{swirl_instance_status="completed",swirl_workflow_id="shipping",otel_scope_name="swirl"} 1"#,
        r#"swirl_instance_duration_seconds_count{swirl_instance_status="completed",swirl_workflow_id="shipping",otel_scope_name="swirl"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_the_namespace() {
    let cluster = Cluster::new(None, 1.0);
    let text = |process: usize| cluster.telemetry[process].metrics().text().unwrap();
    let (without, with) = (text(0), text(1));
    assert!(!without.contains("swirl_namespace"), "{without}");
    let samples: Vec<&str> = with.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(samples.len() > 3, "{with}");
    for line in samples {
        assert!(line.contains(r#"swirl_namespace="shop""#), "{line}");
    }
}

/// Each span is within its parent. An instance goes on after its start, which is the parent of all that it does.
fn check_times(spans: &[(String, Span)]) {
    let by_id: HashMap<&[u8], &Span> = spans
        .iter()
        .map(|(_, span)| (&*span.span_id, span))
        .collect();
    for (_, span) in spans {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        let Some(parent) = by_id.get(&*span.parent_span_id) else {
            continue;
        };
        let is_start = parent.name.starts_with("start ");
        assert!(
            parent.start_time_unix_nano <= span.start_time_unix_nano
                && (is_start || parent.end_time_unix_nano >= span.end_time_unix_nano),
            "{} is not within {}: {span:#?} {parent:#?}",
            span.name,
            parent.name
        );
    }
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

fn links(span: &Span) -> Vec<String> {
    let links = span.links.iter();
    links
        .map(|link| traceparent(&link.trace_id, &link.span_id))
        .collect()
}

fn own(span: &Span) -> String {
    traceparent(&span.trace_id, &span.span_id)
}

fn traceparent(trace: &[u8], span: &[u8]) -> String {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    format!("00-{}-{}-01", hex(trace), hex(span))
}
