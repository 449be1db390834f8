//! The cost of search attributes and lifecycle events: the same measurements without them, with each, and with both.
//! The four variants are measured alternately in each round and compared within the round, because a machine's speed
//! changes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::client::Client;
use super::process::{Cluster, Setup};
use super::service;
use super::starts::{Work, results_of};
use super::workflows;
use crate::measure::Figure;
use crate::plan::Plan;

/// Processes check at this interval whether lifecycle events are on, plus a margin.
const NOTICED: Duration = Duration::from_secs(5);
/// The minimum number of instances that shows how fast a variant is.
const WARM: usize = 20;
/// The default of `redis.shards`.
const SHARDS: u16 = 64;
/// The time in which events must be published after the last instance has ended.
const PUBLISHED_MAX: Duration = Duration::from_secs(300);

const VARIANTS: [Variant; 4] = [
    Variant::new("plain", false, false),
    Variant::new("five attributes", true, false),
    Variant::new("lifecycle events", false, true),
    Variant::new("both", true, true),
];

#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    is_searched: bool,
    is_published: bool,
}

impl Variant {
    const fn new(name: &'static str, is_searched: bool, is_published: bool) -> Variant {
        Variant {
            name,
            is_searched,
            is_published,
        }
    }
}

/// A measurement in one variant: its figures for each round, and those of the variant that it is compared with (the plain
/// one) in the same rounds.
pub struct Overhead {
    pub row: &'static str,
    pub in_flight: usize,
    pub variant: &'static str,
    pub(super) rounds: Vec<(Figure, Figure)>,
}

impl Overhead {
    /// Instances per second.
    pub fn rate(&self) -> f64 {
        middle(self.rounds.iter().map(|(own, _)| own.rate))
    }

    /// The ratio to the rate of the plain variant.
    pub fn rate_ratio(&self) -> f64 {
        self.ratio(|figure| figure.rate)
    }

    pub fn functions(&self) -> f64 {
        middle(self.rounds.iter().map(|(own, _)| own.usage.scripts))
    }

    pub fn functions_ratio(&self) -> f64 {
        self.ratio(|figure| figure.usage.scripts)
    }

    /// Processor time per instance and process in microseconds, and its ratio to the plain variant.
    pub fn cpu(&self) -> BTreeMap<String, (f64, f64)> {
        let names = self.rounds.iter().flat_map(|(own, _)| own.usage.cpu.keys());
        let names: std::collections::BTreeSet<&String> = names.collect();
        let of = |figure: &Figure, name: &str| {
            figure.usage.cpu.get(name).copied().unwrap_or_default() * 1e6
        };
        names
            .into_iter()
            .map(|name| {
                let own = middle(self.rounds.iter().map(|(own, _)| of(own, name)));
                (name.clone(), (own, self.ratio(|figure| of(figure, name))))
            })
            .collect()
    }

    /// The median of the ratios of all rounds.
    fn ratio(&self, of: impl Fn(&Figure) -> f64) -> f64 {
        middle(self.rounds.iter().map(|(own, plain)| of(own) / of(plain)))
    }
}

