//! What a task gives for the answer to its request, and for a failure (DSL 1.0, "HTTP Call", "OpenAPI Call", "HTTP
//! Response").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use swirl_model::error::{Description, OWN_TYPES, names};
use swirl_model::{Data, WorkflowError};
use url::Url;

use super::rest::answer;
use crate::auth::beginning;
use crate::http::Answer;
use crate::{CallError, CallErrorKind};

/// The longest part of an answer's body, or of a process's words, that becomes the detail of an error.
pub(crate) const DETAIL_BYTES_MAX: usize = 64 * 1024;

/// The request of an answer, and what the task makes of the answer.
pub(crate) struct Wanted<'a> {
    /// `raw`, `content` or `response`.
    pub(crate) output: Option<&'a str>,
    /// A redirect isn't an error.
    pub(crate) redirect: bool,
    pub(crate) method: &'a str,
    pub(crate) url: &'a Url,
    /// Without credentials.
    pub(crate) headers: Vec<(&'a str, &'a str)>,
}

/// The task's output.
///
/// # Errors
/// The error that the task fails with.
pub(crate) fn output(
    wanted: &Wanted<'_>,
    answer: &Answer,
    secrets: &[String],
) -> Result<Data, CallError> {
    let last = if wanted.redirect { 399 } else { 299 };
    if !(200..=last).contains(&answer.status) {
        return Err(failure(answer, secrets));
    }
    let unreadable = |reason| {
        let error = CallError::new(CallErrorKind::Response, reason);
        described(error, "communication", 500)
    };
    let content = || answer::read(answer).map_err(unreadable);
    match wanted.output {
        Some("raw") => {
            let body = answer.decoded().map_err(unreadable)?;
            Ok(Data::string(STANDARD.encode(body)))
        }
        Some("response") => {
            let mut shown = Data::object();
            let mut asked = Data::object();
            let method = wanted.method.to_ascii_lowercase();
            asked.set("method", Data::string(method));
            asked.set("uri", Data::string(wanted.url.as_str()));
            let mut headers = Data::object();
            for (name, value) in &wanted.headers {
                headers.set(name, Data::string(*value));
            }
            asked.set("headers", headers);
            shown.set("request", asked);
            shown.set("statusCode", Data::int(answer.status.into()));
            let mut headers = Data::object();
            for (name, value) in &answer.headers {
                let value = String::from_utf8_lossy(value.as_bytes());
                headers.set(name.as_str(), Data::string(&*value));
            }
            shown.set("headers", headers);
            shown.set("content", content()?);
            Ok(shown)
        }
        _ => content(),
    }
}

/// A status outside of those that the task takes: its body is the detail.
fn failure(answer: &Answer, secrets: &[String]) -> CallError {
    let status = answer.status;
    let reason = StatusCode::from_u16(status).ok();
    let reason = reason.and_then(|status| status.canonical_reason());
    let title = reason.map_or_else(|| status.to_string(), str::to_owned);
    let text = String::from_utf8_lossy(&answer.body);
    let detail = beginning(&text, secrets, DETAIL_BYTES_MAX);
    let message = match detail.is_empty() {
        true => title.clone(),
        false => detail.clone(),
    };
    let mut error = CallError::new(CallErrorKind::Status(status), message.clone());
    error.retry_after = answer.retry_after();
    error.exact = Some(Box::new(WorkflowError {
        code: Some(status.to_string()),
        status: Some(status),
        problem: Some(Box::new(Description {
            kind: format!("{OWN_TYPES}communication"),
            title: Some(title),
            instance: None,
            detail: (!detail.is_empty()).then_some(detail),
        })),
        ..WorkflowError::new(names::FUNCTION_ERROR, message)
    }));
    error
}

/// A failure without an answer, in the language's own words.
pub(crate) fn in_words(error: CallError) -> CallError {
    in_words_of(error, "communication")
}

/// The same. `usual`: the word for what has none of its own.
pub(crate) fn in_words_of(error: CallError, usual: &str) -> CallError {
    match error.kind {
        _ if error.exact.is_some() => error,
        CallErrorKind::Limit => error,
        CallErrorKind::Status(status) => described(error, usual, status),
        CallErrorKind::Auth => described(error, "authentication", 401),
        CallErrorKind::Arguments => described(error, "configuration", 400),
        _ => described(error, usual, 500),
    }
}

/// The error in the language's own words.
pub(crate) fn described(mut error: CallError, kind: &str, status: u16) -> CallError {
    let mut title = kind.to_owned();
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    error.exact = Some(Box::new(WorkflowError {
        code: Some(error.code()),
        status: Some(status),
        problem: Some(Box::new(Description {
            kind: format!("{OWN_TYPES}{kind}"),
            title: Some(title),
            instance: None,
            detail: Some(error.message.clone()),
        })),
        ..WorkflowError::new(error.name(), error.message.as_str())
    }));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detail_has_no_part_of_a_secret() {
        let answer = Answer {
            status: 500,
            headers: Default::default(),
            body: format!("{}hunter2", "x".repeat(DETAIL_BYTES_MAX - 4)).into_bytes(),
            coding_error: None,
        };
        let error = failure(&answer, &["hunter2".to_owned()]);
        assert!(error.message.ends_with("x***"));
    }
}
