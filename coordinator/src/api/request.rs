//! Reads the parts of requests: the body within a limit and as its headers describe it, headers, and the query, where
//! unknown parameters are errors.

use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error as _;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::{HeaderMap, StatusCode, header, request::Parts};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use swirl_api::KEY_BYTES_MAX;
use swirl_content::CodingError;
use swirl_http_server::BodyError;
use swirl_model::Data;

use super::problem::{Problem, bounded};

/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

/// A body that hasn't been read, with its content codings and its content type.
pub struct Unread {
    body: Body,
    codings: Vec<String>,
    content_type: Option<String>,
}

impl<S: Send + Sync> FromRequest<S> for Unread {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Unread, Infallible> {
        let (parts, body) = request.into_parts();
        let text =
            |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let codings = parts.headers.get_all(header::CONTENT_ENCODING);
        Ok(Unread {
            body,
            codings: codings.into_iter().map(text).collect(),
            content_type: parts.headers.get(header::CONTENT_TYPE).map(text),
        })
    }
}

/// Reads a body of at most `limit` bytes, decompressed.
pub async fn body(unread: Unread, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            format!("the body is larger than {limit} bytes"),
        )
    };
    // It may say so itself.
    if HttpBody::size_hint(&unread.body).lower() > limit as u64 {
        return Err(too_large());
    }
    let read = to_bytes(unread.body, limit).await.map_err(|error| {
        if let Some(failed) = BodyError::of(&error) {
            let (status, code) = match failed {
                BodyError::TooSlow { .. } => (StatusCode::REQUEST_TIMEOUT, "body-too-slow"),
                BodyError::NoRoom => (StatusCode::SERVICE_UNAVAILABLE, "too-many-bodies"),
            };
            return Problem::new(status, code, failed.to_string());
        }
        let cause = error.source().map(ToString::to_string);
        if cause.is_some_and(|cause| cause.contains("length limit")) {
            too_large()
        } else {
            Problem::bad_request("body-broken", "the body ended before it was complete")
        }
    })?;
    if unread.codings.is_empty() {
        return Ok(read);
    }
    let codings = unread.codings.iter().map(String::as_str);
    match swirl_content::decode(codings, read.into(), limit) {
        Ok(decoded) => Ok(decoded.into()),
        Err(CodingError::TooLarge(_)) => Err(too_large()),
        Err(error) => Err(Problem::unreadable("unknown-coding", error.to_string())),
    }
}

/// As [`body`], for a text, which is returned in UTF-8.
pub async fn text(unread: Unread, limit: usize) -> Result<Bytes, Problem> {
    let content_type = unread.content_type.clone();
    let read = body(unread, limit).await?;
    match swirl_content::text(&read, content_type.as_deref()) {
        Ok(Cow::Borrowed(text)) if text.len() == read.len() => Ok(read),
        Ok(text) => Ok(text.into_owned().into()),
        Err(error) => Err(Problem::unreadable("invalid-text", error.to_string())),
    }
}

/// The value of a preference in `Prefer` (RFC 7240); empty if it has none.
pub fn preference<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let lines = headers.get_all("prefer").into_iter();
    let preferences = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split([',', ';']));
    preferences.into_iter().find_map(|preference| {
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        let is_it = name.trim().eq_ignore_ascii_case(wanted);
        is_it.then(|| value.trim().trim_matches('"'))
    })
}

/// Parses a body as JSON.
pub fn json(bytes: &[u8]) -> Result<Data, Problem> {
    Data::parse(bytes).map_err(|error| {
        Problem::bad_request(
            "invalid-json",
            format!("the body is not valid JSON: {error}"),
        )
    })
}

/// The query. Unknown parameters are refused.
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(query) = Query::<T>::from_request_parts(parts, state)
            .await
            .map_err(|error| {
                Problem::bad_request("invalid-query", bounded(&wrong(&error.body_text())))
            })?;
        Ok(Parameters(query))
    }
}

/// The error of a query in the words of the API. `error` is the library's: the parameter, and its own error.
fn wrong(error: &str) -> String {
    let said = error.replacen("Failed to deserialize query string: ", "", 1);
    let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
    if let Some(at) = said.find("unknown field `") {
        let name = quoted(&said[at..]);
        let expected = said[at..].split_once(", expected ");
        let parts = expected.map_or("", |(_, names)| names).split('`');
        let names = parts.skip(1).step_by(2).map(|name| format!("'{name}'"));
        let known = names.collect::<Vec<_>>().join(", ");
        return match known.is_empty() {
            true => format!("there is no parameter '{name}'; this request takes none"),
            false => format!("there is no parameter '{name}'; this request takes {known}"),
        };
    }
    for (text, means) in [
        ("missing field `", "is missing"),
        ("duplicate field `", "appears twice"),
    ] {
        if let Some(at) = said.find(text) {
            return format!("the parameter '{}' {means}", quoted(&said[at..]));
        }
    }
    let Some((name, reason)) = said.split_once(": ") else {
        return format!("the query cannot be read: {said}");
    };
    match reason {
        "number too large to fit in target type" => format!("'{name}' is too large"),
        _ if reason.contains("digit") || reason.contains("integer") => {
            format!("'{name}' must be a whole number of 0 or more")
        }
        _ if reason.contains("`true` or `false`") => format!("'{name}' must be true or false"),
        _ => format!("'{name}' cannot be read: {reason}"),
    }
}

