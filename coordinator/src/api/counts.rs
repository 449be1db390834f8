//! `GET /counts`: how many instances there are, by status and workflow.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use swirl_api::Nothing;
use swirl_api::counts::{CountQuery, Counted, VersionCounts, WorkflowCounts};
use swirl_ports::{Counts, Filter, Summary};

use super::Api;
use super::listing;
use super::problem::Problem;
use super::serve::Asked;

/// How many instances are examined to count the matches of a query, and how many workflows are counted at a time.
const EXAMINED_MAX: usize = 100_000;
const AT_ONCE: usize = 1000;

pub async fn counts(
    api: Api,
    asked: Asked<Nothing, CountQuery, Nothing>,
) -> Result<Counted, Problem> {
    let CountQuery { query, workflow } = asked.query;
    match (query.filter(|query| !query.trim().is_empty()), workflow) {
        (None, None) => all(&api).await,
        (None, Some(workflow)) => versions(&api, &workflow).await,
        (Some(query), None) => of(&api, &query).await,
        (Some(_), Some(_)) => {
            let detail =
                "either 'query' or 'workflow' can be given: write the workflow into the query";
            Err(Problem::bad_request("invalid-query", detail))
        }
    }
}

async fn versions(api: &Api, workflow: &str) -> Result<Counted, Problem> {
    let (_, counts) = api.queries.counts(&[workflow.into()]).await?;
    let found = api.queries.counts_by_version(workflow).await?;
    let total = counts.first().copied().unwrap_or_default();
    let each = [(workflow.to_owned(), total)];
    let versions = found
        .versions
        .into_iter()
        .map(|(version, counts)| VersionCounts {
            version: version.to_string(),
            running: counts.running,
            faulted: counts.faulted,
        });
    Ok(Counted {
        versions: versions.collect(),
        ..answer(total, each, found.is_complete, None)
    })
}

async fn all(api: &Api) -> Result<Counted, Problem> {
    let catalog = api.service.registry.catalog().await?;
    let mut workflows: Vec<_> = catalog
        .latest
        .iter()
        .map(|one| one.id().workflow.clone())
        .collect();
    workflows.sort();
    let (mut total, mut each) = (Counts::default(), Vec::new());
    for (part, names) in parts(&workflows).enumerate() {
        let (all, counts) = api.queries.counts(names).await?;
        // The first part has the instances of all workflows, as the others do.
        if part == 0 {
            total = all;
        }
        each.extend(names.iter().map(|name| name.to_string()).zip(counts));
    }
    Ok(answer(total, each, true, None))
}

/// At least one part, which may be empty.
fn parts<T>(all: &[T]) -> impl Iterator<Item = &[T]> {
    let first = &all[..all.len().min(AT_ONCE)];
    std::iter::once(first).chain(all[first.len()..].chunks(AT_ONCE))
}

async fn of(api: &Api, text: &str) -> Result<Counted, Problem> {
    let declared = listing::declared(api, text).await?;
    let query = listing::parse(api, text, &declared)?;
    if query.waiting() {
        let detail = "waiting instances can be listed, but not counted: use status = running";
        return Err(Problem::bad_request("invalid-search", detail));
    }
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
    Ok(answer(
        total,
        each,
        page.next.is_none(),
        Some(page.examined),
    ))
}

fn answer(
    total: Counts,
    each: impl IntoIterator<Item = (String, Counts)>,
    complete: bool,
    scanned: Option<usize>,
) -> Counted {
    let workflows = each
        .into_iter()
        .filter(|(_, counts)| *counts != Counts::default());
    let workflows = workflows.map(|(id, counts)| WorkflowCounts {
        id,
        counts: shown(counts),
    });
    Counted {
        counts: shown(total),
        workflows: workflows.collect(),
        versions: Vec::new(),
        complete,
        scanned,
    }
}

pub(super) fn shown(counts: Counts) -> swirl_api::counts::Counts {
    let Counts {
        running,
        completed,
        faulted,
        cancelled,
        terminated,
    } = counts;
    swirl_api::counts::Counts {
        running,
        completed,
        faulted,
        cancelled,
        terminated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflows_are_counted_in_parts_without_a_limit() {
        let all: Vec<usize> = (0..2 * AT_ONCE + 1).collect();
        let lengths: Vec<usize> = parts(&all).map(<[usize]>::len).collect();
        assert_eq!(lengths, [AT_ONCE, AT_ONCE, 1]);
        assert_eq!(parts(&all).flatten().copied().collect::<Vec<_>>(), all);
        assert_eq!(parts::<usize>(&[]).count(), 1);
    }
}
