//! Errors in responses: RFC 9457, `application/problem+json`, each with a stable `code`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// Why a request is refused.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    /// Programs distinguish problems by the code, so a code never changes.
    code: &'static str,
    detail: String,
    extra: Map<String, Value>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            status,
            code,
            detail: detail.into(),
            extra: Map::new(),
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

    /// Adds a member to the response.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.extra.insert(name.to_owned(), value.into());
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
        let mut body = json!({
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(members) = body.as_object_mut() {
            members.extend(self.extra);
        }
        let mut response = (self.status, body.to_string()).into_response();
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
