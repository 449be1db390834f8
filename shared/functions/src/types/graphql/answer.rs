//! Converts an answer to data or an error.

use serde_json::Value;
use swirl_model::Data;

use crate::auth::redact;
use crate::types::rest::answer;
use crate::types::service::Reply;
use crate::{CallError, CallErrorKind};

/// The number of characters of a message that are shown.
const MESSAGE_CHARS_MAX: usize = 500;

/// The answer's `data`.
pub(super) fn data(reply: &Reply, what: &str) -> Result<Data, CallError> {
    let answer = &reply.answer;
    let body = answer.json();
    let errors = errors(&body);
    if let Some(first) = errors.first() {
        return Err(failure(reply, first, errors.len() - 1, &body, what));
    }
    if !(200..300).contains(&answer.status) {
        let refused = answer::data(answer, what, &reply.secrets, "");
        return refused.and_then(|_| Err(CallError::new(CallErrorKind::Response, what)));
    }
    match body.get("data") {
        Some(data) => Ok(Data::from(data.clone())),
        None => Err(CallError::new(
            CallErrorKind::Response,
            format!(
                "{what}: the answer is not a GraphQL answer: it has neither `data` nor `errors`"
            ),
        )),
    }
}

/// The specification asks for a list of objects that isn't empty. Some services send a single error, or texts, and some a
/// value that says that there is none.
fn errors(body: &Value) -> &[Value] {
    match body.get("errors") {
        None | Some(Value::Null | Value::Bool(false)) => &[],
        Some(Value::Array(errors)) => errors,
        Some(Value::String(text)) if text.is_empty() => &[],
        Some(Value::Object(members)) if members.is_empty() => &[],
        Some(other) => std::slice::from_ref(other),
    }
}

/// Whether the service rejected the query itself, so that none of it was executed.
pub(super) fn is_refused(error: &CallError) -> bool {
    let body = error.body.as_ref();
    body.is_some_and(|body| body.get("errors").is_some() && body.get("data").is_none())
}

/// The message comes from the first error; the error's body contains all of them.
fn failure(reply: &Reply, first: &Value, others: usize, body: &Value, what: &str) -> CallError {
    let status = reply.answer.status;
    let text = match first.as_str().or_else(|| first["message"].as_str()) {
        Some(text) => redact(text, &reply.secrets),
        None => "an error without a message".to_owned(),
    };
    let mut message: String = text
        .chars()
        .take(MESSAGE_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if let Some(path) = first["path"].as_array().filter(|path| !path.is_empty()) {
        let path: Vec<String> = path
            .iter()
            .map(|part| {
                part.as_str()
                    .map_or_else(|| part.to_string(), str::to_owned)
            })
            .collect();
        message.push_str(&format!(" (at `{}`)", path.join(".")));
    }
    if others > 0 {
        message.push_str(&format!(", and {others} more"));
    }
    let kind = match status {
        200..300 => CallErrorKind::Failed,
        status => CallErrorKind::Status(status),
    };
    let message = redact(&format!("{what}: {message}"), &reply.secrets);
    let mut error = CallError::new(kind, message);
    error.given_code = match &first["extensions"]["code"] {
        Value::String(code) if !code.is_empty() => Some(redact(code, &reply.credentials)),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    }
    .map(Into::into);
    let shown = redact(&body.to_string(), &reply.secrets);
    error.body = Data::parse(shown.as_bytes()).ok();
    error.retry_after = reply.answer.retry_after();
    error
}
