//! The comparison of traces with what docs/telemetry.md says.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use swirl_servers::PATIENCE;

use super::api::Jaeger;
use crate::say;

/// The tree of each workflow, after a line with its name: spans below their parents, in the order of the alphabet;
/// those of other services with its name; the type of an error in brackets; `->` for a link into another trace.
const EXPECTED: &str = include_str!("../../trees.txt");

/// Spans are sent every other second.
const AGAIN: Duration = Duration::from_millis(500);

/// Services that are called by workflows.
const CALLED: [&str; 7] = [
    "shop-asyncapi",
    "shop-connector",
    "shop-graphql",
    "shop-grpc",
    "shop-nats",
    "shop-odata",
    "shop-rest",
];

/// `started`: workflows and their instances.
pub async fn compare(jaeger: &Jaeger, started: &[(&str, String)]) -> Result<()> {
    let mut ids = BTreeSet::new();
    for (workflow, id) in started {
        let trace = whole(jaeger, workflow, json!({"swirl.instance.id": id})).await?;
        let spans = trace["spans"].as_array().map_or(0, Vec::len);
        say(&format!(
            "{workflow}: one trace, {spans} spans as documented"
        ));
        ids.insert(trace["traceID"].to_string());
    }
    ensure!(ids.len() == started.len(), "instances share a trace");
    let placed = whole(
        jaeger,
        "real.placed",
        json!({"swirl.workflow.id": "real.placed"}),
    )
    .await?;
    ids.insert(placed["traceID"].to_string());

    for (tags, workflow) in [
        (json!({"swirl.workflow.id": "real.order"}), "real.order"),
        (json!({"swirl.workflow.id": "real.calls"}), "real.order"),
        (json!({"swirl.workflow.id": "real.part"}), "real.tasks"),
        (json!({"swirl.instance.key": "order-9"}), "real-keyed"),
        (
            json!({"swirl.instance.idempotency_key": "start-real.order"}),
            "real.order",
        ),
        (
            json!({"error.type": "FunctionError", "swirl.workflow.id": "real.faulty"}),
            "real.faulty",
        ),
        (json!({"http.response.status_code": "400"}), "real.tasks"),
    ] {
        let traces = jaeger.traces(tags.clone()).await?;
        let found = traces.iter().map(root).collect::<Vec<_>>();
        let root = format!("start {workflow}");
        ensure!(
            found.contains(&root.as_str()),
            "{tags} finds {found:?}, not '{root}'"
        );
    }
    let good = jaeger
        .traces(json!({"error.type": "FunctionError", "swirl.workflow.id": "real-keyed"}))
        .await?;
    ensure!(
        good.is_empty(),
        "an instance without an error is found among those with one"
    );
    say("searched by workflow, keys, errors and status");

    graph(jaeger).await?;
    visit(jaeger).await
}

/// The trace that has these tags, once it is as expected.
async fn whole(jaeger: &Jaeger, workflow: &str, tags: Value) -> Result<Value> {
    let expected = expected(workflow).with_context(|| format!("no tree of {workflow}"))?;
    let begun = Instant::now();
    loop {
        let traces = jaeger.traces(tags.clone()).await?;
        let found = match &traces[..] {
            [trace] => Tree::of(trace).text(),
            _ => format!("{} traces\n", traces.len()),
        };
        if let [trace] = &traces[..]
            && found == expected
        {
            return Ok(trace.clone());
        }
        if begun.elapsed() > PATIENCE {
            bail!("{workflow}, expected:\n{expected}\nfound:\n{found}");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn expected(workflow: &str) -> Option<String> {
    let heading = format!("# {workflow}\n");
    let (_, rest) = EXPECTED.split_once(&heading)?;
    let end = rest.find("\n# ").map_or(rest.len(), |end| end);
    Some(format!("{}\n", rest[..end].trim_end()))
}

/// The graph of services has an edge to each that was called.
async fn graph(jaeger: &Jaeger) -> Result<()> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)?
        .as_millis()
        .to_string();
    let query = [("endTs", now.as_str()), ("lookback", "3600000")];
    let edges = jaeger.get("/api/dependencies", &query).await?;
    for service in CALLED {
        let edge = edges.as_array().into_iter().flatten();
        let mut edge = edge.filter(|edge| edge["parent"] == "swirl" && edge["child"] == service);
        ensure!(
            edge.next().is_some(),
            "no edge from swirl to {service}: {edges}"
        );
    }
    say(&format!(
        "the graph of services has {} edges from swirl",
        CALLED.len()
    ));
    Ok(())
}

/// The events that the shop has sent are in the shop's trace.
async fn visit(jaeger: &Jaeger) -> Result<()> {
    let query = [("service", "shop"), ("limit", "10"), ("lookback", "1h")];
    let begun = Instant::now();
    loop {
        let traces = jaeger.get("/api/traces", &query).await?;
        let text = Tree::of(&traces[0]).text();
        let has = |line: &&str| text.contains(&format!("\n  {line}\n"));
        let all = [
            "process real.paid",
            "process real.packed",
            "process real.order.placed",
        ];
        if text.starts_with("shop: visit\n") && all.iter().all(has) {
            say("events are in the trace of their sender");
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "the shop's trace:\n{text}");
        tokio::time::sleep(AGAIN).await;
    }
}

fn root(trace: &Value) -> &str {
    let spans = trace["spans"].as_array();
    let root = spans
        .into_iter()
        .flatten()
        .find(|span| parent(span).is_none());
    root.and_then(|span| span["operationName"].as_str())
        .unwrap_or_default()
}

struct Tree<'a> {
    spans: HashMap<&'a str, &'a Value>,
    children: BTreeMap<Option<&'a str>, Vec<&'a Value>>,
    services: HashMap<&'a str, &'a str>,
}

