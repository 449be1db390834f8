//! Converts an answer to data or an error.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use swirl_model::Data;

use super::media::body_kind;
use super::operation::BodyKind;
use crate::auth::redact;
use crate::http::Answer;
use crate::{CallError, CallErrorKind};

/// The number of characters of an answer's body that an error message shows.
const EXCERPT_CHARS_MAX: usize = 500;

/// The data of an answer with status 2xx; any other status is an error. `what` names the request, `secrets` are removed
/// from errors, and `hint` is added to a 401 or 403.
pub(crate) fn data(
    answer: &Answer,
    what: &str,
    secrets: &[String],
    hint: &str,
) -> Result<Data, CallError> {
    if (200..300).contains(&answer.status) {
        return read(answer).map_err(|reason| {
            let message = format!("{what}: {}: {reason}", phrase(answer.status));
            CallError::new(CallErrorKind::Response, message)
        });
    }
    Err(failure(answer, what, secrets, hint))
}

fn phrase(status: u16) -> String {
    let reason = StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    reason.map_or_else(|| status.to_string(), |reason| format!("{status} {reason}"))
}

fn failure(answer: &Answer, what: &str, secrets: &[String], hint: &str) -> CallError {
    let mut message = format!("{what}: {}", phrase(answer.status));
    if (300..400).contains(&answer.status) {
        if let Some(location) = answer.location() {
            message.push_str(&format!(" to {location}"));
        }
        message.push_str(
            "; a redirect is followed to the same origin, five times at most, and only as 307 or 308 \
             if there may be a body",
        );
    }
    if matches!(answer.status, 401 | 403) && !hint.is_empty() {
        message.push_str(&format!(" ({hint})"));
    }
    let mut cleaned = None;
    match answer.text() {
        Ok(text) => {
            let text = redact(&text, secrets);
            let excerpt: String = text
                .trim()
                .chars()
                .take(EXCERPT_CHARS_MAX)
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            if !excerpt.is_empty() {
                message.push_str(&format!(": {excerpt}"));
            }
            if text.trim().chars().nth(EXCERPT_CHARS_MAX).is_some() {
                message.push_str(" ...");
            }
            cleaned = Some(text);
        }
        Err(reason) => message.push_str(&format!(": {reason}")),
    }
    let mut error = CallError::new(
        CallErrorKind::Status(answer.status),
        redact(&message, secrets),
    );
    error.body = Some(match &cleaned {
        // A body that doesn't match its content type is shown as text.
        Some(text) => Data::parse(text.as_bytes()).unwrap_or_else(|_| Data::string(text.as_str())),
        None => Data::string(STANDARD.encode(&answer.body)),
    });
    error.retry_after = answer.retry_after();
    error
}

/// Decodes a body according to its content type.
pub(crate) fn read(answer: &Answer) -> Result<Data, String> {
    let bytes = answer.decoded()?;
    if bytes.is_empty() {
        return Ok(Data::NULL);
    }
    let Some(media) = answer.header("content-type") else {
        return Ok(guess(answer));
    };
    match body_kind(media) {
        BodyKind::Json => match answer.text()?.as_ref() {
            "" => Ok(Data::NULL),
            text => Data::parse(text.as_bytes()).map_err(|error| {
                format!("the body is not valid JSON, though `{media}` says so: {error}")
            }),
        },
        BodyKind::Text | BodyKind::Form => answer.text().map(|text| Data::string(text.as_ref())),
        BodyKind::Multipart | BodyKind::Binary => Ok(Data::string(STANDARD.encode(bytes))),
    }
}

/// Without a content type, the bytes may be anything.
fn guess(answer: &Answer) -> Data {
    match answer.text() {
        Ok(text) => Data::parse(text.as_bytes()).unwrap_or_else(|_| Data::string(text.as_ref())),
        Err(_) => Data::string(STANDARD.encode(&answer.body)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
    use swirl_model::data;

    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Answer {
        let field = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        let headers: HeaderMap = headers.iter().map(field).collect();
        Answer {
            status,
            headers,
            body: body.to_vec(),
            coding_error: None,
        }
    }

    fn result(media: &'static str, body: &[u8]) -> Result<Data, String> {
        data(
            &answer(200, &[("content-type", media)], body),
            "GET http://x/",
            &[],
            "",
        )
        .map_err(|error| error.message)
    }

    #[test]
    fn a_body_is_read_by_its_content_type() {
        for (media, body, expected) in [
            ("application/json", &b"{\"a\":1}"[..], data!({"a": 1})),
            (
                "application/problem+json; charset=utf-8",
                b"\xef\xbb\xbf[1]",
                data!([1]),
            ),
            ("application/json", b"7", data!(7)),
            ("application/json", b"", data!(null)),
            ("text/plain", b"{}", data!("{}")),
            (
                "text/plain; charset=\"ISO-8859-1\"",
                b"caf\xe9",
                data!("caf\u{e9}"),
            ),
            ("application/xml", b"<a/>", data!("<a/>")),
            ("image/png", b"\x89PNG", data!("iVBORw==")),
        ] {
            assert_eq!(result(media, body).unwrap(), expected, "{media}");
        }
        assert!(
            result("application/json", b"{")
                .unwrap_err()
                .contains("the body is not valid JSON")
        );
        assert!(
            result("text/plain", b"\xff")
                .unwrap_err()
                .contains("isn't valid UTF-8")
        );
        assert!(
            result("text/plain; charset=klingon", b"x")
                .unwrap_err()
                .contains("`klingon`")
        );
    }

    #[test]
    fn without_a_content_type_the_format_is_guessed() {
        for (body, expected) in [
            (&b"{\"a\":1}"[..], data!({"a": 1})),
            (b"hello", data!("hello")),
            (b"\xff", data!("/w==")),
        ] {
            assert_eq!(
                data(&answer(200, &[], body), "", &[], "").unwrap(),
                expected
            );
        }
    }

    #[test]
    fn a_failure_shows_the_start_of_the_body_without_secrets() {
        let body = format!("{{\"got\":\"s3cret\",\"long\":\"{}\"}}", "x".repeat(600));
        let headers = [("content-type", "application/json"), ("retry-after", "3")];
        let answer = answer(503, &headers, body.as_bytes());
        let error = data(&answer, "GET http://x/", &["s3cret".to_owned()], "").unwrap_err();
        assert!(
            error
                .message
                .starts_with("GET http://x/: 503 Service Unavailable: {\"got\":\"***\"")
        );
        assert!(error.message.ends_with("xxx ...") && error.message.len() < 600);
        assert_eq!(error.body.unwrap().get("got"), Some(data!("***")));
        assert_eq!(
            (error.can_retry, error.retry_after),
            (true, Some(Duration::from_secs(3)))
        );
    }
}
