//! The cost of what histories keep (`history.data`): instances of ten calls with each choice, alternately, with short
//! arguments and with longer ones.

use anyhow::Result;
use serde_json::json;

use super::client::Client;
use super::overhead::middle;
use super::process::{Cluster, Setup};
use super::service;
use super::starts::{Work, results_of};
use super::workflows;
use crate::plan::Plan;
use crate::report::Report;

/// The name of a choice, and its settings.
const CHOICES: [(&str, &[&str]); 4] = [
    ("none", &["--history-data", "none"]),
    (
        "errors",
        &["--history-data", "errors", "--history-recent-calls", "0"],
    ),
    (
        "errors, and the last 3 calls",
        &["--history-data", "errors", "--history-recent-calls", "3"],
    ),
    ("all", &["--history-data", "all"]),
];
/// Instances of a measurement, and how many run at once.
const COUNT: usize = 500;
const IN_FLIGHT: usize = 8;
/// The characters of a longer argument.
const LONG: usize = 500;

/// What an instance costs.
#[derive(Default)]
struct Costs {
    /// Bytes that Redis received, and that it keeps.
    sent: Vec<f64>,
    kept: Vec<f64>,
    /// Microseconds of processor time.
    worker: Vec<f64>,
    redis: Vec<f64>,
}

pub async fn measure(plan: &Plan, setup: &Setup, report: &mut Report) -> Result<()> {
    let document = service::document(service::start().await?);
    let mut clusters = Vec::new();
    for (_, settings) in CHOICES {
        let setup = Setup {
            settings,
            ..setup.clone()
        };
        let cluster = Cluster::start(&setup).await?;
        let mut client = Client::open(cluster.api()).await?;
        let short = workflows::calls("short");
        let mut long = workflows::calls("long");
        for state in long["states"].as_array_mut().into_iter().flatten() {
            state["actions"][0]["functionRef"]["arguments"]["note"] = json!("${ .note }");
        }
        for definition in [short, long] {
            client.deploy(&definition, Some(&document)).await?;
        }
        clusters.push(cluster);
    }
    for workflow in ["short", "long"] {
        let input = json!({"n": 0, "note": "x".repeat(LONG)});
        let work = Work::new(workflow, &input);
        let mut costs: Vec<Costs> = CHOICES.iter().map(|_| Costs::default()).collect();
        for round in 0..=plan.repeats {
            for turn in 0..CHOICES.len() {
                let at = (turn + round) % CHOICES.len();
                let cluster = &clusters[at];
                let before = cluster.servers.redis_memory().await?;
                let figure = results_of(cluster, &work, IN_FLIGHT, COUNT).await?;
                let after = cluster.servers.redis_memory().await?;
                // The first round warms up.
                if round == 0 {
                    continue;
                }
                let of = |name: &str| 1e6 * figure.usage.cpu.get(name).copied().unwrap_or_default();
                let costs = &mut costs[at];
                costs.sent.push(figure.usage.bytes_in);
                costs
                    .kept
                    .push((after as f64 - before as f64) / COUNT as f64);
                costs.worker.push(of("worker"));
                costs.redis.push(of("Redis"));
            }
        }
        let rows = CHOICES.iter().zip(costs).map(|((name, _), costs)| {
            let all = [costs.sent, costs.kept, costs.worker, costs.redis];
            let figures = all.map(|values| format!("{:.0}", middle(values.into_iter())));
            std::iter::once((*name).to_owned()).chain(figures).collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        for row in &rows {
            println!("{workflow}: {}", row.join(" | "));
        }
        report.say(&format!(
            "## What histories keep, {workflow} arguments\n\nAn instance of ten calls:\n"
        ));
        let head = [
            "`history.data`",
            "bytes to Redis",
            "bytes kept",
            "µs of the worker",
            "µs of Redis",
        ];
        report.table(&head, &rows);
    }
    Ok(())
}
