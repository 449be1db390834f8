//! `/overview`: the state of the system at a glance. `/me`: the caller's permissions.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::{Extension, Json};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use swirl_model::instance::Status;
use swirl_ports::{Filter, Summary};
use swirl_presentation::place::place;

use super::Api;
use super::problem::Problem;
use crate::access::Caller;

/// How many running and how many faulted instances are examined, newest first.
const COUNTED_MAX: usize = 1000;
/// How many of the newest failures are examined more closely, and how many at a time.
const LOOKED_AT: usize = 100;
const AT_ONCE: usize = 16;
/// How many groups of failures, and how many running instances, are listed.
const LISTED: usize = 10;

const STATUSES: [Status; 5] = [
    Status::Running,
    Status::Faulted,
    Status::Completed,
    Status::Cancelled,
    Status::Terminated,
];

/// Similar failures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    workflow: String,
    state: Option<String>,
    error: String,
}

pub async fn overview(State(api): State<Api>) -> Result<Json<Value>, Problem> {
    let (total, _) = api.queries.counts(&[]).await?;
    let counts = STATUSES.map(|status| {
        let mut total = total;
        json!({"status": status.as_str(), "count": *total.of(status), "more": false})
    });
    let some = async |status| {
        let filter = Filter {
            statuses: vec![status],
            limit: COUNTED_MAX,
            ..Filter::default()
        };
        api.queries.list(&filter).await
    };
    let running = some(Status::Running).await?;
    let faulted = some(Status::Faulted).await?;
    let suspended = running.iter().filter(|row| row.suspended).count();
    // The rows are newest first, so the last one is the oldest that was examined.
    let oldest = running.iter().rev().take(LISTED).map(row);
    let oldest: Vec<Value> = oldest.collect();
    Ok(Json(json!({
        "counts": counts,
        "suspended": suspended,
        "failures": failures(&api, &faulted).await?,
        "oldest": oldest,
    })))
}

fn row(summary: &Summary) -> Value {
    let header = &summary.header;
    json!({
        "id": header.id.as_str(),
        "workflow": &*header.definition.workflow,
        "version": header.version,
        "suspended": summary.suspended,
        "startedAt": format!("{:.3}", header.started_at),
    })
}

/// The state in which an instance failed, if its definition can be read.
async fn look(api: &Api, summary: &Summary) -> Result<Option<String>, Problem> {
    let root = api.queries.root(&summary.header.id).await?;
    let definition = api.service.registry.get(&summary.header.definition).await;
    let (Some(root), Ok(definition)) = (root, definition) else {
        return Ok(None);
    };
    let place = place(&definition.workflow, &root);
    Ok(place["state"].as_str().map(str::to_owned))
}

/// The newest failures by workflow, state and error, the most frequent first.
async fn failures(api: &Api, faulted: &[Summary]) -> Result<Vec<Value>, Problem> {
    let newest = faulted.iter().take(LOOKED_AT);
    let looked: Vec<_> = stream::iter(newest.map(|summary| look(api, summary)).collect::<Vec<_>>())
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut groups: BTreeMap<Kind, Vec<&Summary>> = BTreeMap::new();
    for (summary, state) in faulted.iter().zip(looked) {
        let state = state?;
        let error = summary.error.as_ref().map(|error| error.name.to_string());
        let kind = Kind {
            workflow: summary.header.definition.workflow.to_string(),
            state,
            error: error.unwrap_or_default(),
        };
        groups.entry(kind).or_default().push(summary);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    let shown = groups.iter().take(LISTED).map(|(kind, all)| {
        let newest = all.first();
        let message = newest.and_then(|one| one.error.as_ref());
        json!({
            "workflow": kind.workflow,
            "state": kind.state,
            "error": kind.error,
            "count": all.len(),
            "newest": newest.map(|one| one.header.id.as_str()),
            "message": message.map(|error| error.message.to_string()),
        })
    });
    Ok(shown.collect())
}

/// The caller and their permissions.
pub async fn me(State(api): State<Api>, caller: Option<Extension<Caller>>) -> Json<Value> {
    let caller = caller.map(|Extension(caller)| caller);
    let roles = caller.iter().flat_map(|caller| &caller.roles);
    let roles: Vec<&str> = roles.map(|role| role.as_str()).collect();
    Json(json!({
        "name": caller.as_ref().map(|caller| &caller.name),
        "roles": roles,
        "open": api.access.is_open(),
        "namespace": api.access.namespace(),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}
