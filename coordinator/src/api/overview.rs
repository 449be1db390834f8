//! `/overview`: the state of the system at a glance. `/me`: the caller's permissions.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use swirl_api::Nothing;
use swirl_api::overview::{Failures, Me, Oldest, Overview, StatusCount};
use swirl_model::instance::Status;
use swirl_ports::{Filter, Summary};
use swirl_presentation::place::place;

use super::Api;
use super::problem::Problem;
use super::serve::Asked;

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

pub async fn overview(api: Api, _: Asked<Nothing, Nothing, Nothing>) -> Result<Overview, Problem> {
    let (total, _) = api.queries.counts(&[]).await?;
    let counts = STATUSES.map(|status| {
        let mut total = total;
        StatusCount {
            status: status.into(),
            count: *total.of(status),
            more: false,
        }
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
    Ok(Overview {
        counts: counts.into(),
        suspended,
        failures: failures(&api, &faulted).await?,
        oldest: oldest.collect(),
    })
}

fn row(summary: &Summary) -> Oldest {
    let header = &summary.header;
    Oldest {
        id: header.id.to_string(),
        workflow: header.definition.workflow.to_string(),
        version: header.version.to_string(),
        suspended: summary.suspended,
        started_at: header.started_at.into(),
    }
}

/// The state in which an instance failed, if its definition can be read.
async fn look(api: &Api, summary: &Summary) -> Result<Option<String>, Problem> {
    let root = api.queries.root(&summary.header.id).await?;
    let definition = api.service.registry.get(&summary.header.definition).await;
    let (Some(root), Ok(definition)) = (root, definition) else {
        return Ok(None);
    };
    let place = place(&definition.workflow, &root);
    Ok(place.state)
}

/// The newest failures by workflow, state and error, the most frequent first.
async fn failures(api: &Api, faulted: &[Summary]) -> Result<Vec<Failures>, Problem> {
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
    let shown = groups.into_iter().take(LISTED).map(|(kind, all)| {
        let newest = all.first();
        let message = newest.and_then(|one| one.error.as_ref());
        Failures {
            workflow: kind.workflow,
            state: kind.state,
            error: kind.error,
            count: all.len(),
            newest: newest.map(|one| one.header.id.to_string()),
            message: message.map(|error| error.message.to_string()),
        }
    });
    Ok(shown.collect())
}

/// The caller and their permissions.
pub async fn me(api: Api, asked: Asked<Nothing, Nothing, Nothing>) -> Result<Me, Problem> {
    let roles = asked.caller.iter().flat_map(|caller| &caller.roles);
    Ok(Me {
        roles: roles.map(ToString::to_string).collect(),
        name: asked.caller.map(|caller| caller.name),
        open: api.access.is_open(),
        namespace: api.access.namespace().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}
