//! Listings that are shown a page at a time.

/// How to continue at the place of the next page, if there may be more.
pub fn after(next: Option<&str>) -> Option<String> {
    let next = next?;
    Some(format!("there may be more: --after '{next}'"))
}
