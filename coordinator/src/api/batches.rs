//! `/batches`: one operation on all instances that match a query.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::Data;
use swirl_model::instance::Status;
use swirl_ports::{Batch, BatchCreation, BatchItem, BatchOrder, BatchOutcome, BatchState, Batches};
use swirl_service::{Audited, BatchLimits, Operation, RATE, RATE_MAX};

use super::aftermath::Aftermath;
use super::noted::audited;
use super::operate::Asker;
use super::problem::{Problem, bounded, cut};
use super::request::{self, Parameters, Unread, located};
use super::{Api, matching, paging, trial};
use crate::access::Caller;

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How many instances of a batch a request examines in total, per read, and concurrently.
const LOOKED_MAX: usize = 20_000;
const LOOKED_AT_ONCE: u32 = 1_000;
const CONCURRENT: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BatchRequest {
    operation: String,
    #[serde(default, deserialize_with = "nullable")]
    result: Option<Data>,
    state: Option<String>,
    patch: Option<String>,
    version: Option<String>,
    query: String,
    reason: Option<String>,
    rate: Option<u32>,
    #[serde(default)]
    dry_run: bool,
}

/// `null` is a valid result.
fn nullable<'d, D: serde::Deserializer<'d>>(from: D) -> Result<Option<Data>, D::Error> {
    Data::deserialize(from).map(Some)
}

pub async fn create(
    State(api): State<Api>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
    body: Unread,
) -> Result<Response, Problem> {
    let (store, limits) = store(&api)?;
    let bytes = request::text(body, BODY_BYTES_MAX).await?;
    let asked: BatchRequest = serde_json::from_slice(&bytes).map_err(|error| {
        let detail = format!(
            "the body must be {{\"operation\": \"retry\", \"query\": \"status = faulted\", \"dryRun\": true}}: {error}"
        );
        Problem::bad_request("invalid-json", bounded(&detail))
    })?;
    let dry_run = asked.dry_run;
    let request = match request::key(&headers)? {
        Some(key) => format!("key {key}"),
        None => request::draw()?,
    };
    let by = caller.map(|Extension(caller)| caller.name);
    let mut order = order(&api, asked, by, &request)?;
    let operation = Operation::of(&order)
        .map_err(|error| Problem::bad_request("invalid-operation", error.to_string()))?;
    if !dry_run && let Some(found) = store.batch(&order.id).await? {
        return repeated(&order, &found);
    }
    let found = matching::find(&api, &order.query, limits).await?;
    order.matched = found.ids.len() as u32;
    if dry_run {
        let tally = trial::tally(&api, &found.ids, &operation, matching::SAMPLE).await?;
        return Ok(Json(found.shown(&order, &tally)).into_response());
    }
    let creation = store
        .create_batch(&order, &found.ids, limits.active)
        .await?;
    if creation == BatchCreation::TooMany {
        return Err(Problem::conflict(
            "too-many-batches",
            format!(
                "{} batches are under way: stop one, or wait until one has ended",
                limits.active
            ),
        ));
    }
    let answered = stored(&*store, &order.id).await.map(|batch| answer(&batch));
    if creation == BatchCreation::Known {
        return answered;
    }
    let (by, operation) = (order.by.as_deref(), &*order.operation);
    tracing::info!(
        batch = order.id,
        by,
        operation,
        matched = order.matched,
        query = order.query,
        reason = order.reason.as_deref(),
        "a batch was created"
    );
    let entry = entry("batch", &order, order.reason.as_deref());
    Ok(audited(answered.into_response(), entry))
}

async fn stored(store: &dyn Batches, id: &str) -> Result<Batch, Problem> {
    store.batch(id).await?.ok_or_else(|| unknown(id))
}

/// The entry of an action on a batch in the audit log.
fn entry(action: &'static str, order: &BatchOrder, reason: Option<&str>) -> Audited {
    let mut entry = Audited::new(action, "batch", order.id.as_str())
        .because(reason)
        .with("operation", &order.operation)
        .with("query", &order.query)
        .with("instances", order.matched);
    for (name, value) in [
        ("state", &order.state),
        ("patch", &order.patch),
        ("version", &order.version),
    ] {
        if let Some(value) = value {
            entry = entry.with(name, value);
        }
    }
    entry
}

