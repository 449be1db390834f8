//! Origins of web pages.

use url::Url;

/// An origin in the form that browsers send: scheme, host, and the port unless it is the scheme's default.
///
/// # Errors
/// The reason why it isn't an origin, as a clause. `*` isn't one either, because then pages of any origin could use the
/// API in the name of their visitors.
pub fn origin(text: &str) -> Result<String, String> {
    let wrong = || {
        format!(
            "`{text}` is not a valid origin: write a scheme and a host, such as https://app.example.org"
        )
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    match is_plain {
        true => Ok(url.origin().ascii_serialization()),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn origins_are_written_as_browsers_send_them() {
        for (text, expected) in [
            ("https://App.example.org", "https://app.example.org"),
            ("https://app.example.org:443/", "https://app.example.org"),
            ("http://localhost:5173", "http://localhost:5173"),
            (
                "https://b\u{fc}cher.example",
                "https://xn--bcher-kva.example",
            ),
        ] {
            assert_eq!(origin(text).as_deref(), Ok(expected));
        }
        for text in [
            "*",
            "null",
            "app.example.org",
            "https://a/b",
            "https://u@a",
            "file:///a",
            "https://*.a?b",
        ] {
            let error = origin(text).unwrap_err();
            assert!(error.contains("is not a valid origin"), "{error}");
        }
    }
}
