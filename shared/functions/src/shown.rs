//! URLs in the form in which errors and traces show them.

use url::Url;

/// A URL without its query, fragment and user, all of which may contain secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Neither call fails for a URL with a host, and a URL without one has no user either.
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
