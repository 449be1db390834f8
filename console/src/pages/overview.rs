//! The state of the system, at a glance.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use swirl_api::Instant;
use swirl_api::definitions;
use swirl_api::instance::InstanceSummary;
use swirl_api::overview::OVERVIEW;
use swirl_api::system::SYSTEM;

use super::columns::{details, duration, now};
use super::lateness::{self, Fact, Process};
use super::search::address;
use super::trend::{Of, Trend};
use crate::answer::{Answer, page};
use crate::asking::segment;
use crate::naming::Name;
use crate::shell::Shell;
use crate::timeline::took;
use crate::visitor::Visitor;
use crate::words::{Pill, pill_of};

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    shell: Shell,
    counts: Vec<Count>,
    trend: Trend,
    failures: Vec<Failures>,
    oldest: Vec<Oldest>,
    facts: Vec<Fact>,
    processes: Vec<Process>,
    lacking: &'static str,
    /// There has been no instance yet.
    empty: bool,
    /// No definition is deployed.
    is_new: bool,
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
    /// There may be more like these.
    more: bool,
    newest: String,
    /// The address of all of them.
    all: String,
    query: String,
}

struct Oldest {
    id: String,
    name: Name,
    path: String,
    workflow: String,
    version: String,
    pill: Pill,
    state: String,
    details: String,
    started: Instant,
    duration: String,
}

#[derive(Deserialize, Default)]
pub struct Asked {
    /// `day`, otherwise the hour.
    #[serde(default)]
    trend: Option<String>,
}

pub async fn show(visitor: Visitor, Query(asked): Query<Asked>) -> Answer {
    let shell = Shell::new(&visitor, "overview", "Overview").await?;
    let found = visitor.asking.ask(OVERVIEW.ask()).await?;
    let system = visitor.asking.ask(SYSTEM.ask()).await?;
    let facts = lateness::facts(&system);
    let processes = lateness::processes(system.processes);
    let empty = found.counts.iter().all(|row| row.count == 0);
    let is_new = match empty {
        true => {
            let deployed = visitor.asking.ask(definitions::LIST.ask()).await?;
            deployed.definitions.is_empty()
        }
        false => false,
    };
    let counts = found.counts.iter().map(|row| Count {
        pill: pill_of(&row.status, false, false),
        count: row.count,
    });
    page(&Page {
        shell: shell.with_news(),
        counts: counts.collect(),
        trend: Trend::of(Of::read(asked.trend.as_deref()), &found.trend),
        failures: found.failures.into_iter().map(failures).collect(),
        oldest: found.oldest.into_iter().map(oldest).collect(),
        facts,
        lacking: lateness::lacking(&processes),
        processes,
        empty,
        is_new,
    })
}

fn failures(row: swirl_api::overview::Failures) -> Failures {
    Failures {
        workflow: row.workflow,
        state: row.state.unwrap_or_default(),
        error: row.error,
        message: row.message.unwrap_or_default(),
        count: row.count,
        more: row.more,
        newest: segment(&row.newest.unwrap_or_default()),
        all: address(&[("query", &row.query)]),
        query: row.query,
    }
}

fn oldest(row: InstanceSummary) -> Oldest {
    Oldest {
        name: Name::of(
            &row.id,
            row.instance_key.as_deref(),
            row.key.as_deref(),
            &row.attributes,
        ),
        path: segment(&row.id),
        pill: pill_of(&row.status, row.suspended, row.waiting.unwrap_or(false)),
        details: details(&row),
        duration: took(duration(&row, now())),
        workflow: row.workflow,
        version: row.version,
        state: row.state.unwrap_or_default(),
        started: row.started_at,
        id: row.id,
    }
}