impl<'a> Tree<'a> {
    fn of(trace: &'a Value) -> Tree<'a> {
        let spans = || trace["spans"].as_array().into_iter().flatten();
        let mut children: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for span in spans() {
            children.entry(parent(span)).or_default().push(span);
        }
        let processes = trace["processes"].as_object().into_iter().flatten();
        Tree {
            spans: spans()
                .filter_map(|span| Some((span["spanID"].as_str()?, span)))
                .collect(),
            children,
            services: processes
                .filter_map(|(id, process)| Some((id.as_str(), process["serviceName"].as_str()?)))
                .collect(),
        }
    }

    /// Each root with what is below it. A span whose parent isn't there is below a question mark.
    fn text(&self) -> String {
        let mut text = String::new();
        for parent in self.children.keys() {
            match parent {
                None => self.write(None, 0, &mut text),
                Some(id) if !self.spans.contains_key(id) => {
                    text.push_str("?\n");
                    self.write(*parent, 1, &mut text);
                }
                Some(_) => {}
            }
        }
        text
    }

    fn write(&self, parent: Option<&str>, depth: usize, text: &mut String) {
        let children = self.children.get(&parent).into_iter().flatten();
        let mut parts: Vec<String> = children
            .map(|span| {
                let mut part = format!("{}{}\n", "  ".repeat(depth), self.line(span));
                self.write(span["spanID"].as_str(), depth + 1, &mut part);
                part
            })
            .collect();
        parts.sort();
        text.extend(parts);
    }

    fn line(&self, span: &Value) -> String {
        let mut line = span["operationName"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let service = span["processID"]
            .as_str()
            .and_then(|id| self.services.get(id));
        if let Some(service) = service.filter(|name| **name != "swirl") {
            line = format!("{service}: {line}");
        }
        if let Some(error) = tag(span, "error.type") {
            let _ = write!(line, " [{}]", error.as_str().unwrap_or_default());
        }
        if tag(span, "error.type").is_some() != (tag(span, "error") == Some(&json!(true))) {
            line.push_str(" (not marked as it is)");
        }
        if references(span).any(|it| it["refType"] != "CHILD_OF") {
            line.push_str(" ->");
        }
        // A span may go on after its parent has ended, and clocks differ.
        let warnings = span["warnings"].as_array().into_iter().flatten();
        for warning in warnings.filter_map(Value::as_str) {
            if !warning.starts_with("clock skew adjustment disabled") {
                let _ = write!(line, " (warning: {warning})");
            }
        }
        line
    }
}

fn references(span: &Value) -> impl Iterator<Item = &Value> {
    span["references"].as_array().into_iter().flatten()
}

fn parent(span: &Value) -> Option<&str> {
    let of = references(span).find(|it| it["refType"] == "CHILD_OF")?;
    of["spanID"].as_str()
}

fn tag<'a>(span: &'a Value, name: &str) -> Option<&'a Value> {
    let tags = span["tags"].as_array()?;
    Some(&tags.iter().find(|tag| tag["key"] == name)?["value"])
}
