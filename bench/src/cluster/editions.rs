//! DSL 1.0 against edition 0.8: the same work in both, measured alternately in each round and compared within the round,
//! because a machine's speed changes. And a loop of DSL 1.0 that gets longer.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::client::Client;
use super::events::{Hub, answering, creating_of};
use super::overhead::Overhead;
use super::process::{Cluster, Setup};
use super::starts::{Work, results_of};
use super::waits::fill;
use super::workflows::{self, tasks};
use super::{cases, service};
use crate::measure::Figure;
use crate::plan::Plan;

/// The number of waiting instances for each round of a correlated event.
const WAITING: usize = 2_000;
const WARM: usize = 20;

/// A cluster with the workflows of one edition.
struct Side {
    name: &'static str,
    cluster: Cluster,
    hub: Hub,
    /// Its ids begin with this.
    prefix: &'static str,
    /// The number of the next key.
    next: usize,
}

#[derive(Clone, Copy)]
enum Row {
    /// Started over HTTP, with this input.
    Started(&'static str),
    EventStarted,
    Correlated,
}

pub async fn measure(
    plan: &Plan,
    setup: &Setup,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Overhead>> {
    let address = service::start().await?;
    let document = service::document(address);
    let old = [
        workflows::injecting("set"),
        workflows::calls("calls"),
        workflows::parallel("fork"),
        workflows::foreach_in_turn("for"),
        workflows::event_started("go"),
        workflows::correlated("wait"),
    ];
    let new = [
        tasks::set("set"),
        tasks::calls("calls", address),
        tasks::fork("fork"),
        tasks::for_each("for", address),
        tasks::event_started("go"),
        tasks::correlated("wait"),
    ];
    // Both run all the time, and one of them is idle.
    let mut sides = [
        side(setup, "0.8", "", &old, &document).await?,
        side(setup, "DSL 1.0", "bench.", &new, &document).await?,
    ];
    let mut all = Vec::new();
    for (row, what) in [
        ("ten tasks that set data", Row::Started("set")),
        ("ten HTTP calls", Row::Started("calls")),
        ("a fork of ten", Row::Started("fork")),
        ("a loop over 100 with a call each", Row::Started("for")),
        ("event-started instance", Row::EventStarted),
        ("correlated event", Row::Correlated),
    ] {
        let numbers = match what {
            Row::Started("for") => plan.in_flight_of_forks(),
            _ => vec![1, 64],
        };
        for in_flight in numbers {
            let rounds = rounds(plan, &mut sides, what, in_flight).await?;
            let found = Overhead {
                row,
                in_flight,
                variant: sides[1].name,
                rounds,
            };
            say(&format!(
                "{row} ({in_flight}): {:.0}/s, {:.2} of the rate in 0.8; {:?}",
                found.rate(),
                found.rate_ratio(),
                found.cpu()
            ));
            all.push(found);
        }
    }
    Ok(all)
}

async fn side(
    setup: &Setup,
    name: &'static str,
    prefix: &'static str,
    all: &[Value],
    document: &str,
) -> Result<Side> {
    let cluster = Cluster::start(setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    for definition in all {
        client.deploy(definition, Some(document)).await?;
    }
    let hub = Hub::open(cluster.servers.nats_link.clone()).await?;
    Ok(Side {
        name,
        cluster,
        hub,
        prefix,
        next: 0,
    })
}

/// The figures of DSL 1.0, each with those of 0.8 in the same round.
async fn rounds(
    plan: &Plan,
    sides: &mut [Side; 2],
    row: Row,
    in_flight: usize,
) -> Result<Vec<(Figure, Figure)>> {
    let mut counts = Vec::new();
    for side in sides.iter_mut() {
        let figure = side
            .measure(row, in_flight, (2 * in_flight).max(WARM))
            .await?;
        counts.push(((figure.rate * plan.seconds) as usize).max(in_flight));
    }
    let mut count = counts.into_iter().min().unwrap_or(in_flight);
    if matches!(row, Row::Correlated) {
        count = count.min(WAITING);
    }
    let mut all = Vec::new();
    for round in 0..plan.repeats.max(3) {
        let mut figures = [Figure::default(), Figure::default()];
        // Neither is always the first.
        for turn in 0..2 {
            let at = (turn + round) % 2;
            figures[at] = sides[at].measure(row, in_flight, count).await?;
        }
        let [old, new] = figures;
        all.push((new, old));
    }
    Ok(all)
}

impl Side {
    async fn measure(&mut self, row: Row, in_flight: usize, count: usize) -> Result<Figure> {
        match row {
            Row::Started(workflow) => {
                let input = match workflow {
                    "for" => cases::items(100),
                    _ => json!({"n": 0}),
                };
                let work = Work::new(&format!("{}{workflow}", self.prefix), &input);
                results_of(&self.cluster, &work, in_flight, count).await
            }
            Row::EventStarted => creating_of(&self.cluster, &self.hub, in_flight, count).await,
            Row::Correlated => {
                let id = format!("{}wait", self.prefix);
                let first = 1_000_000 + self.next;
                fill(&self.cluster, &id, first, count).await?;
                self.next += count;
                self.hub.skip_to(first);
                answering(&self.cluster, &self.hub, in_flight, count).await
            }
        }
    }
}

/// A loop in one instance: the time of an iteration, the memory of the worker, and the bytes of its record.
#[derive(Debug)]
pub struct Iterations {
    pub count: usize,
    pub us_each: f64,
    pub worker_bytes: u64,
    pub redis_bytes: u64,
}

pub async fn iterations(plan: &Plan, setup: &Setup) -> Result<Vec<Iterations>> {
    let cluster = Cluster::start(setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    client.deploy(&tasks::counting("count"), None).await?;
    let mut all = Vec::new();
    for count in plan.lengths() {
        let before = cluster.servers.redis_memory().await?;
        let work = Work::new("bench.count", &json!({"times": count}));
        let figure = results_of(&cluster, &work, 1, 1).await?;
        let after = cluster.servers.redis_memory().await?;
        let processes = cluster.meter().processes;
        let worker = processes.iter().find(|(name, _)| name == "worker");
        let pid = worker.map_or(0, |(_, pid)| *pid);
        all.push(Iterations {
            count,
            us_each: figure.p50_ms * 1e3 / count as f64,
            worker_bytes: memory(pid)?,
            redis_bytes: after.saturating_sub(before),
        });
    }
    ensure!(!all.is_empty(), "nothing was measured");
    Ok(all)
}

/// The most memory that a process has had, in bytes.
fn memory(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mut lines = status.lines();
    let peak = lines.find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(peak.unwrap_or(0) * 1024)
}
