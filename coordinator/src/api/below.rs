//! Serves everything below a path (`api.base_path`), as behind an ingress that other services share.
//!
//! Handlers and pages know only the paths of their own routes. Here the base is removed from the paths of requests, and
//! added to every address in a response: redirects and locations, the paths of cookies, and the links, forms and
//! scripts of the console's pages. In these pages texts of users are escaped, so no such text can look like an attribute.
//!
//! Requests without the base are served too: some proxies remove it, and probes and other processes don't know it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

/// The attributes in which our pages have addresses.
const ATTRIBUTES: [&str; 5] = ["action", "data-check", "data-hints", "href", "src"];

/// The beginnings of our paths.
const OWN: [&str; 2] = ["/api", "/console"];

/// `base` begins with a slash and doesn't end with one; empty if there is none.
pub(super) fn mount(router: Router, base: &Arc<str>) -> Router {
    match base.is_empty() {
        true => router,
        // A layer outside the routes, since it changes the path before a route is matched.
        false => Router::new()
            .fallback_service(router)
            .layer(from_fn_with_state(base.clone(), serve)),
    }
}

async fn serve(State(base): State<Arc<str>>, mut request: Request, next: Next) -> Response {
    if let Some(uri) = without(&base, request.uri()) {
        *request.uri_mut() = uri;
    }
    with(&base, next.run(request).await).await
}

/// `None` if the path isn't below the base.
fn without(base: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path().strip_prefix(base)?;
    let path = match rest {
        "" => "/",
        rest if rest.starts_with('/') => rest,
        _ => return None,
    };
    let query = uri.query().map(|query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    let path = format!("{path}{}", query.unwrap_or_default());
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

async fn with(base: &str, mut response: Response) -> Response {
    headers(base, response.headers_mut());
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/html")) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Pages are made in memory.
    let Ok(page) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let page = links(base, &String::from_utf8_lossy(&page));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(page))
}

fn headers(base: &str, headers: &mut HeaderMap) {
    let local = |value: &HeaderValue| {
        let text = value.to_str().ok()?;
        let is_local = text.starts_with('/') && !text.starts_with("//");
        is_local.then(|| HeaderValue::try_from(format!("{base}{text}")).ok())?
    };
    if let Some(location) = headers.get(header::LOCATION).and_then(local) {
        headers.insert(header::LOCATION, location);
    }
    let cookies: Vec<HeaderValue> = headers
        .get_all(header::SET_COOKIE)
        .into_iter()
        .cloned()
        .collect();
    headers.remove(header::SET_COOKIE);
    for cookie in cookies {
        let text = cookie.to_str().unwrap_or_default();
        let below = text.replacen("; Path=/", &format!("; Path={base}/"), 1);
        headers.append(header::SET_COOKIE, below.try_into().unwrap_or(cookie));
    }
}

fn links(base: &str, page: &str) -> String {
    let mut page = page.to_owned();
    for attribute in ATTRIBUTES {
        for own in OWN {
            let (old, new) = (
                format!("{attribute}=\"{own}"),
                format!("{attribute}=\"{base}{own}"),
            );
            page = page.replace(&old, &new);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_removed_from_paths() {
        for (path, expected) in [
            ("/swirl", Some("/")),
            ("/swirl/", Some("/")),
            ("/swirl/console/?a=/swirl/b", Some("/console/?a=/swirl/b")),
            ("/swirl/a%2Fb", Some("/a%2Fb")),
            ("/swirling", None),
            ("/healthz", None),
        ] {
            let found = without("/swirl", &path.parse().unwrap());
            let expected = expected.map(|path| path.parse::<Uri>().unwrap());
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn the_base_is_added_to_addresses() {
        let mut all = HeaderMap::new();
        all.insert(
            "location",
            HeaderValue::from_static("/console/?next=/console/a"),
        );
        let cookie = "s=1; Path=/console; HttpOnly";
        all.append("set-cookie", HeaderValue::from_static(cookie));
        headers("/swirl", &mut all);
        assert_eq!(all["location"], "/swirl/console/?next=/console/a");
        assert_eq!(all["set-cookie"], "s=1; Path=/swirl/console; HttpOnly");
        for foreign in ["https://id.example.org/", "//example.org/"] {
            all.insert("location", HeaderValue::from_static(foreign));
            headers("/swirl", &mut all);
            assert_eq!(all["location"], foreign);
        }
        let page =
            "<a href=\"/console/a\">href=&quot;/console</a><input name=next value=\"/console/b\">";
        assert_eq!(
            links("/swirl", page),
            "<a href=\"/swirl/console/a\">href=&quot;/console</a><input name=next value=\"/console/b\">"
        );
    }
}
