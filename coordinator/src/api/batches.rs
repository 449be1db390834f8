//! `/batches`: one operation on all instances that match a query.

use std::sync::Arc;

use axum::http::StatusCode;
use futures::{StreamExt, TryStreamExt, stream};
use swirl_api::actions::Json;
use swirl_api::batches::{
    Batch as Shown, BatchAfterwards, BatchId, BatchOrder as Ordered, BatchResult, BatchResults,
    Batches as Listed, Created, GetQuery, Outcome, ResultsQuery,
};
use swirl_api::{Nothing, PageQuery, Reason};
use swirl_model::Data;
use swirl_model::instance::Instance;
use swirl_ports::{Batch, BatchCreation, BatchItem, BatchOrder, BatchOutcome, BatchState, Batches};
use swirl_service::{Audited, BatchLimits, Operation, RATE, RATE_MAX};

use super::aftermath::Aftermath;
use super::problem::{Problem, cut};
use super::request::{self, located};
use super::serve::{Asked, Done};
use super::{Api, listing, matching, paging, trial};

/// How many instances of a batch a request examines in total, per read, and concurrently.
const LOOKED_MAX: usize = 20_000;
const LOOKED_AT_ONCE: u32 = 1_000;
const CONCURRENT: usize = 32;

pub async fn create(
    api: Api,
    asked: Asked<Nothing, Nothing, Ordered>,
) -> Result<Done<Created>, Problem> {
    let (store, limits) = store(&api)?;
    let dry_run = asked.body.dry_run;
    let request = match asked.key {
        Some(key) => format!("key {key}"),
        None => request::draw()?,
    };
    let by = asked.caller.map(|caller| caller.name);
    let mut order = order(&api, asked.body, by, &request)?;
    let operation = Operation::of(&order)
        .map_err(|error| Problem::bad_request("invalid-operation", error.to_string()))?;
    if !dry_run && let Some(found) = store.batch(&order.id).await? {
        return repeated(&order, &found);
    }
    let found = matching::find(&api, &order.query, limits).await?;
    order.matched = found.ids.len() as u32;
    if dry_run {
        let tally = trial::tally(&api, &found.ids, &operation, matching::SAMPLE).await?;
        let trial = Created::Trial(found.shown(&order, &tally));
        return Ok(Done::from(trial).with_status(StatusCode::OK));
    }
    let creation = store
        .create_batch(&order, &found.ids, limits.active)
        .await?;
    if creation == BatchCreation::TooMany {
        return Err(Problem::conflict(
            "too-many-batches",
            format!(
                "{} batches are active: stop one, or wait for one to end",
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
    let entry = entry(&order, order.reason.as_deref());
    let done = answered.unwrap_or_else(|problem| Done::new(Err(problem)));
    Ok(done.audited(entry))
}

async fn stored(store: &dyn Batches, id: &str) -> Result<Batch, Problem> {
    store.batch(id).await?.ok_or_else(|| unknown(id))
}

/// The entry of an action on a batch in the audit log.
fn entry(order: &BatchOrder, reason: Option<&str>) -> Audited {
    let mut entry = Audited::of(&order.id)
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
fn answer(batch: &Batch) -> Done<Created> {
    Done::from(Created::Batch(Box::new(shown(batch))))
        .with_status(StatusCode::CREATED)
        .located(located(&["batches", &batch.order.id]))
}

fn order(
    api: &Api,
    asked: Ordered,
    by: Option<String>,
    request: &str,
) -> Result<BatchOrder, Problem> {
    if asked.query.trim().is_empty() {
        return Err(Problem::bad_request(
            "empty-query",
            "a batch needs a query: an empty one would select all instances",
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
        operation: asked.operation.to_string(),
        result: asked.result.map(|Json(result)| result),
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
fn repeated(order: &BatchOrder, found: &Batch) -> Result<Done<Created>, Problem> {
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

pub async fn list(
    api: Api,
    Asked { query: asked, .. }: Asked<Nothing, PageQuery, Nothing>,
) -> Result<Listed, Problem> {
    let limit = paging::limit(asked.limit)?;
    let after: Option<(i64, String)> = paging::place(asked.after.as_deref())?;
    let place = |batch: &Batch| (batch.order.created_at.0, batch.order.id.clone());
    let mut all = store(&api)?.0.batches().await?;
    all.retain(|batch| after.as_ref().is_none_or(|after| place(batch) < *after));
    all.sort_by_key(|batch| std::cmp::Reverse(place(batch)));
    let (rows, next) = paging::page(all, limit, place, shown);
    Ok(Listed {
        batches: rows,
        complete: next.is_none(),
        next,
    })
}

pub async fn one(
    api: Api,
    Asked { path, query, .. }: Asked<BatchId, GetQuery, Nothing>,
) -> Result<Shown, Problem> {
    let store = store(&api)?.0;
    let batch = stored(&*store, &path.id).await?;
    let mut view = shown(&batch);
    if query.afterwards {
        view.afterwards = Some(afterwards(&api, &*store, &batch).await?);
    }
    Ok(view)
}

/// What has become of the instances that were processed.
async fn afterwards(
    api: &Api,
    store: &dyn Batches,
    batch: &Batch,
) -> Result<BatchAfterwards, Problem> {
    let mut aftermath = Aftermath::default();
    let turns = batch.counts.all();
    let looked = turns.min(LOOKED_MAX as u32);
    for from in (0..looked).step_by(LOOKED_AT_ONCE as usize) {
        let limit = LOOKED_AT_ONCE.min(looked - from);
        let mut items = store.batch_items(&batch.order.id, from, limit).await?;
        items.retain(|item| item.outcome == Some(BatchOutcome::Done));
        for (item, instance) in with_instance(api, items).await? {
            let status = instance.map(|instance| instance.state.status);
            let operation = &batch.order.operation;
            aftermath
                .add(api, operation, &item.instance, status)
                .await?;
        }
    }
    Ok(aftermath.shown(looked == turns, batch.state.has_ended()))
}

/// Their inputs aren't kept: there may be many.
async fn with_instance(
    api: &Api,
    items: Vec<BatchItem>,
) -> Result<Vec<(BatchItem, Option<Instance>)>, Problem> {
    let found = stream::iter(items)
        .map(async |item| {
            let mut instance = api.queries.instance(&item.instance).await?;
            if let Some(instance) = &mut instance {
                Arc::make_mut(&mut instance.header).input = Data::NULL;
                instance.state.output = None;
            }
            Ok::<_, Problem>((item, instance))
        })
        .buffered(CONCURRENT);
    found.try_collect().await
}

pub async fn results(
    api: Api,
    Asked { path, query, .. }: Asked<BatchId, ResultsQuery, Nothing>,
) -> Result<BatchResults, Problem> {
    let (id, limit) = (path.id, paging::limit(query.limit)?);
    let after: Option<u32> = paging::place(query.after.as_deref())?;
    if let Some(Outcome::Other(word)) = &query.outcome {
        return Err(Problem::no_word("outcome", word, Outcome::WORDS));
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
            let outcome = outcome(item.outcome.as_ref());
            if query
                .outcome
                .as_ref()
                .is_none_or(|wanted| *wanted == outcome)
            {
                rows.push(item);
            }
        }
    }
    let rows = with_instance(&api, rows).await?;
    let next = if place < matched {
        paging::next(&place)
    } else {
        None
    };
    Ok(BatchResults {
        results: rows.into_iter().map(result).collect(),
        complete: next.is_none(),
        next,
    })
}

fn outcome(outcome: Option<&BatchOutcome>) -> Outcome {
    match outcome {
        None => Outcome::Waiting,
        Some(BatchOutcome::Done) => Outcome::Done,
        Some(BatchOutcome::Refused { .. }) => Outcome::Refused,
        Some(BatchOutcome::Failed { .. }) => Outcome::Failed,
    }
}

fn result((item, instance): (BatchItem, Option<Instance>)) -> BatchResult {
    let state = instance.as_ref().map(|instance| &instance.state);
    let header = instance.as_ref().map(|instance| &instance.header);
    let key = header.and_then(|header| header.instance_key.clone());
    let word = outcome(item.outcome.as_ref());
    let (code, detail) = match item.outcome {
        Some(BatchOutcome::Refused { code, detail }) => (Some(code), Some(detail)),
        Some(BatchOutcome::Failed { detail }) => (None, Some(detail)),
        Some(BatchOutcome::Done) | None => (None, None),
    };
    BatchResult {
        instance: item.instance.to_string(),
        outcome: word,
        status: state.map(|state| state.status.into()),
        instance_key: key,
        attributes: state
            .map(|state| listing::shown(&state.attributes))
            .unwrap_or_default(),
        error: state
            .and_then(|state| state.error.clone())
            .map(|error| (&error.shortened()).into()),
        code,
        detail,
    }
}

type Change = Asked<BatchId, Reason, Nothing>;

pub async fn pause(api: Api, asked: Change) -> Result<Done<Shown>, Problem> {
    change(&api, BatchState::Paused, asked).await
}

pub async fn resume(api: Api, asked: Change) -> Result<Done<Shown>, Problem> {
    change(&api, BatchState::Running, asked).await
}

pub async fn stop(api: Api, asked: Change) -> Result<Done<Shown>, Problem> {
    change(&api, BatchState::Stopped, asked).await
}

async fn change(api: &Api, to: BatchState, asked: Change) -> Result<Done<Shown>, Problem> {
    let (operator, id) = (asked.operator()?, &asked.path.id);
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
    let entry = entry(&after.order, operator.reason.as_deref());
    Ok(Done::from(shown(&after)).audited(entry))
}

fn shown(batch: &Batch) -> Shown {
    let (order, counts) = (&batch.order, &batch.counts);
    Shown {
        id: order.id.clone(),
        operation: order.operation.as_str().into(),
        query: order.query.clone(),
        reason: order.reason.clone(),
        by: order.by.clone(),
        rate: order.rate,
        status: batch.state.as_str().into(),
        created_at: order.created_at.into(),
        ended_at: batch.ended_at.map(Into::into),
        matched: order.matched,
        done: counts.done,
        refused: counts.refused,
        failed: counts.failed,
        waiting: order.matched.saturating_sub(counts.all()),
        refusals: counts.refusals.clone(),
        result: order.result.clone().map(Json),
        state: order.state.clone(),
        patch: order.patch.clone(),
        version: order.version.clone(),
        afterwards: None,
    }
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
