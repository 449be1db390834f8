//! Which redirects are followed.

use reqwest::Method;
use url::Url;

/// The target of a redirect, if it is followed.
pub(crate) fn onward(
    method: &Method,
    from: &Url,
    status: u16,
    location: Option<&str>,
) -> Option<Url> {
    let follows = match status {
        301..=303 => matches!(*method, Method::GET | Method::HEAD),
        307 | 308 => true,
        _ => false,
    };
    let target = from.join(location.filter(|_| follows)?).ok()?;
    (target.origin() == from.origin() || is_secured(from, &target)).then_some(target)
}

/// Whether a redirect only leads from `http` to `https` of the same host.
fn is_secured(from: &Url, to: &Url) -> bool {
    (from.scheme(), to.scheme()) == ("http", "https")
        && from.host() == to.host()
        && (from.port(), to.port()) == (None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_at_the_origin() {
        let from = Url::parse("http://h/a/b").unwrap();
        for (method, status, location, expected) in [
            (Method::GET, 302, "c", Some("http://h/a/c")),
            (Method::GET, 302, "https://h/x", Some("https://h/x")),
            (Method::POST, 308, "/x", Some("http://h/x")),
            (Method::POST, 302, "/x", None),
            (Method::GET, 304, "/x", None),
            (Method::GET, 302, "https://h:8443/x", None),
            (Method::GET, 302, "http://other/x", None),
        ] {
            let found = onward(&method, &from, status, Some(location));
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{location}");
        }
        let from = Url::parse("https://h/").unwrap();
        assert_eq!(onward(&Method::GET, &from, 302, Some("http://h/")), None);
        assert_eq!(onward(&Method::GET, &from, 302, None), None);
    }
}
