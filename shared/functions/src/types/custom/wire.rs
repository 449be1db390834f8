//! Calls and answers of connectors, as JSON.

use serde_json::{Value, json};
use swirl_model::{Data, WorkflowError};
use swirl_ports::CallRequest;

use crate::CallError;
use crate::auth::redact;
use crate::http::Answer;

/// The number of characters of a given message that an error shows.
const MESSAGE_CHARS_MAX: usize = 500;

/// The input of a connector for a call. `key` is the idempotency key: a repeat after a crash has the same key, a retry
/// has another one.
pub(super) fn call(request: &CallRequest) -> Vec<u8> {
    let function = &request.function;
    let call = json!({
        "function": &*function.name,
        "type": function.kind.as_str(),
        "operation": function.operation,
        "arguments": Value::from(&request.arguments),
        "metadata": Value::from(&function.metadata),
        "workflow": {
            "id": request.definition.workflow.to_string(),
            "version": request.definition.version.to_string(),
        },
        "instance": request.scope.instance.to_string(),
        "key": request.key,
    });
    call.to_string().into_bytes()
}

/// The media type of an error that is passed to the definition unchanged.
const EXACT: &str = "application/vnd.swirl.error+json";

/// The texts that errors must not show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hidden<'a> {
    /// The credentials that were sent. They are removed from everything.
    pub(super) credentials: &'a [String],
    /// The values of the workflow's secrets. They stay in names and codes, because handlers match by them.
    pub(super) secrets: &'a [String],
}

impl<'a> Hidden<'a> {
    pub(super) fn secrets(secrets: &'a [String]) -> Hidden<'a> {
        Hidden {
            credentials: &[],
            secrets,
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        [self.credentials, self.secrets].concat()
    }
}

/// The error of an answer with the media type [`EXACT`]: `name` and `message`, and optionally `code` and `status`. Only
/// credentials are removed from it, and secrets from a message that is shortened.
pub(super) fn exact(answer: &Answer, hidden: Hidden<'_>) -> Option<WorkflowError> {
    let kind = answer.header("content-type")?.split(';').next()?;
    if !kind.trim().eq_ignore_ascii_case(EXACT) {
        return None;
    }
    let mut error: WorkflowError = serde_json::from_str(&answer.text().ok()?).ok()?;
    let credentials = hidden.credentials;
    error.message = redact(&error.message, credentials);
    // A cut through a secret would leave a part that could not be recognised afterwards.
    if error.message.chars().nth(MESSAGE_CHARS_MAX).is_some() {
        let message = redact(&error.message, hidden.secrets);
        error.message = message.chars().take(MESSAGE_CHARS_MAX).collect();
    }
    error.name = redact(&error.name, credentials);
    error.code = error.code.map(|code| redact(&code, credentials));
    error.state = None;
    Some(error)
}

/// An error in a connector's answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    name: Option<String>,
    code: Option<String>,
    message: Option<String>,
    can_retry: Option<bool>,
}

impl Given {
    /// `{"error": {"name": ..., "code": ..., "message": ..., "retryable": ...}}` without other members. Any of the four
    /// may be missing, but not all of the first three.
    pub(super) fn of(answer: &Data) -> Option<Given> {
        let Value::Object(answer) = Value::from(answer) else {
            return None;
        };
        let error = answer.get("error").filter(|_| answer.len() == 1)?;
        let error = error.as_object()?;
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let given = Given {
            name: text("name"),
            code: text("code"),
            message: text("message"),
            can_retry: error.get("retryable").and_then(Value::as_bool),
        };
        let says = given.name.is_some() || given.code.is_some() || given.message.is_some();
        says.then_some(given)
    }

    /// The connector's name and code take precedence over ours.
    pub(super) fn apply(self, mut error: CallError, what: &str, hidden: Hidden<'_>) -> CallError {
        if let Some(message) = self.message {
            let message: String = redact(&message, &hidden.all())
                .chars()
                .take(MESSAGE_CHARS_MAX)
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            error.message = format!("{what}: {message}");
        }
        error.can_retry = self.can_retry.unwrap_or(error.can_retry);
        let as_it_came = |text: String| redact(&text, hidden.credentials).into_boxed_str();
        error.given_name = self.name.map(as_it_came);
        error.given_code = self.code.map(as_it_came);
        error
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;
    use crate::CallErrorKind;

    #[test]
    fn an_answer_is_an_error_only_without_other_members() {
        for (answer, expected) in [
            (data!({"error": {"name": "Full", "code": 7}}), true),
            (data!({"error": {"message": "no"}}), true),
            (data!({"error": {"retryable": true}}), false),
            (data!({"error": {}}), false),
            (data!({"error": "no"}), false),
            (data!({"error": null}), false),
            (data!({"error": {"name": "Full"}, "a": 1}), false),
            (data!([{"error": {"name": "Full"}}]), false),
        ] {
            assert_eq!(Given::of(&answer).is_some(), expected, "{answer}");
        }
    }

    #[test]
    fn given_names_and_codes_take_precedence() {
        let answer = data!({"error": {"name": "Full", "code": 7, "message": "s3cret!\n", "retryable": false}});
        let own = CallError::new(CallErrorKind::Status(503), "own");
        let given = Given::of(&answer).unwrap();
        let secrets = ["s3cret".to_owned()];
        let error = given.apply(own.clone(), "call", Hidden::secrets(&secrets));
        assert_eq!((error.name(), error.code().as_str()), ("Full", "7"));
        assert_eq!((error.status(), error.can_retry), (Some(503), false));
        assert_eq!(error.message, "call: ***! ");
        let given = Given::of(&data!({"error": {"code": "busy"}})).unwrap();
        let error = given.apply(own, "call", Hidden::secrets(&[]));
        assert_eq!(
            (error.name(), error.message.as_str()),
            ("FunctionError", "own")
        );
        assert!(error.can_retry);
    }

    #[test]
    fn only_credentials_are_removed_from_names_and_codes() {
        let own = || CallError::new(CallErrorKind::Failed, "own");
        let answer = data!({"error": {"name": "admin only", "code": "token-1", "message": "admin, token-1"}});
        let hidden = Hidden {
            credentials: &["token-1".to_owned()],
            secrets: &["admin".to_owned()],
        };
        let error = Given::of(&answer).unwrap().apply(own(), "call", hidden);
        assert_eq!((error.name(), error.code().as_str()), ("admin only", "***"));
        assert_eq!(error.message, "call: ***, ***");
    }
}
