//! URLs as errors and traces show them.

use url::Url;

/// A URL as errors show it: without query, fragment and user, all of which may hold secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Neither fails for a URL that has a host; one without has no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_has_no_secrets() {
        let url = Url::parse("https://me:pw@example.org:8443/a/b?key=s3cret#x").unwrap();
        assert_eq!(shown(&url), "https://example.org:8443/a/b");
    }
}