/// Returns a header's value. A value that isn't text is refused.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    value.to_str().map(Some).map_err(|_| {
        Problem::bad_request(
            "invalid-header",
            format!("the header {name} contains characters other than visible ASCII"),
        )
    })
}

/// The `Idempotency-Key`, with or without quotes around it.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = header(headers, "idempotency-key")? else {
        return Ok(None);
    };
    let key = key.trim();
    let key = key
        .strip_prefix('"')
        .and_then(|key| key.strip_suffix('"'))
        .unwrap_or(key);
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Problem::bad_request(
            "invalid-header",
            format!("an Idempotency-Key has 1 to {KEY_BYTES_MAX} characters"),
        ));
    }
    Ok(Some(key.to_owned()))
}

/// A reason that was given; an empty one is none.
pub fn reason(asked: Option<String>) -> Result<Option<String>, Problem> {
    asked.as_deref().map_or(Ok(()), check_reason)?;
    Ok(asked.filter(|reason| !reason.is_empty()))
}

fn check_reason(reason: &str) -> Result<(), Problem> {
    if reason.chars().count() <= REASON_CHARS_MAX {
        return Ok(());
    }
    let detail = format!("a reason has at most {REASON_CHARS_MAX} characters");
    Err(Problem::bad_request("invalid-query", detail))
}

/// The media type of a body, in lower case and without its parameters.
pub fn media_type(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let value = header(headers, "content-type")?;
    Ok(value.map(|value| {
        let kind = value.split(';').next().unwrap_or_default();
        kind.trim().to_ascii_lowercase()
    }))
}

/// The path of a resource below `/api/v1`. Ids may contain any character.
pub fn located(parts: &[&str]) -> String {
    // As RFC 3986 defines a path segment.
    const KEPT: AsciiSet = NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    let parts = parts.iter().map(|part| utf8_percent_encode(part, &KEPT));
    parts.fold("/api/v1".to_owned(), |path, part| format!("{path}/{part}"))
}

/// A random text for an id, since nothing else distinguishes this request from an equal one.
pub fn draw() -> Result<String, Problem> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "no-randomness",
            format!(
                "no random id can be generated: {}",
                bounded(&error.to_string())
            ),
        )
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_encoded() {
        assert_eq!(located(&["instances", "a-1"]), "/api/v1/instances/a-1");
        let odd = located(&["definitions", "a/b c?", "1.0+é"]);
        assert_eq!(odd, "/api/v1/definitions/a%2Fb%20c%3F/1.0%2B%C3%A9");
    }

    #[tokio::test]
    async fn wrong_queries() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only read")]
        struct Asked {
            limit: Option<u32>,
            deep: Option<bool>,
            name: String,
        }
        for (query, expected) in [
            (
                "name=a&limit=x",
                "'limit' must be a whole number of 0 or more",
            ),
            (
                "name=a&limit=-1",
                "'limit' must be a whole number of 0 or more",
            ),
            (
                "name=a&limit=",
                "'limit' must be a whole number of 0 or more",
            ),
            ("name=a&limit=99999999999", "'limit' is too large"),
            ("name=a&deep=1", "'deep' must be true or false"),
            (
                "name=a&foo=1",
                "there is no parameter 'foo'; this request takes 'limit', 'deep', 'name'",
            ),
            ("limit=1", "the parameter 'name' is missing"),
            ("name=a&name=b", "the parameter 'name' appears twice"),
        ] {
            let request = Request::builder()
                .uri(format!("/?{query}"))
                .body(())
                .unwrap();
            let (mut parts, ()) = request.into_parts();
            let refused = Parameters::<Asked>::from_request_parts(&mut parts, &()).await;
            let Err(problem) = refused else {
                panic!("{query} is taken")
            };
            assert!(
                format!("{problem:?}").contains(expected),
                "{query}: {problem:?}"
            );
        }
    }

    #[test]
    fn preferences() {
        let headers: HeaderMap = [
            ("prefer", "wait=5, RETURN=\"minimal\""),
            ("prefer", "reply"),
        ]
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .into_iter()
        .collect();
        for (name, expected) in [
            ("wait", Some("5")),
            ("return", Some("minimal")),
            ("reply", Some("")),
            ("respond-async", None),
        ] {
            assert_eq!(preference(&headers, name), expected, "{name}");
        }
    }

    #[test]
    fn keys() {
        let key = |text: &'static str| {
            let headers = [("idempotency-key".parse().unwrap(), text.parse().unwrap())];
            key(&headers.into_iter().collect()).ok().flatten()
        };
        assert_eq!(key("order-7").as_deref(), Some("order-7"));
        assert_eq!(key("\"order-7\"").as_deref(), Some("order-7"));
        assert_eq!(key("\"\""), None);
    }
}
