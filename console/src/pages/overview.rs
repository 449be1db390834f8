//! The state of the system, at a glance.

use askama::Template;
use swirl_api::Instant;
use swirl_api::overview::OVERVIEW;
use swirl_api::system::SYSTEM;

use super::lateness::{self, Fact, Process};
use crate::answer::{Answer, page};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::Visitor;
use crate::words::{Pill, pill_of, short};

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    shell: Shell,
    counts: Vec<Count>,
    failures: Vec<Failures>,
    oldest: Vec<Oldest>,
    facts: Vec<Fact>,
    processes: Vec<Process>,
    lacking: &'static str,
    empty: bool,
}

struct Count {
    pill: Pill,
    count: u64,
}

struct Failures {
    workflow: String,
    state: String,
    error: String,
    message: String,
    count: usize,
    newest: String,
    workflow_path: String,
}

struct Oldest {
    id: String,
    short: String,
    path: String,
    workflow: String,
    started: Instant,
    suspended: bool,
}

pub async fn show(visitor: Visitor) -> Answer {
    let shell = Shell::new(&visitor, "overview", "Overview").await?;
    let found = visitor.asking.ask(OVERVIEW.ask()).await?;
    let system = visitor.asking.ask(SYSTEM.ask()).await?;
    let facts = lateness::facts(&system);
    let processes = lateness::processes(system.processes);
    let counts = found.counts.iter().map(|row| Count {
        pill: pill_of(&row.status, false, false),
        count: row.count,
    });
    let failures = found.failures.into_iter().map(|row| Failures {
        workflow_path: segment(&row.workflow),
        workflow: row.workflow,
        state: row.state.unwrap_or_default(),
        error: row.error,
        message: row.message.unwrap_or_default(),
        count: row.count,
        newest: segment(&row.newest.unwrap_or_default()),
    });
    let oldest = found.oldest.into_iter().map(|row| Oldest {
        short: short(&row.id),
        path: segment(&row.id),
        id: row.id,
        workflow: row.workflow,
        started: row.started_at,
        suspended: row.suspended,
    });
    page(&Page {
        shell: shell.with_news(),
        empty: found.counts.iter().all(|row| row.count == 0),
        counts: counts.collect(),
        failures: failures.collect(),
        oldest: oldest.collect(),
        facts,
        lacking: lateness::lacking(&processes),
        processes,
    })
}
