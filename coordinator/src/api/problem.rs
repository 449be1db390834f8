//! Errors in responses: RFC 9457, `application/problem+json`, each with a stable `code`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use swirl_api::Members;

/// Why a request is refused.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    /// Programs distinguish problems by the code, so a code never changes.
    code: &'static str,
    detail: String,
    more: Box<Members>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            status,
            code,
            detail: detail.into(),
            more: Box::default(),
        }
    }

    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub fn not_found(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, code, detail)
    }

    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, code, detail)
    }

    /// A body in a form that isn't known.
    pub fn unreadable(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, detail)
    }

    /// A parameter has a word that isn't one of these.
    pub fn no_word(parameter: &str, word: &str, words: &[&str]) -> Problem {
        let (word, words) = (cut(word), words.join(", "));
        let detail = format!("there is no {parameter} '{word}'; they are {words}");
        Problem::bad_request("invalid-query", detail)
    }

    pub fn no_instance(id: &str) -> Problem {
        Problem::not_found(
            "unknown-instance",
            format!("there is no instance '{}'", cut(id)),
        )
    }

    /// The process ends while it answers.
    pub fn stopping() -> Problem {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Problem::new(status, "stopping", "this server is about to stop")
    }

    /// What is wrong, as a sentence.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Adds members to the response.
    #[must_use]
    pub fn with(mut self, add: impl FnOnce(&mut Members)) -> Problem {
        add(&mut self.more);
        self
    }
}

/// Shortens a client's text for a message.
pub fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    let mut short: String = text.chars().take(CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Shortens a message that may contain long texts of clients. Ordinary ones stay whole.
pub fn bounded(message: &str) -> String {
    const CHARS_MAX: usize = 1_000;
    let mut short: String = message.chars().take(CHARS_MAX).collect();
    if short.len() < message.len() {
        short.push('…');
    }
    short
}

impl From<swirl_service::Error> for Problem {
    fn from(error: swirl_service::Error) -> Problem {
        match &error {
            swirl_service::Error::Store(store) => Problem::from(store.clone()),
            swirl_service::Error::TooFast { .. } => {
                Problem::from(swirl_ports::Error::Unavailable(error.to_string()))
            }
            swirl_service::Error::Definition { .. } | swirl_service::Error::Attempts { .. } => {
                tracing::error!(%error, "a request failed");
                Problem::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "definition-broken",
                    error.to_string(),
                )
            }
        }
    }
}

impl From<swirl_ports::Error> for Problem {
    fn from(error: swirl_ports::Error) -> Problem {
        let (status, code) = match &error {
            swirl_ports::Error::Unavailable(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "store-unavailable")
            }
            swirl_ports::Error::Damaged { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "store-damaged")
            }
            swirl_ports::Error::UnknownPlace(_) => (StatusCode::BAD_REQUEST, "unknown-place"),
            swirl_ports::Error::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
        };
        tracing::warn!(%error, "a request failed");
        Problem::new(status, code, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let body = Json(swirl_api::Problem {
            title: title.to_owned(),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            detail: self.detail,
            more: self.more,
        });
        let mut response = (self.status, body).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if self.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            let known = HeaderValue::from_static(swirl_content::ACCEPTED);
            response
                .headers_mut()
                .insert(header::ACCEPT_ENCODING, known);
        }
        let passes = [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        if passes.contains(&self.status) {
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, soon);
        }
        response
    }
}
