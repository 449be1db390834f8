//! Schedules: their next starts, pausing, an extra start, and backfills of a past period.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Done;
use crate::answer::{Answer, Failure, go_to, list, text, with_status};
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
    told: String,
    schedule: String,
    zone: String,
    next: Vec<String>,
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
    at: String,
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
        let found = visitor
            .asking
            .rows(&["schedules"], &[("next", "3")], "schedules")
            .await?;
        Ok(Page {
            shell,
            rows: found.iter().map(row).collect(),
            filled: None,
        })
    }
}

fn row(row: &Value) -> Row {
    let workflow = text(row, "workflow");
    let by_events = row["byEvents"] == true;
    let told = match row["kind"].as_str() {
        _ if by_events => "starts nothing: the workflow begins with events",
        Some("cron") => "by a cron expression",
        Some("interval") => "at each interval",
        _ => "limits when instances may be started",
    };
    let next = list(row, "next").iter().filter_map(Value::as_str);
    Row {
        path: segment(&workflow),
        workflow,
        version: text(row, "version"),
        told: told.to_owned(),
        schedule: text(row, "schedule"),
        zone: text(row, "timezone"),
        next: next.map(str::to_owned).collect(),
        paused: row["paused"] == true,
        starts: !by_events && row["kind"] != "window",
    }
}

pub async fn act(
    visitor: Visitor,
    Path((workflow, action)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let path = ["workflows", workflow.as_str(), "schedule", action.as_str()];
    let reason = form.reason();
    match action.as_str() {
        "pause" | "resume" => {
            visitor.asking.post(&path, &reason, &[], "").await?;
            go_to(&format!("/console/schedules?done=schedule-{action}"))
        }
        "fire" => {
            let body = visitor.asking.post(&path, &reason, &[], "").await?;
            let id = segment(&text(&body, "id"));
            go_to(&format!("/console/instances/{id}?done=fire"))
        }
        "backfill" => {
            let dry_run = form.get("do") != "start";
            let time = json!({
                "from": instant(form.get("from")),
                "to": instant(form.get("to")),
                "dryRun": dry_run,
            });
            let headers = [("content-type", "application/json")];
            let time = time.to_string();
            let asked = visitor.asking.post(&path, &reason, &headers, &time);
            let body = asked.await?;
            let starts = list(&body, "starts").iter().map(|start| {
                let id = text(start, "id");
                Start {
                    at: text(start, "at"),
                    short: short(&id),
                    path: segment(&id),
                    new: start["new"] == true,
                }
            });
            let mut page = Page::new(&visitor).await?;
            let starts: Vec<Start> = starts.collect();
            page.filled = Some(Filled {
                path: segment(&workflow),
                workflow,
                dry_run,
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
