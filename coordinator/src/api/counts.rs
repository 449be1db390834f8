//! `GET /counts`: how many instances there are, by status and workflow.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_ports::{Counts, Filter, Summary};

use super::Api;
use super::listing;
use super::problem::Problem;
use super::request::Parameters;

/// How many instances are examined to count the matches of a query, and how many workflows are listed.
const EXAMINED_MAX: usize = 100_000;
const WORKFLOWS_MAX: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountsQuery {
    query: Option<String>,
}

pub async fn counts(
    State(api): State<Api>,
    Parameters(asked): Parameters<CountsQuery>,
) -> Result<Json<Value>, Problem> {
    match asked.query.filter(|query| !query.trim().is_empty()) {
        None => all(&api).await,
        Some(query) => of(&api, &query).await,
    }
}

async fn all(api: &Api) -> Result<Json<Value>, Problem> {
    let catalog = api.service.registry.catalog().await?;
    let mut workflows: Vec<_> = catalog
        .latest
        .iter()
        .map(|one| one.id().workflow.clone())
        .collect();
    workflows.sort();
    let complete = workflows.len() <= WORKFLOWS_MAX;
    workflows.truncate(WORKFLOWS_MAX);
    let (total, each) = api.queries.counts(&workflows).await?;
    let each = workflows.iter().map(|name| name.to_string()).zip(each);
    Ok(Json(answer(total, each, complete, None)))
}

async fn of(api: &Api, text: &str) -> Result<Json<Value>, Problem> {
    let declared = listing::declared(api, text).await?;
    let query = listing::parse(api, text, &declared)?;
    let filter = Filter {
        limit: 1,
        examined_max: EXAMINED_MAX,
        ..query.filter(&declared)
    };
    let counted: Mutex<(Counts, BTreeMap<String, Counts>)> = Mutex::default();
    // No row is kept, so the page ends with the listing or with its bound.
    let keep = |row: &Summary| {
        if query.matches(row) {
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            let workflow = row.header.definition.workflow.to_string();
            *counted.0.of(row.status) += 1;
            *counted.1.entry(workflow).or_default().of(row.status) += 1;
        }
        false
    };
    let page = api.queries.page(&filter, &keep).await?;
    let (total, each) = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Json(answer(
        total,
        each,
        page.next.is_none(),
        Some(page.examined),
    )))
}

fn answer(
    total: Counts,
    each: impl IntoIterator<Item = (String, Counts)>,
    complete: bool,
    scanned: Option<usize>,
) -> Value {
    let workflows = each
        .into_iter()
        .filter(|(_, counts)| *counts != Counts::default());
    let workflows = workflows.map(|(id, counts)| json!({"id": id, "counts": shown(counts)}));
    json!({
        "counts": shown(total),
        "workflows": workflows.collect::<Vec<_>>(),
        "complete": complete,
        "scanned": scanned,
    })
}

pub(super) fn shown(counts: Counts) -> Value {
    json!({
        "running": counts.running,
        "completed": counts.completed,
        "faulted": counts.faulted,
        "cancelled": counts.cancelled,
        "terminated": counts.terminated,
    })
}
