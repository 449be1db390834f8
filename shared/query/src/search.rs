//! Carrying a query out: a page of the store, of which every row is asked whether it is meant.

use swirl_ports::{InstanceQueries, Page, Result};

use crate::plan::Declared;
use crate::query::Query;

/// How much is looked for, and at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// At most this many rows.
    pub limit: usize,
    /// After this many instances the search stops and says how far it came.
    pub seen_max: usize,
}

/// Looks for instances that the query means, from where another search ended.
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
    filter.seen_max = pace.seen_max;
    queries.page(&filter, &|row| query.matches(row)).await
}
