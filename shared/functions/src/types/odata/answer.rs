//! Converts an answer to data or an error.

use serde_json::Value;
use swirl_model::Data;

use crate::CallError;
use crate::auth::{beginning, redact};
use crate::types::rest::answer;
use crate::types::service::Reply;

/// The answer's JSON. A failure has the service's code.
pub(super) fn data(reply: &Reply, what: &str) -> Result<Data, CallError> {
    let result = answer::data(&reply.answer, what, &reply.secrets, "");
    result.map_err(|mut error| {
        let body = reply.answer.json();
        // Version 3 has another name for it, and in versions up to 3 the message has a language.
        let reported = body.get("error").or_else(|| body.get("odata.error"));
        let Some(reported) = reported.filter(|_| error.status().is_some()) else {
            return error;
        };
        error.given_code = match &reported["code"] {
            Value::String(code) if !code.is_empty() => Some(redact(code, &reply.credentials)),
            Value::Number(code) => Some(code.to_string()),
            _ => None,
        }
        .map(Into::into);
        let message = reported["message"].as_str();
        if let Some(message) = message.or_else(|| reported["message"]["value"].as_str()) {
            let shown = beginning(message, &reply.secrets, 500);
            error.message = format!("{what}: {}: {shown}", reply.answer.status);
        }
        error
    })
}
