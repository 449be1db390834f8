//! Listings that are shown a page at a time.

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

/// How to continue at the place of the next page, if there may be more.
pub fn after(next: Option<&str>) -> Option<String> {
    let next = next?;
    Some(format!("there may be more: --after '{next}'"))
}
