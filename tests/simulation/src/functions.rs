//! The answers of the functions in generated workflows. The reference interpreter uses them too, because services are
//! not under test.

use swirl_model::error::{Description, OWN_TYPES};
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, WorkflowError};
use swirl_ports::CallRequest;

pub struct Answer {
    pub after_ms: u64,
    pub result: Result<Data, WorkflowError>,
}

/// Longer than any run.
pub const ENDLESS_MS: u64 = 3_600_013;

/// `repaired` fails until this time after the start of the run.
pub const REPAIRED_MS: i64 = 4_000;

/// A number that is always the same for the same arguments.
pub fn weight(arguments: &Data) -> usize {
    weight_of(&arguments.to_string())
}

pub fn weight_of(text: &str) -> usize {
    text.bytes()
        .fold(7usize, |sum, byte| (sum * 31 + byte as usize) % 9973)
}

/// `attempt` counts from 1, over the calls of one scope with the same arguments.
pub fn answer(function: &str, weight: usize, attempt: usize, elapsed_ms: i64) -> Answer {
    let bad = || {
        Err(WorkflowError {
            code: Some("bad".into()),
            ..WorkflowError::new("bad", "it failed")
        })
    };
    let good = |n: usize| {
        let mut data = Data::object();
        data.set("n", Data::int((n % 10) as i64));
        Ok(data)
    };
    let (after_ms, result) = match function {
        "slow" => (137 * (1 + weight as u64 % 5), good(weight)),
        "flaky" if attempt <= 1 + weight % 3 => (11, bad()),
        "broken" => (0, bad()),
        "repaired" if elapsed_ms < REPAIRED_MS => (0, bad()),
        "late" => (977, bad()),
        "endless" => (ENDLESS_MS, good(weight)),
        _ => (0, good(weight)),
    };
    Answer { after_ms, result }
}

/// The answer of a failing service over HTTP.
pub const STATUS: u16 = 503;
pub const REASON: &str = "Service Unavailable";
pub const BODY: &str = "it failed";

/// The service that a request asks, and what it asks.
pub fn asked(request: &CallRequest) -> (String, String) {
    if request.function.kind != FunctionKind::HttpCall {
        return (
            request.function.name.to_string(),
            request.arguments.to_string(),
        );
    }
    let uri = request.arguments.get("uri").unwrap_or_default();
    let body = request.arguments.get("body").unwrap_or_default();
    asked_at(&uri.to_text(), &body)
}

/// The same for an address: the service is the first part of its path.
pub fn asked_at(uri: &str, body: &Data) -> (String, String) {
    let name = uri.split('/').nth(3).unwrap_or_default();
    let asked = format!("{uri} {}", crate::plans::in_order(body));
    (name.to_owned(), asked)
}

/// The answer to a request, with errors as they are over HTTP.
pub fn answered(request: &CallRequest, attempt: usize, elapsed_ms: i64) -> Answer {
    let (name, asked) = asked(request);
    let mut answer = answer(&name, weight_of(&asked), attempt, elapsed_ms);
    if request.function.kind == FunctionKind::HttpCall {
        // After a definite answer, an operator's retry is another call (docs/language.md#decision-95).
        let status = if name == "repaired" { 500 } else { STATUS };
        answer.result = answer.result.map_err(|_| WorkflowError {
            code: Some(status.to_string()),
            status: Some(status),
            problem: Some(Box::new(Description {
                kind: format!("{OWN_TYPES}communication"),
                title: Some(REASON.to_owned()),
                instance: None,
                detail: Some(BODY.to_owned()),
            })),
            ..WorkflowError::new("FunctionError", BODY)
        });
    }
    answer
}
