//! Pages of other origins that may use the API (the CORS protocol of the Fetch standard).
//!
//! Whoever is named here is let in by name: an origin is compared as a whole and sent back, so no answer for one
//! page serves another. Credentials are tokens, which a page sends of its own will; a browser is never told that
//! it may add any (`Access-Control-Allow-Credentials`).

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// What a page may send.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// What it may read beside the body.
const EXPOSED: HeaderValue = HeaderValue::from_static("location, retry-after, www-authenticate");

/// How long a browser may remember the answer, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origin that a request is sent from, if its pages may use the API.
pub(super) fn allowed(headers: &HeaderMap, origins: &[String]) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    let is_allowed = origins.iter().any(|known| known == text);
    is_allowed.then(|| origin.clone())
}

/// The answer to a browser that asks whether a page may send a request; none if this isn't one.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response> {
    if method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let own = response.headers_mut();
    own.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    own.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // A page of an origin that is let in may send any: what it may do is for its token to say.
    if let Some(asked) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        own.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    Some(response)
}

/// Lets a page of this origin read the answer; none: whoever asks gets the same.
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
