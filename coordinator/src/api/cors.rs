//! Lets pages of other origins use the API (the CORS protocol of the Fetch standard).
//!
//! Origins are allowed by name: an origin is compared as a whole and sent back, so a cached response for one page
//! doesn't serve another. Credentials are tokens, which a page sends itself; browsers are never allowed to add any
//! (`Access-Control-Allow-Credentials`).

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The methods that a page may use.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// The headers that a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static("location, retry-after, www-authenticate");

/// How long a browser may cache the response, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origin of a request, if its pages may use the API.
pub(super) fn allowed(headers: &HeaderMap, origins: &[String]) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    let is_allowed = origins.iter().any(|known| known == text);
    is_allowed.then(|| origin.clone())
}

/// The response to a preflight request; `None` if this isn't one.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response> {
    if method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let own = response.headers_mut();
    own.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    own.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // A page of an allowed origin may send any headers, since its token decides what it may do.
    if let Some(asked) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        own.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    Some(response)
}

/// Lets a page of this origin read the response. Without an origin, the response is the same for all.
pub(super) fn mark(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    const VARY: [HeaderName; 2] = [header::ORIGIN, header::ACCESS_CONTROL_REQUEST_HEADERS];
    for name in VARY {
        headers.append(header::VARY, name.into());
    }
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
