//! Schedules: their next starts, pausing, an extra start, and backfills of a past period.

use std::iter::repeat_with;

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use futures::future::try_join_all;
use swirl_api::Instant;
use swirl_api::instance::{self, quoted};
use swirl_api::schedules::{
    BACKFILL, Backfill, FIRE, Kind, LIST, ListQuery, PAUSE, RESUME, Schedule, Workflow,
};

use super::Done;
use super::search::address;
use crate::answer::{Answer, Failure, go_to, with_status};
use crate::asking::segment;
use crate::shell::Shell;
use crate::spoken;
use crate::visitor::{Form, Visitor};
use crate::words::{Pill, pill_of, short};

/// Of how many schedules the page says what they started last, and among how many instances that is looked for.
const LOOKED_INTO: usize = 25;
const NEWEST: u32 = 20;

/// Instances that a schedule has started: they have an instant in it, and any is after this one.
const STARTED: &str = "scheduled > 1970-01-01";

#[derive(Template)]
#[template(path = "schedules.html")]
struct Page {
    shell: Shell,
    rows: Vec<Row>,
    filled: Option<Filled>,
}

struct Row {
    workflow: String,
    path: String,
    version: String,
    definition_path: String,
    /// The kind of schedule, and in words when it starts instances; empty if there is none.
    kind: &'static str,
    words: String,
    schedule: String,
    zone: String,
    next: Vec<Instant>,
    paused: bool,
    starts: bool,
    /// The last instance that the schedule has started, if it is among the newest of the workflow.
    last: Option<Last>,
    /// The address of all instances that it has started.
    all: String,
}

struct Last {
    at: Instant,
    path: String,
    pill: Pill,
}

struct Filled {
    workflow: String,
    path: String,
    dry_run: bool,
    starts: Vec<Start>,
    /// Not all of them were there already.
    has_new: bool,
    /// The fields of the form, for the one that starts what a dry run has shown.
    from: String,
    to: String,
    reason: String,
}

struct Start {
    at: Instant,
    short: String,
    path: String,
    new: bool,
}

pub async fn show(visitor: Visitor, Query(done): Query<Done>) -> Answer {
    let mut page = Page::new(&visitor).await?;
    page.shell = page.shell.with_done(done.done.as_deref());
    with_status(StatusCode::OK, &page)
}

impl Page {
    async fn new(visitor: &Visitor) -> Result<Page, Failure> {
        let shell = Shell::new(visitor, "schedules", "Schedules").await?;
        let query = ListQuery {
            next: Some(3),
            ..ListQuery::default()
        };
        let found = visitor.asking.ask_pages(LIST.ask().query(query)).await?;
        let some = found.schedules.iter().take(LOOKED_INTO);
        let lasts = try_join_all(some.map(|schedule| last(visitor, &schedule.workflow))).await?;
        let lasts = lasts.into_iter().chain(repeat_with(|| None));
        let rows = found.schedules.into_iter().zip(lasts);
        Ok(Page {
            shell,
            rows: rows.map(|(schedule, last)| row(schedule, last)).collect(),
            filled: None,
        })
    }
}

/// The last instance that the schedule of a workflow has started, if it is among its newest ones: a longer search could
/// take long.
async fn last(visitor: &Visitor, workflow: &str) -> Result<Option<Last>, Failure> {
    let query = instance::ListQuery {
        workflow: Some(workflow.to_owned()),
        limit: Some(NEWEST),
        ..instance::ListQuery::default()
    };
    let found = visitor
        .asking
        .ask(instance::LIST.ask().query(query))
        .await?;
    let mut rows = found.instances.into_iter();
    let last = rows.find(|row| row.scheduled_at.is_some());
    Ok(last.map(|row| Last {
        at: row.scheduled_at.unwrap_or(row.started_at),
        path: segment(&row.id),
        pill: pill_of(&row.status, row.suspended, row.waiting.unwrap_or(false)),
    }))
}

fn row(row: Schedule, last: Option<Last>) -> Row {
    let kind = match row.kind {
        _ if row.by_events => "It starts nothing: events start this workflow.",
        Kind::Cron => "cron expression",
        Kind::Interval => "interval",
        Kind::After => "interval after each end",
        _ => "It limits when instances may be started.",
    };
    let query = format!("workflow = {} and {STARTED}", quoted(&row.workflow));
    Row {
        words: spoken::schedule(&row.kind, &row.schedule),
        all: address(&[("query", &query)]),
        last,
        definition_path: format!("{}/{}", segment(&row.workflow), segment(&row.version)),
        path: segment(&row.workflow),
        workflow: row.workflow,
        version: row.version,
        kind,
        schedule: row.schedule,
        zone: row.timezone.unwrap_or_default(),
        next: row.next,
        paused: row.paused,
        starts: !row.by_events && row.kind != Kind::Window,
    }
}

pub async fn act(
    visitor: Visitor,
    Path((id, action)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let workflow = Workflow { id };
    match action.as_str() {
        "pause" | "resume" => {
            let route = if action == "pause" { &PAUSE } else { &RESUME };
            let call = route.at(&workflow).query(form.reason_query());
            visitor.asking.ask(call).await?;
            go_to(&format!("/console/schedules?done=schedule-{action}"))
        }
        "fire" => {
            let call = FIRE.at(&workflow).query(form.reason_query());
            let started = visitor.asking.ask(call).await?;
            let id = segment(&started.id);
            go_to(&format!("/console/instances/{id}?done=fire"))
        }
        "backfill" => {
            let call = BACKFILL.at(&workflow).query(form.reason_query());
            let call = call.body(&Backfill {
                from: instant(form.get("from")),
                to: instant(form.get("to")),
                dry_run: form.get("do") != "start",
            });
            let filled = visitor.asking.ask(call).await?;
            let starts = filled.starts.into_iter().map(|start| Start {
                at: start.at,
                short: short(&start.id),
                path: segment(&start.id),
                new: start.new,
            });
            let mut page = Page::new(&visitor).await?;
            let starts: Vec<Start> = starts.collect();
            page.filled = Some(Filled {
                path: segment(&workflow.id),
                workflow: workflow.id,
                dry_run: filled.dry_run,
                has_new: starts.iter().any(|start| start.new),
                starts,
                from: form.get("from").to_owned(),
                to: form.get("to").to_owned(),
                reason: form.get("reason").to_owned(),
            });
            with_status(StatusCode::OK, &page)
        }
        _ => Err(Failure::not_found("unknown action")),
    }
}

/// The value of a browser's field for an instant, in UTC.
fn instant(text: &str) -> String {
    match (text.len(), text.ends_with('Z')) {
        (16, false) => format!("{text}:00Z"),
        (19, false) => format!("{text}Z"),
        _ => text.to_owned(),
    }
}
