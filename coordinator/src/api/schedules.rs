//! `/schedules`, and the schedule of one workflow: its next starts, an extra start, and the starts of a past period.

use std::sync::Arc;

use axum::http::StatusCode;
use swirl_api::schedules::{
    Backfill, Backfilled, Kind, ListQuery, PausedSchedule, PlannedStart, Schedule, Schedules,
    Started, Workflow,
};
use swirl_api::{Nothing, Reason};
use swirl_engine::Definition;
use swirl_model::time::Timestamp;
use swirl_model::workflow::When;
use swirl_service::{Audited, NotFilled, Operator, Planned};

use super::problem::{Problem, bounded, cut};
use super::request::{self, located};
use super::serve::{Asked, Done};
use super::{Api, definitions, paging};

/// The default and the maximum number of next starts in a listing.
const NEXT: usize = 3;
const NEXT_MAX: usize = 100;

pub async fn list(
    api: Api,
    Asked { query, .. }: Asked<Nothing, ListQuery, Nothing>,
) -> Result<Schedules, Problem> {
    let count = paging::number("next", query.next, NEXT, NEXT_MAX)?;
    let limit = paging::limit(query.limit)?;
    let after: Option<String> = paging::place(query.after.as_deref())?;
    // One more than shown, to know whether there are more.
    let asked = api.service.planned(count, after.as_deref(), limit + 1);
    let place = |one: &Planned| one.definition.workflow.to_string();
    let (schedules, next) = paging::page(asked.await?, limit, place, row);
    Ok(Schedules {
        schedules,
        complete: next.is_none(),
        next,
    })
}

fn row(planned: &Planned) -> Schedule {
    let (kind, text) = match &planned.schedule.when {
        When::Cron { expression, .. } => (Kind::Cron, expression),
        When::Interval(text) => (Kind::Interval, text),
        When::After(text) => (Kind::After, text),
        When::Window(text) => (Kind::Window, text),
    };
    Schedule {
        workflow: planned.definition.workflow.to_string(),
        version: planned.definition.version.to_string(),
        kind,
        schedule: text.to_string(),
        timezone: planned.schedule.timezone.as_ref().map(ToString::to_string),
        paused: planned.paused,
        by_events: planned.by_events,
        next: planned.next.iter().copied().map(Into::into).collect(),
    }
}

pub async fn pause(
    api: Api,
    asked: Asked<Workflow, Reason, Nothing>,
) -> Result<Done<PausedSchedule>, Problem> {
    set_paused(&api, asked, true).await
}

pub async fn resume(
    api: Api,
    asked: Asked<Workflow, Reason, Nothing>,
) -> Result<Done<PausedSchedule>, Problem> {
    set_paused(&api, asked, false).await
}

async fn set_paused(
    api: &Api,
    asked: Asked<Workflow, Reason, Nothing>,
    paused: bool,
) -> Result<Done<PausedSchedule>, Problem> {
    let operator = asked.operator()?;
    let Workflow { id } = asked.path;
    let deployed = definitions::resolve(api, &id).await?;
    if deployed.calendar.is_none() {
        let detail = format!("{} has no schedule", deployed.id());
        return Err(Problem::conflict("no-schedule", bounded(&detail)));
    }
    api.service.pause_schedule(&id, paused).await?;
    let entry = entry(&id, &operator);
    Ok(Done::from(PausedSchedule { id, paused }).audited(entry))
}

/// Starts an instance at once, in addition to those of the schedule.
pub async fn fire(
    api: Api,
    asked: Asked<Workflow, Reason, Nothing>,
) -> Result<Done<Started>, Problem> {
    let operator = asked.operator()?;
    let Workflow { id: workflow } = asked.path;
    let definition = scheduled(&api, &workflow).await?;
    let request = match asked.key {
        Some(key) => format!("key {key}"),
        None => request::draw()?,
    };
    let fired = api.service.fire_now(&definition, &request).await?;
    let (id, new) = fired.map_err(|error| refused(&error.to_string()))?;
    let id = id.to_string();
    let location = located(&["instances", &id]);
    let entry = entry(&workflow, &operator).with("instance", &id);
    let done = Done::from(Started { id, new }).located(location);
    Ok(match new {
        true => done.with_status(StatusCode::CREATED).audited(entry),
        false => done,
    })
}

pub async fn backfill(
    api: Api,
    asked: Asked<Workflow, Reason, Backfill>,
) -> Result<Done<Backfilled>, Problem> {
    let operator = asked.operator()?;
    let Workflow { id: workflow } = asked.path;
    let instant = |name: &str, text: &str| {
        // A date is its beginning in UTC, as in queries.
        let midnight = format!("{text}T00:00:00Z");
        let is_date = text.len() == "2026-01-31".len();
        Timestamp::parse(if is_date { &midnight } else { text }).map_err(|_| {
            let detail = format!(
                "'{name}' is '{}', which is not an instant such as 2026-01-31T00:00:00Z or 2026-01-31",
                cut(text)
            );
            Problem::bad_request("invalid-json", detail)
        })
    };
    let Backfill { from, to, dry_run } = asked.body;
    let time = (instant("from", &from)?, instant("to", &to)?);
    let definition = scheduled(&api, &workflow).await?;
    let filled = api.service.backfill(&definition, time, dry_run);
    let filled = filled.await?.map_err(|error| match error {
        NotFilled::Refused(error) => refused(&error.to_string()),
        error => Problem::bad_request("invalid-range", error.to_string()),
    })?;
    let started = filled.iter().filter(|one| one.new).count();
    let entry = entry(&workflow, &operator)
        .with("from", format!("{:.3}", time.0))
        .with("to", format!("{:.3}", time.1))
        .with("started", started);
    let starts = filled.iter().map(|one| PlannedStart {
        at: one.at.into(),
        id: one.instance.to_string(),
        new: one.new,
    });
    let done = Done::from(Backfilled {
        workflow,
        dry_run,
        starts: starts.collect(),
    });
    Ok(match dry_run {
        true => done,
        false => done.audited(entry),
    })
}

/// The entry of an action on a schedule in the audit log.
fn entry(workflow: &str, operator: &Operator) -> Audited {
    Audited::of(workflow).because(operator.reason.as_deref())
}

fn refused(detail: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "start-refused", detail)
}

/// The latest version of a workflow, if its schedule starts instances.
async fn scheduled(api: &Api, workflow: &str) -> Result<Arc<Definition>, Problem> {
    let found = api.service.registry.resolve(workflow, None).await?;
    let definition = found
        .map_err(|unknown| Problem::not_found("unknown-workflow", bounded(&unknown.to_string())))?;
    let schedule = definition.workflow.schedule.as_ref();
    let starts = schedule.is_some_and(|schedule| !matches!(schedule.when, When::Window(_)));
    let catalog = api.service.registry.catalog().await?;
    let deployed = catalog.one(&definition.id);
    if !starts || deployed.is_none_or(|one| !one.starts_by_schedule()) {
        let detail = format!("{} has no schedule that starts instances", definition.id);
        return Err(Problem::conflict("no-schedule", bounded(&detail)));
    }
    Ok(definition)
}
