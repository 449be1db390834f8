//! Listings that are shown a page at a time.

use serde_json::Value;

/// A query for one page, with the filters that were given.
pub fn query<'a>(
    limit: &'a str,
    filters: &[(&'a str, &'a Option<String>)],
) -> Vec<(&'a str, &'a str)> {
    let given = filters
        .iter()
        .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    [("limit", limit)].into_iter().chain(given).collect()
}

/// How to continue after this page, if there may be more.
pub fn more(page: &Value) -> Option<String> {
    after(page["next"].as_str())
}

/// As [`more`], of the place of the next page.
pub fn after(next: Option<&str>) -> Option<String> {
    let next = next?;
    Some(format!("there may be more: --after '{next}'"))
}
