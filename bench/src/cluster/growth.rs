//! Measures how costs grow with the data, the work and the environment of an instance.

use anyhow::Result;
use serde_json::{Value, json};

use super::client::Client;
use super::events::{Hub, answering};
use super::process::{Cluster, Setup};
use super::starts::{Work, results, results_of};
use super::waits::fill;
use super::{cases, workflows};
use crate::plan::Plan;

/// A growing quantity, and the costs at each size.
#[derive(Debug, Clone)]
pub struct Growth {
    pub title: &'static str,
    pub x: &'static str,
    pub y: &'static str,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

pub async fn grow(plan: &Plan, setup: &Setup, say: &mut dyn FnMut(&Growth)) -> Result<Vec<Growth>> {
    let cluster = Cluster::start(setup).await?;
    cases::deploy(&cluster).await?;
    let mut all = Vec::new();
    let mut add = |growth: Growth| {
        say(&growth);
        all.push(growth);
    };
    add(sizes(plan, &cluster).await?);
    add(fan_outs(plan, &cluster).await?);
    add(lengths(plan, &cluster).await?);
    drop(cluster);
    let [time, memory] = crowds(plan, setup).await?;
    add(time);
    add(memory);
    add(workers(plan, setup).await?);
    Ok(all)
}

async fn sizes(plan: &Plan, cluster: &Cluster) -> Result<Growth> {
    let (mut pure, mut calls) = (Vec::new(), Vec::new());
    for size in plan.sizes() {
        // The largest input that the API accepts is 1 MiB.
        let input = json!({"n": 0, "text": "x".repeat(size)});
        for (workflow, points) in [("pure", &mut pure), ("calls", &mut calls)] {
            let work = Work::new(workflow, &input);
            let figure = results_of(cluster, &work, 1, if plan.quick { 5 } else { 30 }).await?;
            points.push((size as f64, figure.p50_ms));
        }
    }
    Ok(Growth {
        title: "State data",
        x: "bytes of state data",
        y: "ms from start to result (p50)",
        lines: vec![
            Line {
                name: "ten pure states",
                points: pure,
            },
            Line {
                name: "ten HTTP calls",
                points: calls,
            },
        ],
    })
}

/// The median time of an instance, divided by this number of parts.
async fn each(cluster: &Cluster, work: &Work, parts: usize) -> Result<f64> {
    let count = (2_000 / parts).clamp(1, 20);
    let figure = results_of(cluster, work, 1, count).await?;
    Ok(figure.p50_ms / parts as f64)
}

async fn fan_outs(plan: &Plan, cluster: &Cluster) -> Result<Growth> {
    let mut points = Vec::new();
    for count in plan.fan_outs() {
        let work = Work::new("foreach", &cases::items(count)).giving(json!({"count": count}));
        points.push((count as f64, each(cluster, &work, count).await?));
    }
    let mut calls = Vec::new();
    for count in plan.fan_outs_of_calls() {
        let input = cases::items(count);
        let work = Work::new("foreach-calls", &input).giving(json!({"count": count}));
        calls.push((count as f64, each(cluster, &work, count).await?));
    }
    Ok(Growth {
        title: "Fan-out",
        x: "iterations of a foreach",
        y: "ms by iteration",
        lines: vec![
            Line {
                name: "foreach",
                points,
            },
            Line {
                name: "with an HTTP call each",
                points: calls,
            },
        ],
    })
}

async fn lengths(plan: &Plan, cluster: &Cluster) -> Result<Growth> {
    let mut points = Vec::new();
    for limit in plan.lengths() {
        let work = Work::new("circle", &json!({"n": 0, "limit": limit}));
        points.push((limit as f64, each(cluster, &work, limit).await?));
    }
    Ok(Growth {
        title: "History",
        x: "states that an instance went through",
        y: "ms by state",
        lines: vec![Line {
            name: "a loop of two states",
            points,
        }],
    })
}

async fn crowds(plan: &Plan, setup: &Setup) -> Result<[Growth; 2]> {
    let cluster = Cluster::start(setup).await?;
    let mut client = Client::open(cluster.api()).await?;
    client.deploy(&workflows::correlated("wait"), None).await?;
    let hub = Hub::open(cluster.servers.nats_link.clone()).await?;
    let (mut alone, mut many, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut there = 0;
    for crowd in plan.crowds() {
        // Instances that received their events have ended, so the next ones need new keys.
        let filled = fill(&cluster, "wait", there, crowd).await?;
        bytes.push((crowd as f64, filled.overhead()));
        let single = (crowd / 10).clamp(10, 200);
        alone.push((
            crowd as f64,
            answering(&cluster, &hub, 1, single).await?.p50_ms,
        ));
        let rest = answering(&cluster, &hub, 64, (crowd - single).min(5_000)).await?;
        many.push((crowd as f64, 1e3 / rest.rate));
        there += crowd;
        hub.skip_to(there);
    }
    let time = Growth {
        title: "Waiting instances",
        x: "instances that wait",
        y: "ms by event",
        lines: vec![
            Line {
                name: "one at a time (p50)",
                points: alone,
            },
            Line {
                name: "64 at once (1/rate)",
                points: many,
            },
        ],
    };
    let memory = Growth {
        title: "Memory",
        x: "instances that wait for an event",
        y: "bytes of Redis beyond what is kept of it",
        lines: vec![Line {
            name: "by instance",
            points: bytes,
        }],
    };
    Ok([time, memory])
}

async fn workers(plan: &Plan, setup: &Setup) -> Result<Growth> {
    let (mut calls, mut foreach) = (Vec::new(), Vec::new());
    for workers in plan.workers() {
        let setup = Setup {
            workers,
            ..setup.clone()
        };
        let cluster = Cluster::start(&setup).await?;
        cases::deploy(&cluster).await?;
        let input: Value = json!({});
        let figure = results(&cluster, &Work::new("calls", &input), 64, plan.seconds).await?;
        calls.push((workers as f64, figure.rate * workflows::CHAIN as f64));
        let work = Work::new("foreach", &cases::items(100));
        let figure = results(&cluster, &work, 16, plan.seconds).await?;
        foreach.push((workers as f64, figure.rate * 100.0));
    }
    Ok(Growth {
        title: "Workers",
        x: "workers, with all else on the same processors",
        y: "by second",
        lines: vec![
            Line {
                name: "HTTP calls, 64 instances at once",
                points: calls,
            },
            Line {
                name: "iterations, 16 instances at once",
                points: foreach,
            },
        ],
    })
}
