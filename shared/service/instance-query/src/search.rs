//! Answers a query: reads pages of the store, and tests every row.

use swirl_ports::{InstanceQueries, Page, Result};

use crate::plan::Declared;
use crate::query::Query;

/// The limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// At most this many rows.
    pub limit: usize,
    /// After this many instances the search stops and returns the place that it reached.
    pub examined_max: usize,
}

/// Searches for instances that match the query, from the end of another search.
///
/// # Errors
/// The store failed, or there is no such place to continue from.
pub async fn search(
    queries: &dyn InstanceQueries,
    query: &Query,
    declared: &Declared,
    from: Option<String>,
    pace: Pace,
) -> Result<Page> {
    let mut filter = query.filter(declared);
    filter.from = from;
    filter.limit = pace.limit;
    filter.examined_max = pace.examined_max;
    queries.page(&filter, &|row| query.matches(row)).await
}
