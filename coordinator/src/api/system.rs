//! `/system`: the processes, and how late they are; `/system/checks`: whether they have what they need.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use swirl_cluster::SILENT_MS;
use swirl_model::time::Timestamp;
use swirl_ports::{SeenProcess, UnreadCount};

use super::Api;
use super::insight::QueueFigures;
use super::problem::Problem;

pub async fn system(State(api): State<Api>) -> Result<Json<Value>, Problem> {
    let now = api.service.clock.now();
    let (processes, queues, next, lifecycle) = match &api.insight {
        Some(insight) => (
            insight.processes().await?,
            insight.queues().await,
            insight.next_timer().await?,
            insight.lifecycle().await?,
        ),
        None => (Vec::new(), None, api.service.next_timer().await?, None),
    };
    let processes: Vec<Value> = processes.iter().map(|one| process(one, now)).collect();
    let queues: Option<Vec<Value>> = queues.map(|all| all.iter().map(queue).collect());
    Ok(Json(json!({
        "at": instant(now),
        "processes": processes,
        "queues": queues,
        "timers": {
            "lateMs": next.map_or(0, |due| since(due, now)),
            "next": next.map(instant),
        },
        "lifecycle": lifecycle.map(|unread| lag(unread, now)),
    })))
}

fn instant(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// The milliseconds since then; 0 if that is in the future.
fn since(at: Timestamp, now: Timestamp) -> i64 {
    now.0.saturating_sub(at.0).max(0)
}

fn process(seen: &SeenProcess, now: Timestamp) -> Value {
    let process = &seen.process;
    json!({
        "id": process.id,
        "role": process.role,
        "host": process.host,
        "version": process.version,
        "since": instant(process.since),
        "seenAt": instant(seen.seen),
        "alive": since(seen.seen, now) < SILENT_MS,
    })
}

fn queue(figures: &QueueFigures) -> Value {
    json!({
        "queue": figures.name,
        "pending": figures.pending,
        "unacknowledged": figures.unacknowledged,
        "oldestMs": figures.oldest_ms,
    })
}

fn lag(unread: UnreadCount, now: Timestamp) -> Value {
    json!({
        "lagMs": unread.since.map_or(0, |at| since(at, now)),
        "instances": unread.instances,
    })
}

/// The results may name servers and files, so they are for operators.
pub async fn checks(State(api): State<Api>) -> Json<Value> {
    let (last, running) = match &api.checks {
        Some(checks) => checks.look().await,
        None => (None, false),
    };
    let mut answer = json!({
        "checks": [],
        "healthy": null,
        "checkedAt": last.as_ref().map(|last| instant(last.at)),
        "running": running,
    });
    if let Some(last) = &last {
        let report = last.report.json();
        for name in ["checks", "healthy"] {
            answer[name] = report[name].clone();
        }
    }
    Json(answer)
}
