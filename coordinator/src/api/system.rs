//! `/system`: the processes, and how late they are; `/system/checks`: whether they have what they need.

use swirl_api::Nothing;
use swirl_api::system::{Check, Checks, Lifecycle, Process, Queue, System, Timers};
use swirl_connections::SILENT_MS;
use swirl_model::time::Timestamp;
use swirl_ports::{SeenProcess, UnreadCount};

use super::Api;
use super::insight::QueueFigures;
use super::problem::Problem;
use super::serve::Asked;
use crate::doctor;

pub async fn system(api: Api, _: Asked<Nothing, Nothing, Nothing>) -> Result<System, Problem> {
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
    Ok(System {
        at: now.into(),
        processes: processes.into_iter().map(|one| process(one, now)).collect(),
        queues: queues.map(|all| all.into_iter().map(queue).collect()),
        timers: Timers {
            late_ms: next.map_or(0, |due| since(due, now)),
            next: next.map(Into::into),
        },
        lifecycle: lifecycle.map(|unread| lag(unread, now)),
    })
}

/// The milliseconds since then; 0 if that is in the future.
fn since(at: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.0.saturating_sub(at.0)).unwrap_or(0)
}

fn process(SeenProcess { process, seen }: SeenProcess, now: Timestamp) -> Process {
    Process {
        id: process.id,
        role: process.role,
        host: process.host,
        version: process.version,
        since: process.since.into(),
        seen_at: seen.into(),
        alive: since(seen, now) < SILENT_MS as u64,
        address: process.address,
        pid: process.pid,
        processor_percent: process.processor_percent,
        memory_bytes: process.memory_bytes,
    }
}

fn queue(figures: QueueFigures) -> Queue {
    Queue {
        queue: figures.name.to_owned(),
        pending: figures.pending,
        unacknowledged: figures.unacknowledged,
        oldest_ms: figures.oldest_ms,
    }
}

fn lag(unread: UnreadCount, now: Timestamp) -> Lifecycle {
    Lifecycle {
        lag_ms: unread.since.map_or(0, |at| since(at, now)),
        instances: unread.instances,
    }
}

/// The results may name servers and files, so they are for operators.
pub async fn checks(api: Api, _: Asked<Nothing, Nothing, Nothing>) -> Result<Checks, Problem> {
    let (last, running) = match &api.checks {
        Some(checks) => checks.look().await,
        None => (None, false),
    };
    let checks = last.iter().flat_map(|last| &last.report.checks);
    Ok(Checks {
        checks: checks.map(check).collect(),
        healthy: last.as_ref().map(|last| last.report.healthy()),
        checked_at: last.as_ref().map(|last| last.at.into()),
        running,
    })
}

fn check(check: &doctor::Check) -> Check {
    Check {
        check: check.name.clone(),
        status: check.status.as_str().into(),
        message: check.message.clone(),
        hint: check.hint.clone(),
    }
}
