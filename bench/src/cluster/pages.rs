//! Listings, searches and pages of the console with many instances, and for an instance with a long history.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use serde_json::{Value, json};

use super::client::Client;
use super::http::Connection;
use super::process::{Cluster, Setup};
use super::starts::{Work, results_of};
use super::workflows;
use crate::measure::{Caller, Figure, counted};
use crate::report::Report;
use crate::usage::Meter;

const STARTING: usize = 64;
/// One in this many instances fails.
const FAILURE: usize = 1_000;
/// The number of entries in the long history: two per state, and at most as many as Redis keeps.
const STATES: usize = 50_000;
/// The budget of a page.
const BUDGET_MS: f64 = 100.0;
/// The number of times that each page is read.
const READS: usize = 100;

struct Numbered {
    client: Client,
    next: Arc<AtomicUsize>,
}

#[async_trait]
impl Caller for Numbered {
    async fn once(&mut self) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let input = json!({
            "orderId": order(number),
            "amount": if number.is_multiple_of(FAILURE) { json!(-1) } else { json!(number) },
        });
        let input = input.to_string();
        self.client.start("order", input.as_bytes()).await?;
        Ok(())
    }
}

fn order(number: usize) -> String {
    format!("o{number:08}")
}

/// Fails for negative amounts, and completes for others.
fn definition() -> Value {
    json!({
        "id": "order", "version": "1.0.0", "specVersion": "0.8", "name": "order",
        "metadata": {"swirl": {"search": {
            "orderId": {"type": "string", "value": "${ .orderId }"},
            "amount": {"type": "number", "value": "${ .amount }"},
        }}},
        "states": [{
            "name": "Check", "type": "switch",
            "dataConditions": [{"condition": "${ .amount >= 0 }", "end": true}],
        }],
    })
}

pub async fn measure(setup: &Setup, instances: usize, report: &mut Report) -> Result<()> {
    let setup = Setup {
        keep_ended_max: Some(instances.saturating_mul(2)),
        publishes: false,
        ..setup.clone()
    };
    let cluster = Cluster::start(&setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    client.deploy(&definition(), None).await?;
    client.deploy(&workflows::circle("circle"), None).await?;
    let circle = Work::new("circle", &json!({"n": 0, "limit": STATES}));
    let long = client.start(&circle.workflow, &circle.input).await?;
    client
        .until_none(&circle.workflow, Duration::from_secs(120))
        .await?;
    let next = Arc::<AtomicUsize>::default();
    let mut callers = Vec::new();
    for _ in 0..STARTING {
        callers.push(Numbered {
            client: Client::open(cluster.api()).await?,
            next: next.clone(),
        });
    }
    let begun = Instant::now();
    counted(callers, instances, &Meter::default()).await?;
    // The other connection was idle for too long.
    let mut client = Client::open(cluster.api()).await?;
    client.until_none("order", Duration::from_secs(120)).await?;
    let rate = instances as f64 / begun.elapsed().as_secs_f64();
    let bytes = cluster.servers.redis_memory().await? as f64 / instances as f64;
    // The coordinator's caches should be those of a busy one.
    results_of(
        &cluster,
        &Work::new("circle", &json!({"n": 0, "limit": 10})),
        1,
        10,
    )
    .await?;
    let lines = entries(&cluster, &long).await?;
    let middle = order(instances / 2);
    let pages = [
        (
            "listing, the newest 50",
            "/api/v1/instances?limit=50".to_owned(),
        ),
        (
            "search: an order by its id",
            search(&format!("@orderId = \"{middle}\"")),
        ),
        (
            "search: orders by a prefix",
            search("@orderId ^= \"o00001\""),
        ),
        (
            "search: orders by a range of amounts",
            search("@amount > 100 and @amount < 200"),
        ),
        (
            "search: failed orders",
            search("workflow = \"order\" and status = faulted"),
        ),
        ("counts by workflow and status", "/api/v1/counts".to_owned()),
        ("console: overview", "/console/".to_owned()),
        ("console: instances", "/console/instances".to_owned()),
        (
            "console: instances, the longest first",
            "/console/instances?sort=-duration".to_owned(),
        ),
        (
            "console: instances of the last hour, without sub-workflows",
            "/console/instances?top=1&since=1h".to_owned(),
        ),
        (
            "console: the definition, with its states",
            "/console/definitions/order/1.0.0".to_owned(),
        ),
        (
            "console: an order by its id",
            query("/console/instances?", &format!("@orderId = \"{middle}\"")),
        ),
        (
            "console: failed orders",
            query(
                "/console/instances?",
                "workflow = \"order\" and status = faulted",
            ),
        ),
        (
            "console: the instance with the long history",
            format!("/console/instances/{long}"),
        ),
        (
            "history, the last 100 entries of the long one",
            format!("/api/v1/instances/{long}/history?last=100"),
        ),
    ];
    let (mut rows, mut late) = (Vec::new(), Vec::new());
    for (name, path) in pages {
        let (figure, size) = read(&cluster, &path).await.context(path)?;
        if figure.p50_ms > BUDGET_MS {
            late.push(name);
        }
        println!(
            "{name}: p50 {:.2} ms, p99 {:.2} ms",
            figure.p50_ms, figure.p99_ms
        );
        rows.push(vec![
            name.to_owned(),
            format!("{:.2}", figure.p50_ms),
            format!("{:.2}", figure.p99_ms),
            size.to_string(),
        ]);
    }
    report.say(&format!(
        "## Pages, with {instances} instances\n\n{rate:.0} instances/s were started with two search attributes each, one in \
         {FAILURE} fails; {bytes:.0} bytes of Redis each. The long history has {lines} entries. Each page was read {READS} \
         times, one after another.\n"
    ));
    report.table(&["page", "p50 ms", "p99 ms", "bytes"], &rows);
    ensure!(
        late.is_empty(),
        "half of the reads took more than {BUDGET_MS} ms: {}",
        late.join(", ")
    );
    Ok(())
}

fn search(text: &str) -> String {
    query("/api/v1/instances?limit=50&", text)
}

fn query(path: &str, text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{path}query={encoded}")
}

async fn entries(cluster: &Cluster, id: &str) -> Result<u64> {
    let mut link = Connection::open(cluster.api()).await?;
    let path = format!("/api/v1/instances/{id}/history?last=1");
    let (status, answer) = link.request("GET", &path, &[], b"").await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    ensure!(status == 200, "no history: {answer}");
    answer["total"].as_u64().context("no number of entries")
}

/// The duration of reading a page, and its size in bytes.
async fn read(cluster: &Cluster, path: &str) -> Result<(Figure, usize)> {
    let mut link = Connection::open(cluster.api()).await?;
    let (mut times, mut bytes) = (Vec::new(), 0);
    let begun = Instant::now();
    for _ in 0..READS {
        let begun = Instant::now();
        let (status, page) = link.request("GET", path, &[], b"").await?;
        times.push(begun.elapsed());
        ensure!(
            status == 200,
            "{status}: {}",
            String::from_utf8_lossy(&page[..page.len().min(500)])
        );
        bytes = page.len();
    }
    let took = begun.elapsed().as_secs_f64();
    Ok((Figure::of(1, times, took, Default::default()), bytes))
}