/// Returns 201 even if an earlier request created the batch, because 200 means a dry run.
fn answer(batch: &Batch) -> Response {
    let mut response = (StatusCode::CREATED, Json(shown(batch))).into_response();
    if let Ok(location) = located(&["batches", &batch.order.id]).parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn order(
    api: &Api,
    asked: BatchRequest,
    by: Option<String>,
    request: &str,
) -> Result<BatchOrder, Problem> {
    if asked.query.trim().is_empty() {
        return Err(Problem::bad_request(
            "empty-query",
            "a batch needs a query: an empty one would mean all instances",
        ));
    }
    let reason = request::reason(asked.reason)?;
    let rate = asked.rate.unwrap_or(RATE);
    if !(1..=RATE_MAX).contains(&rate) {
        let detail = format!("'rate' is the number of instances per second, from 1 to {RATE_MAX}");
        return Err(Problem::bad_request("invalid-operation", detail));
    }
    Ok(BatchOrder {
        id: api.service.batch_id(request),
        operation: asked.operation,
        result: asked.result,
        state: asked.state,
        patch: asked.patch,
        version: asked.version,
        query: asked.query,
        by,
        reason,
        rate,
        created_at: api.service.clock.now(),
        matched: 0,
    })
}

/// The response to a request with the `Idempotency-Key` of an earlier one.
fn repeated(order: &BatchOrder, found: &Batch) -> Result<Response, Problem> {
    let same = BatchOrder {
        created_at: found.order.created_at,
        matched: found.order.matched,
        by: found.order.by.clone(),
        ..order.clone()
    };
    if same != found.order {
        return Err(Problem::conflict(
            "key-conflict",
            "this Idempotency-Key was used for another batch",
        ));
    }
    Ok(answer(found))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    after: Option<String>,
    limit: Option<u32>,
}

pub async fn list(
    State(api): State<Api>,
    Parameters(asked): Parameters<Listed>,
) -> Result<Json<Value>, Problem> {
    let limit = paging::limit(asked.limit)?;
    let after: Option<(i64, String)> = paging::place(asked.after.as_deref())?;
    let place = |batch: &Batch| (batch.order.created_at.0, batch.order.id.clone());
    let mut all = store(&api)?.0.batches().await?;
    all.retain(|batch| after.as_ref().is_none_or(|after| place(batch) < *after));
    all.sort_by_key(|batch| std::cmp::Reverse(place(batch)));
    let (rows, next) = paging::page(all, limit, place, shown);
    Ok(Json(json!({
        "batches": rows,
        "complete": next.is_none(),
        "next": next,
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewQuery {
    #[serde(default)]
    afterwards: bool,
}

pub async fn one(
    State(api): State<Api>,
    Path(id): Path<String>,
    Parameters(query): Parameters<ViewQuery>,
) -> Result<Json<Value>, Problem> {
    let store = store(&api)?.0;
    let batch = stored(&*store, &id).await?;
    let mut view = shown(&batch);
    if query.afterwards {
        view["afterwards"] = afterwards(&api, &*store, &batch).await?;
    }
    Ok(Json(view))
}

/// What has become of the instances that were processed.
async fn afterwards(api: &Api, store: &dyn Batches, batch: &Batch) -> Result<Value, Problem> {
    let mut aftermath = Aftermath::default();
    let turns = batch.counts.all();
    let looked = turns.min(LOOKED_MAX as u32);
    for from in (0..looked).step_by(LOOKED_AT_ONCE as usize) {
        let limit = LOOKED_AT_ONCE.min(looked - from);
        let mut items = store.batch_items(&batch.order.id, from, limit).await?;
        items.retain(|item| item.outcome == Some(BatchOutcome::Done));
        for (item, status) in with_status(api, items).await? {
            let operation = &batch.order.operation;
            aftermath
                .add(api, operation, &item.instance, status)
                .await?;
        }
    }
    Ok(aftermath.shown(looked == turns, batch.state.has_ended()))
}

async fn with_status(
    api: &Api,
    items: Vec<BatchItem>,
) -> Result<Vec<(BatchItem, Option<Status>)>, Problem> {
    let found = stream::iter(items)
        .map(async |item| {
            let instance = api.queries.instance(&item.instance).await?;
            let status = instance.map(|instance| instance.state.status);
            Ok::<_, Problem>((item, status))
        })
        .buffered(CONCURRENT);
    found.try_collect().await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    after: Option<String>,
    limit: Option<u32>,
    outcome: Option<String>,
}

pub async fn results(
    State(api): State<Api>,
    Path(id): Path<String>,
    Parameters(asked): Parameters<Results>,
) -> Result<Json<Value>, Problem> {
    const WORDS: [&str; 4] = ["done", "refused", "failed", "waiting"];
    let limit = paging::limit(asked.limit)?;
    let after: Option<u32> = paging::place(asked.after.as_deref())?;
    if let Some(other) = asked
        .outcome
        .as_deref()
        .filter(|word| !WORDS.contains(word))
    {
        let detail = format!(
            "'{}' is not a valid outcome; use one of {}",
            cut(other),
            WORDS.join(", ")
        );
        return Err(Problem::bad_request("invalid-query", detail));
    }
    let store = store(&api)?.0;
    let matched = stored(&*store, &id).await?.order.matched;
    let mut place = after.unwrap_or(0).min(matched);
    let end = matched.min(place.saturating_add(LOOKED_MAX as u32));
    let mut rows: Vec<BatchItem> = Vec::new();
    while place < end && rows.len() < limit {
        let size = LOOKED_AT_ONCE.min(end - place);
        for item in store.batch_items(&id, place, size).await? {
            if rows.len() >= limit {
                break;
            }
            place += 1;
            let word = word(item.outcome.as_ref());
            if asked.outcome.as_deref().is_none_or(|wanted| wanted == word) {
                rows.push(item);
            }
        }
    }
    let rows = with_status(&api, rows).await?;
    let next = if place < matched {
        paging::next(&place)
    } else {
        None
    };
    Ok(Json(json!({
        "results": rows.iter().map(result).collect::<Vec<_>>(),
        "complete": next.is_none(),
        "next": next,
    })))
}

fn word(outcome: Option<&BatchOutcome>) -> &'static str {
    match outcome {
        None => "waiting",
        Some(BatchOutcome::Done) => "done",
        Some(BatchOutcome::Refused { .. }) => "refused",
        Some(BatchOutcome::Failed { .. }) => "failed",
    }
}

fn result((item, status): &(BatchItem, Option<Status>)) -> Value {
    let mut row = json!({
        "instance": item.instance.as_str(),
        "outcome": word(item.outcome.as_ref()),
        "status": status.map(Status::as_str),
    });
    match &item.outcome {
        Some(BatchOutcome::Refused { code, detail }) => {
            row["code"] = json!(code);
            row["detail"] = json!(detail);
        }
        Some(BatchOutcome::Failed { detail }) => row["detail"] = json!(detail),
        Some(BatchOutcome::Done) | None => {}
    }
    row
}

pub async fn pause(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
) -> Result<Response, Problem> {
    change(&api, &id, BatchState::Paused, asker).await
}

pub async fn resume(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
) -> Result<Response, Problem> {
    change(&api, &id, BatchState::Running, asker).await
}

pub async fn stop(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
) -> Result<Response, Problem> {
    change(&api, &id, BatchState::Stopped, asker).await
}

async fn change(
    api: &Api,
    id: &str,
    to: BatchState,
    Asker(operator): Asker,
) -> Result<Response, Problem> {
    let store = store(api)?.0;
    let before = stored(&*store, id).await?.state;
    if !before.may_become(to) {
        let detail = format!("the batch is {}", before.as_str());
        return Err(Problem::conflict("wrong-status", detail));
    }
    let after = store.change_batch(id, to, api.service.clock.now()).await?;
    let after = after.ok_or_else(|| unknown(id))?;
    if after.state != to {
        let detail = format!("the batch has just become {}", after.state.as_str());
        return Err(Problem::conflict("wrong-status", detail));
    }
    let action = match to {
        BatchState::Paused => "batch-pause",
        BatchState::Running => "batch-resume",
        BatchState::Stopped | BatchState::Completed => "batch-stop",
    };
    let entry = entry(action, &after.order, operator.reason.as_deref());
    Ok(audited(Json(shown(&after)).into_response(), entry))
}

fn shown(batch: &Batch) -> Value {
    let (order, counts) = (&batch.order, &batch.counts);
    let mut shown = json!({
        "id": order.id,
        "operation": order.operation,
        "query": order.query,
        "reason": order.reason,
        "by": order.by,
        "rate": order.rate,
        "status": batch.state.as_str(),
        "createdAt": format!("{:.3}", order.created_at),
        "endedAt": batch.ended_at.map(|at| format!("{at:.3}")),
        "matched": order.matched,
        "done": counts.done,
        "refused": counts.refused,
        "failed": counts.failed,
        "waiting": order.matched.saturating_sub(counts.all()),
        "refusals": counts.refusals,
    });
    if let Some(result) = &order.result {
        shown["result"] = Value::from(result);
    }
    if let Some(state) = &order.state {
        shown["state"] = json!(state);
    }
    if let Some(patch) = &order.patch {
        shown["patch"] = json!(patch);
    }
    if let Some(version) = &order.version {
        shown["version"] = json!(version);
    }
    shown
}

fn store(api: &Api) -> Result<(Arc<dyn Batches>, BatchLimits), Problem> {
    let store = api.batches.clone();
    store.ok_or_else(|| Problem::not_found("unknown-route", "this server has no batches"))
}

fn unknown(id: &str) -> Problem {
    let detail = format!(
        "batch '{}' doesn't exist, or was removed after its retention",
        cut(id)
    );
    Problem::not_found("unknown-batch", detail)
}
