//! `GET /instances`

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use futures::StreamExt;
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_model::scope::Scope;
use swirl_ports::{Filter, Summary};
use swirl_presentation::place::{is_waiting, place};

use super::Api;
use super::problem::{Problem, cut};
use super::request::Parameters;

/// How many instances a listing holds at most, and if nothing is said.
const LIMIT_MAX: usize = 1000;
const LIMIT: usize = 100;
/// How many instances are looked at for a status that the store has no index of.
const SEEN_MAX: usize = 10_000;
/// How many instances are looked at at once.
const AT_ONCE: usize = 16;

/// Those of the store, and two that a running instance may be in.
const WORDS: [&str; 7] = [
    "running",
    "waiting",
    "suspended",
    "completed",
    "faulted",
    "cancelled",
    "terminated",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    workflow: Option<String>,
    version: Option<String>,
    status: Option<String>,
    key: Option<String>,
    prefix: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

/// An instance with its root scope, unless it has ended.
struct Row {
    summary: Summary,
    root: Option<Scope>,
}

/// What a row must be beside what the store is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Only {
    All,
    Waiting,
    Suspended,
}

pub async fn list(
    State(api): State<Api>,
    Parameters(query): Parameters<Query>,
) -> Result<Json<Value>, Problem> {
    let limit = query.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::bad_request(
            "invalid-query",
            format!("'limit' is 1 to {LIMIT_MAX}"),
        ));
    }
    let (status, only) = match query.status.as_deref() {
        None => (None, Only::All),
        Some(word) => {
            let (status, only) = status(word)?;
            (Some(status), only)
        }
    };
    let mut filter = Filter {
        workflow: query.workflow,
        version: query.version,
        status,
        key: query.key,
        prefix: query.prefix,
        after: query.after.map(InstanceId::new),
        limit,
    };
    let mut rows: Vec<Row> = Vec::new();
    let (mut next, mut seen) = (None, 0);
    while rows.len() < limit && seen < SEEN_MAX {
        filter.limit = limit - rows.len();
        let page = api.queries.list(&filter).await?;
        let is_last = page.len() < filter.limit;
        seen += page.len();
        next = page.last().map(|last| last.header.id.clone());
        filter.after = next.clone();
        let found = stream::iter(page)
            .map(|summary| row(&api, summary))
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for row in found {
            let row = row?;
            if row.passes(only) {
                rows.push(row);
            }
        }
        if is_last {
            next = None;
            break;
        }
    }
    let mut instances = Vec::with_capacity(rows.len());
    for row in &rows {
        instances.push(line(&api, row).await);
    }
    let next = next.as_ref().map(InstanceId::as_str);
    Ok(Json(json!({"instances": instances, "next": next})))
}

fn status(word: &str) -> Result<(Status, Only), Problem> {
    Ok(match word {
        "running" => (Status::Running, Only::All),
        "waiting" => (Status::Running, Only::Waiting),
        "suspended" => (Status::Running, Only::Suspended),
        "completed" => (Status::Completed, Only::All),
        "faulted" => (Status::Faulted, Only::All),
        "cancelled" => (Status::Cancelled, Only::All),
        "terminated" => (Status::Terminated, Only::All),
        _ => {
            let message = format!(
                "there is no status '{}'; they are {}",
                cut(word),
                WORDS.join(", ")
            );
            return Err(Problem::bad_request("invalid-query", message));
        }
    })
}

async fn row(api: &Api, summary: Summary) -> Result<Row, Problem> {
    let stands = matches!(summary.status, Status::Running | Status::Faulted);
    let root = match stands {
        true => api.queries.root(&summary.header.id).await?,
        false => None,
    };
    Ok(Row { summary, root })
}

impl Row {
    fn passes(&self, only: Only) -> bool {
        match only {
            Only::All => true,
            Only::Suspended => self.summary.suspended,
            Only::Waiting => !self.summary.suspended && self.root.as_ref().is_some_and(is_waiting),
        }
    }
}

/// Where the instance stands is left out if its definition cannot be read.
async fn line(api: &Api, row: &Row) -> Value {
    let Summary {
        header,
        status,
        suspended,
        ended_at,
        error,
    } = &row.summary;
    let mut line = json!({
        "id": header.id.as_str(),
        "workflow": &*header.definition.workflow,
        "version": header.version,
        "status": status.word(),
        "suspended": suspended,
        "key": header.key,
        "instanceKey": header.instance_key,
        "startedAt": format!("{:.3}", header.started_at),
        "endedAt": ended_at.map(|at| format!("{at:.3}")),
    });
    if let Some(error) = error {
        line["error"] = Value::from(&error.to_data());
    }
    let registry = Arc::clone(&api.service.registry);
    if let Some(root) = row.root.as_ref().filter(|root| !root.ended())
        && let Ok(definition) = registry.get(&header.definition).await
    {
        let place = place(&definition.workflow, root);
        for name in ["state", "doing"] {
            if !place[name].is_null() {
                line[name] = place[name].clone();
            }
        }
        line["waiting"] = json!(*status == Status::Running && !suspended && is_waiting(root));
    }
    line
}
