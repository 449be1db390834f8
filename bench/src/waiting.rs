//! Waiting instances in `swirl dev`: the memory for each, the recovery time of a killed process, and the time until an
//! event reaches one of them.
//!
//! Half of them wait for an event of their own with a timeout, half sleep, so each has an armed timer.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::cluster::http::Connection;
use crate::dev::Dev;
use crate::report::Report;

/// The number of requests that are under way at once.
const IN_FLIGHT: usize = 64;
/// The number of events that are sent, one at a time.
const EVENTS: usize = 200;
/// The time for which an idle process is observed.
const IDLE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(120);

/// The system's data about a process.
#[derive(Debug, Clone, Copy)]
struct Seen {
    rss_bytes: f64,
    threads: u64,
    descriptors: usize,
}

/// Measures these numbers of instances, each in a separate process and store.
pub async fn measure(binary: &Path, counts: &[usize], report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for count in counts {
        rows.push(one(binary, *count).await?);
    }
    let head = [
        "instances",
        "starts/s",
        "memory",
        "KB each",
        "after a restart",
        "KB each",
        "on disk, KB each",
        "threads",
        "descriptors",
        "CPU when idle",
        "ready after SIGKILL",
        "event to end p50 ms",
        "p99 ms",
    ];
    report.say("## Instances that wait, in `swirl dev`\n");
    report.table(&head, &rows);
    Ok(())
}

async fn one(binary: &Path, count: usize) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    for (name, document) in definitions() {
        std::fs::write(
            folder.path().join(format!("{name}.sw.json")),
            document.to_string(),
        )?;
    }
    let (dev, _) = Dev::start(binary, folder.path()).await?;
    let empty = seen(&dev)?;
    let begun = Instant::now();
    let ids = Arc::new(started(dev.address, count).await?);
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    all_wait(dev.address, &ids).await?;
    let busy = cpu_seconds(&dev)?;
    tokio::time::sleep(IDLE).await;
    let idle = (cpu_seconds(&dev)? - busy) / IDLE.as_secs_f64();
    let full = seen(&dev)?;
    drop(dev);

    let (dev, ready) = Dev::start(binary, folder.path()).await?;
    all_wait(dev.address, &ids).await?;
    let again = seen(&dev)?;
    let times = deliver(dev.address, &ids).await?;
    let each = |seen: Seen| (seen.rss_bytes - empty.rss_bytes) / count as f64 / 1e3;
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let row = vec![
        count.to_string(),
        format!("{rate:.0}"),
        format!("{:.0} MB", full.rss_bytes / 1e6),
        format!("{:.2}", each(full)),
        format!("{:.0} MB", again.rss_bytes / 1e6),
        format!("{:.2}", each(again)),
        format!("{:.2}", size(folder.path())? as f64 / count as f64 / 1e3),
        full.threads.to_string(),
        full.descriptors.to_string(),
        format!("{:.1} %", idle * 100.0),
        format!("{:.2} s", ready.as_secs_f64()),
        format!("{:.2}", at(0.5)),
        format!("{:.2}", at(0.99)),
    ];
    Ok(row)
}

fn definitions() -> [(&'static str, Value); 2] {
    let waiter = json!({
        "id": "waiter", "version": "1.0.0", "specVersion": "0.8",
        "events": [{"name": "Go", "type": "bench.go", "source": "/bench", "correlation": [
            {"contextAttributeName": "order", "contextAttributeValue": "${ .order }"}]}],
        "states": [
            {"name": "Begin", "type": "inject", "data": {"begun": true}, "transition": "Wait"},
            {"name": "Wait", "type": "event", "onEvents": [{"eventRefs": ["Go"]}],
             "timeouts": {"eventTimeout": "P1D"}, "end": true},
        ],
    });
    let sleeper = json!({
        "id": "sleeper", "version": "1.0.0", "specVersion": "0.8",
        "states": [{"name": "Sleep", "type": "sleep", "duration": "P1D", "end": true}],
    });
    [("waiter", waiter), ("sleeper", sleeper)]
}

/// The ids, alternately of waiters and sleepers.
async fn started(address: SocketAddr, count: usize) -> Result<Vec<String>> {
    let mut lanes = tokio::task::JoinSet::new();
    for lane in 0..IN_FLIGHT {
        lanes.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let mut ids = Vec::new();
            for number in (lane..count).step_by(IN_FLIGHT) {
                let workflow = if number % 2 == 0 { "waiter" } else { "sleeper" };
                let path = format!("/api/v1/workflows/{workflow}/instances");
                let input = json!({"order": order(number)}).to_string();
                let (status, body) = connection
                    .request("POST", &path, &[], input.as_bytes())
                    .await?;
                ensure!(
                    status == 201,
                    "{status}: {}",
                    String::from_utf8_lossy(&body)
                );
                let answer: Value = serde_json::from_slice(&body)?;
                ids.push((number, answer["id"].as_str().unwrap_or_default().to_owned()));
            }
            anyhow::Ok(ids)
        });
    }
    let mut all = Vec::with_capacity(count);
    while let Some(ids) = lanes.join_next().await {
        all.extend(ids??);
    }
    all.sort();
    Ok(all.into_iter().map(|(_, id)| id).collect())
}

