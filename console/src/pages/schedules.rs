//! Schedules: their next starts, pausing, an extra start, and backfills of a past period.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use swirl_api::Instant;
use swirl_api::schedules::{
    BACKFILL, Backfill, FIRE, Kind, LIST, ListQuery, PAUSE, RESUME, Schedule, Workflow,
};

use super::Done;
use crate::answer::{Answer, Failure, go_to, with_status};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::{Form, Visitor};
use crate::words::short;

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
    told: &'static str,
    schedule: String,
    zone: String,
    next: Vec<Instant>,
    paused: bool,
    starts: bool,
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
        Ok(Page {
            shell,
            rows: found.schedules.into_iter().map(row).collect(),
            filled: None,
        })
    }
}

fn row(row: Schedule) -> Row {
    let told = match row.kind {
        _ if row.by_events => "starts nothing: the workflow begins with events",
        Kind::Cron => "by a cron expression",
        Kind::Interval => "at each interval",
        Kind::After => "at an interval after each end",
        _ => "limits when instances may be started",
    };
    Row {
        path: segment(&row.workflow),
        workflow: row.workflow,
        version: row.version,
        told,
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