pub(super) fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub async fn measure(
    plan: &Plan,
    setup: &Setup,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Overhead>> {
    let document = service::document(service::start().await?);
    // Both run all the time, and one of them is idle.
    let silent = started(setup, false, &document).await?;
    let published = started(setup, true, &document).await?;
    tokio::time::sleep(NOTICED).await;
    let mut all = Vec::new();
    for (row, workflow, input) in [
        ("ten pure states", "pure", json!({"name": "Ada", "n": 0})),
        ("forks of one", "messages", json!({"n": 0})),
        ("ten HTTP calls", "calls", json!({"n": 0})),
    ] {
        for in_flight in plan.in_flight() {
            let figures = rounds(plan, (&silent, &published), workflow, &input, in_flight).await?;
            for (variant, rounds) in VARIANTS.iter().zip(figures) {
                let found = Overhead {
                    row,
                    in_flight,
                    variant: variant.name,
                    rounds,
                };
                say(&format!(
                    "{row} ({in_flight}), {}: {:.0}/s, {:.2} of the plain rate",
                    found.variant,
                    found.rate(),
                    found.rate_ratio()
                ));
                all.push(found);
            }
        }
    }
    Ok(all)
}

async fn started(setup: &Setup, publishes: bool, document: &str) -> Result<Cluster> {
    let setup = Setup {
        publishes,
        ..setup.clone()
    };
    let cluster = Cluster::start(&setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    type Make = fn(&str) -> Value;
    let all: [(&str, Make); 3] = [
        ("pure", workflows::pure),
        ("messages", workflows::messages),
        ("calls", workflows::calls),
    ];
    for (workflow, make) in all {
        client.deploy(&make(workflow), Some(document)).await?;
        let mut searched = make(&format!("{workflow}-searched"));
        searched["metadata"] = json!({"swirl": {"search": attributes()}});
        client.deploy(&searched, Some(document)).await?;
    }
    Ok(cluster)
}

/// Three values that stay the same, and two that follow the data.
fn attributes() -> Value {
    json!({
        "orderId": {"value": "${ .orderId }", "type": "string"},
        "customer": {"value": "${ .customer }", "type": "string"},
        "placedAt": {"value": "${ .placedAt }", "type": "time"},
        "total": {"value": "${ .total }", "type": "number"},
        "n": {"value": "${ .n }", "type": "number"},
    })
}

/// For each variant, its figures together with those of the plain one.
async fn rounds(
    plan: &Plan,
    (silent, published): (&Cluster, &Cluster),
    workflow: &str,
    input: &Value,
    in_flight: usize,
) -> Result<Vec<Vec<(Figure, Figure)>>> {
    let mut input = input.clone();
    for (name, value) in [
        ("orderId", json!("o-4711")),
        ("customer", json!("ada@example.org")),
        ("placedAt", json!("2026-01-31T09:00:00Z")),
        ("total", json!(129.5)),
    ] {
        input[name] = value;
    }
    let work = |variant: &Variant| match variant.is_searched {
        true => Work::new(&format!("{workflow}-searched"), &input),
        false => Work::new(workflow, &input),
    };
    let cluster = |variant: &Variant| match variant.is_published {
        true => published,
        false => silent,
    };
    let mut counts = Vec::new();
    for variant in &VARIANTS {
        // Each variant warms up first. The number of counted instances is what it can run in the time of a measurement.
        let warm = (2 * in_flight).max(WARM);
        let figure = results_of(cluster(variant), &work(variant), in_flight, warm).await?;
        counts.push(((figure.rate * plan.seconds) as usize).max(in_flight));
        all_published(cluster(variant), variant).await?;
    }
    let count = counts.into_iter().min().unwrap_or(in_flight);
    let mut all = vec![Vec::new(); VARIANTS.len()];
    for round in 0..plan.repeats {
        let mut figures: Vec<Figure> = vec![Figure::default(); VARIANTS.len()];
        // The order rotates, so no variant is always the first.
        for turn in 0..VARIANTS.len() {
            let at = (turn + round) % VARIANTS.len();
            let variant = &VARIANTS[at];
            figures[at] = one(cluster(variant), variant, &work(variant), in_flight, count).await?;
        }
        let plain = figures[0].clone();
        for (at, figure) in figures.into_iter().enumerate() {
            all[at].push((figure, plain.clone()));
        }
    }
    Ok(all)
}

/// The processor time includes the publication of events after the last instance has ended.
async fn one(
    cluster: &Cluster,
    variant: &Variant,
    work: &Work,
    in_flight: usize,
    count: usize,
) -> Result<Figure> {
    let meter = cluster.meter();
    let before = meter.read().await?;
    let mut figure = results_of(cluster, work, in_flight, count).await?;
    all_published(cluster, variant).await?;
    figure.usage = meter.read().await?.since(&before).by(count as f64);
    Ok(figure)
}

async fn all_published(cluster: &Cluster, variant: &Variant) -> Result<()> {
    if !variant.is_published {
        return Ok(());
    }
    let begun = Instant::now();
    while unread(cluster).await? > 0 {
        if begun.elapsed() > PUBLISHED_MAX {
            bail!("lifecycle events are still not published after {PUBLISHED_MAX:?}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let published = cluster.messages("LIFECYCLE").await?;
    ensure!(
        published > 0,
        "lifecycle events are on, and none was published"
    );
    Ok(())
}

/// The number of instances with entries that aren't published yet. A metric shows it as well, but only every few
/// seconds.
async fn unread(cluster: &Cluster) -> Result<u64> {
    let mut counts = redis::pipe();
    for shard in 0..SHARDS {
        counts
            .cmd("ZCARD")
            .arg(format!("{{default:{shard}}}:unread"));
    }
    let mut link = cluster.servers.redis_link.clone();
    let counts: Vec<u64> = counts.query_async(&mut link).await?;
    Ok(counts.into_iter().sum())
}
