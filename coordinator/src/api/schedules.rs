//! `/schedules`, and the schedule of one workflow: its next starts, an extra start, and the starts of a past period.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_engine::Definition;
use swirl_model::time::Timestamp;
use swirl_model::workflow::When;
use swirl_service::{Audited, NotFilled, Operator, Planned};

use super::Api;
use super::audit::audited;
use super::operate::Asker;
use super::paging;
use super::problem::{Problem, cut};
use super::request::{self, Parameters, Unread, located};

/// The default and the maximum number of next starts in a listing.
const NEXT: usize = 3;
const NEXT_MAX: usize = 100;
/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 4 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    next: Option<usize>,
    after: Option<String>,
    limit: Option<usize>,
}

pub async fn list(
    State(api): State<Api>,
    Parameters(query): Parameters<Query>,
) -> Result<Json<Value>, Problem> {
    let count = query.next.unwrap_or(NEXT);
    if !(1..=NEXT_MAX).contains(&count) {
        let detail = format!("'next' is from 1 to {NEXT_MAX}");
        return Err(Problem::bad_request("invalid-query", detail));
    }
    let limit = paging::limit(query.limit)?;
    let after: Option<String> = paging::place(query.after.as_deref())?;
    // One more than shown, to know whether there are more.
    let asked = api.service.planned(count, after.as_deref(), limit + 1);
    let place = |one: &Planned| one.definition.workflow.to_string();
    let (rows, next) = paging::page(asked.await?, limit, place, row);
    Ok(Json(json!({
        "schedules": rows,
        "complete": next.is_none(),
        "next": next,
    })))
}

fn row(planned: &Planned) -> Value {
    let (kind, text) = match &planned.schedule.when {
        When::Cron { expression, .. } => ("cron", expression),
        When::Interval(text) => ("interval", text),
        When::After(text) => ("after", text),
        When::Window(text) => ("window", text),
    };
    let next = planned.next.iter().map(|at| format!("{at:.3}"));
    json!({
        "workflow": &*planned.definition.workflow,
        "version": &*planned.definition.version,
        "kind": kind,
        "schedule": text,
        "timezone": planned.schedule.timezone,
        "paused": planned.paused,
        "byEvents": planned.by_events,
        "next": next.collect::<Vec<_>>(),
    })
}

/// Starts an instance at once, in addition to those of the schedule.
pub async fn fire(
    State(api): State<Api>,
    Path(workflow): Path<String>,
    Asker(operator): Asker,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let definition = scheduled(&api, &workflow).await?;
    let request = match request::key(&headers)? {
        Some(key) => format!("key {key}"),
        None => request::draw()?,
    };
    let fired = api.service.fire_now(&definition, &request).await?;
    let (id, new) = fired.map_err(|error| refused(&error.to_string()))?;
    let status = if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let body = Json(json!({"id": id.as_str(), "new": new}));
    let mut response = (status, body).into_response();
    if let Ok(location) = located(&["instances", id.as_str()]).parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if new {
        let entry = entry("schedule-fire", &workflow, &operator).with("instance", &id);
        response = audited(response, entry);
    }
    Ok(response)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Backfill {
    from: String,
    to: String,
    #[serde(default)]
    dry_run: bool,
}

pub async fn backfill(
    State(api): State<Api>,
    Path(workflow): Path<String>,
    Asker(operator): Asker,
    body: Unread,
) -> Result<Response, Problem> {
    let bytes = request::text(body, BODY_BYTES_MAX).await?;
    let asked: Backfill = serde_json::from_slice(&bytes).map_err(|error| {
        let detail = format!(
            "the body must be {{\"from\": \"2026-01-31T00:00:00Z\", \"to\": ..., \"dryRun\": true}}: {error}"
        );
        Problem::bad_request("invalid-json", cut(&detail))
    })?;
    let instant = |name: &str, text: &str| {
        // A date is its beginning in UTC, as in queries.
        let midnight = format!("{text}T00:00:00Z");
        let is_date = text.len() == "2026-01-31".len();
        Timestamp::parse(if is_date { &midnight } else { text }).map_err(|error| {
            let detail = format!(
                "'{name}' is not an instant such as 2026-01-31T00:00:00Z or 2026-01-31: {error}"
            );
            Problem::bad_request("invalid-json", cut(&detail))
        })
    };
    let time = (instant("from", &asked.from)?, instant("to", &asked.to)?);
    let definition = scheduled(&api, &workflow).await?;
    let filled = api.service.backfill(&definition, time, asked.dry_run);
    let filled = filled.await?.map_err(|error| match error {
        NotFilled::Refused(error) => refused(&error.to_string()),
        error => Problem::bad_request("invalid-range", error.to_string()),
    })?;
    let rows = filled.iter().map(|one| {
        json!({
            "at": format!("{:.3}", one.at),
            "id": one.instance.as_str(),
            "new": one.new,
        })
    });
    let response = Json(json!({
        "workflow": workflow,
        "dryRun": asked.dry_run,
        "starts": rows.collect::<Vec<_>>(),
    }));
    let response = response.into_response();
    if asked.dry_run {
        return Ok(response);
    }
    let started = filled.iter().filter(|one| one.new).count();
    let entry = entry("schedule-backfill", &workflow, &operator)
        .with("from", format!("{:.3}", time.0))
        .with("to", format!("{:.3}", time.1))
        .with("started", started);
    Ok(audited(response, entry))
}

/// The entry of an action on a schedule in the audit log.
pub(super) fn entry(action: &'static str, workflow: &str, operator: &Operator) -> Audited {
    Audited::new(action, "schedule", workflow).because(operator.reason.as_deref())
}

fn refused(detail: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "start-refused", detail)
}

/// The latest version of a workflow, if its schedule starts instances.
async fn scheduled(api: &Api, workflow: &str) -> Result<Arc<Definition>, Problem> {
    let found = api.service.registry.resolve(workflow, None).await?;
    let definition = found
        .map_err(|unknown| Problem::not_found("unknown-workflow", cut(&unknown.to_string())))?;
    let schedule = definition.workflow.schedule.as_ref();
    let starts = schedule.is_some_and(|schedule| !matches!(schedule.when, When::Window(_)));
    let catalog = api.service.registry.catalog().await?;
    let deployed = catalog.one(&definition.id);
    if !starts || deployed.is_none_or(|one| !one.starts_by_schedule()) {
        let detail = format!("{} has no schedule that starts instances", definition.id);
        return Err(Problem::conflict("no-schedule", cut(&detail)));
    }
    Ok(definition)
}
