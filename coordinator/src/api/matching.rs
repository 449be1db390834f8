//! The instances that match the query of a batch.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use swirl_api::batches::{BatchTrial, Sample};
use swirl_model::ids::InstanceId;
use swirl_ports::{BatchOrder, Counts, Filter, Summary};
use swirl_service::BatchLimits;

use super::problem::Problem;
use super::trial::Tally;
use super::{Api, counts, listing};

/// How many instances a dry run shows.
pub(super) const SAMPLE: usize = 10;

/// The number of instances that are looked at together for whether they wait.
const WAITING_AT_ONCE: usize = 500;

/// All instances that match a query.
#[derive(Default)]
pub(super) struct Matched {
    pub ids: Vec<InstanceId>,
    known: HashSet<InstanceId>,
    counts: Counts,
    sample: Vec<Summary>,
    pub scanned: usize,
}

pub(super) async fn find(api: &Api, query: &str, limits: BatchLimits) -> Result<Matched, Problem> {
    let declared = listing::declared(api, query).await?;
    let query = listing::parse(api, query, &declared)?;
    let filter = Filter {
        limit: 1,
        examined_max: limits.examined,
        ..query.filter(&declared)
    };
    let found: Mutex<Matched> = Mutex::default();
    // Only one row is returned, to end the search when there are too many.
    let keep = |row: &Summary| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        query.matches(row) && {
            found.add(row);
            found.ids.len() > limits.instances
        }
    };
    let (next, examined) = match query.waiting() {
        false => {
            let page = api.queries.page(&filter, &keep).await?;
            (page.next, page.examined)
        }
        true => find_waiting(api, &query, filter, &found, limits).await?,
    };
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.scanned = examined;
    if found.ids.len() > limits.instances {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "too-many-instances",
            format!(
                "more than {} instances match: narrow the query, for example with 'started'",
                limits.instances
            ),
        ));
    }
    if next.is_some() {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "query-too-broad",
            format!(
                "{} instances were examined, and there are more: narrow the query with a status, a workflow, \
                 'started > ...' or a search attribute, which have indexes",
                found.scanned
            ),
        ));
    }
    Ok(found)
}

/// Adds the waiting instances among those that match. Whether an instance waits says its root scope. Returns the place
/// to go on from, and how many instances were examined.
async fn find_waiting(
    api: &Api,
    query: &swirl_instance_query::Query,
    mut filter: Filter,
    found: &Mutex<Matched>,
    limits: BatchLimits,
) -> Result<(Option<String>, usize), Problem> {
    let mut examined = 0;
    loop {
        filter.limit = WAITING_AT_ONCE;
        filter.examined_max = limits.examined - examined;
        let page = api.queries.page(&filter, &|row| query.matches(row)).await?;
        examined += page.examined;
        let rows = listing::waiting(api, page.rows).await?;
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().for_each(|row| found.add(row));
        let is_enough = found.ids.len() > limits.instances || examined >= limits.examined;
        if page.next.is_none() || is_enough {
            return Ok((page.next, examined));
        }
        filter.from = page.next;
    }
}

impl Matched {
    fn add(&mut self, row: &Summary) {
        let id = &row.header.id;
        // An instance whose status changes during the search may occur twice.
        if !self.known.insert(id.clone()) {
            return;
        }
        self.ids.push(id.clone());
        *self.counts.of(row.status) += 1;
        if self.sample.len() < SAMPLE {
            self.sample.push(row.clone());
        }
    }

    pub fn shown(self, order: &BatchOrder, tally: &Tally) -> BatchTrial {
        let sample = self.sample.into_iter().map(|row| Sample {
            id: row.header.id.to_string(),
            workflow: row.header.definition.workflow.to_string(),
            version: row.header.version.to_string(),
            status: row.status.into(),
            suspended: row.suspended,
            started_at: row.header.started_at.into(),
            instance_key: row.header.instance_key.clone(),
            attributes: listing::shown(&row.attributes),
            error: row.error.as_ref().map(Into::into),
            data: tally.data(&row.header.id).cloned(),
        });
        BatchTrial {
            dry_run: true,
            operation: order.operation.as_str().into(),
            query: order.query.clone(),
            matched: order.matched,
            fit: tally.fit,
            checked: tally.checked,
            misfits: tally.reasons(),
            counts: counts::shown(self.counts),
            sample: sample.collect(),
            scanned: self.scanned,
            version: order.version.clone(),
        }
    }
}