fn order(number: usize) -> String {
    format!("order-{number}")
}

/// Polls each instance until it waits and has its timer.
async fn all_wait(address: SocketAddr, ids: &Arc<Vec<String>>) -> Result<()> {
    let mut lanes = tokio::task::JoinSet::new();
    for lane in 0..IN_FLIGHT {
        let ids = ids.clone();
        lanes.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for (number, id) in ids.iter().enumerate().skip(lane).step_by(IN_FLIGHT) {
                let doing = if number % 2 == 0 {
                    "waiting for events"
                } else {
                    "sleeping"
                };
                until(&mut connection, id, |view| {
                    let scope = &view["scopes"][0];
                    scope["doing"] == doing
                        && scope["timers"].as_array().is_some_and(|t| t.len() == 1)
                })
                .await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = lanes.join_next().await {
        done??;
    }
    Ok(())
}

async fn until(
    connection: &mut Connection,
    id: &str,
    there: impl Fn(&Value) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        let path = format!("/api/v1/instances/{id}");
        let (_, body) = connection.request("GET", &path, &[], b"").await?;
        let view: Value = serde_json::from_slice(&body)?;
        if there(&view) {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("this instance is not as it should be: {view:#}");
        }
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
}

/// Measures from sending an event until the instance is seen to have ended because of it; fastest first.
async fn deliver(address: SocketAddr, ids: &[String]) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(address).await?;
    let mut times = Vec::new();
    // Waiters have even numbers, and all parts of the store should be covered.
    let step = (ids.len() / EVENTS / 2).max(1) * 2;
    for number in (0..ids.len()).step_by(step).take(EVENTS) {
        let event = json!({"specversion": "1.0", "id": format!("event-{number}"), "source": "/bench",
            "type": "bench.go", "order": order(number), "data": {"gone": number}});
        let headers = [("content-type", "application/cloudevents+json")];
        let begun = Instant::now();
        let body = event.to_string();
        let (status, answer) = connection
            .request("POST", "/api/v1/events", &headers, body.as_bytes())
            .await?;
        ensure!(
            status == 202,
            "{status}: {}",
            String::from_utf8_lossy(&answer)
        );
        until(&mut connection, &ids[number], |view| {
            view["status"] == "completed" && view["output"]["gone"] == number
        })
        .await?;
        times.push(begun.elapsed());
    }
    times.sort();
    ensure!(!times.is_empty(), "there was nobody to send events to");
    Ok(times)
}

fn seen(dev: &Dev) -> Result<Seen> {
    let folder = format!("/proc/{}", dev.process.id());
    let status = std::fs::read_to_string(format!("{folder}/status"))?;
    let number = |name: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse().ok())
            .with_context(|| format!("the system doesn't report {name}"))
    };
    Ok(Seen {
        rss_bytes: number("VmRSS:")? as f64 * 1024.0,
        threads: number("Threads:")?,
        descriptors: std::fs::read_dir(format!("{folder}/fd"))?.count(),
    })
}

fn cpu_seconds(dev: &Dev) -> Result<f64> {
    crate::usage::cpu(dev.process.id())
}

fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() {
            size(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(bytes)
}
