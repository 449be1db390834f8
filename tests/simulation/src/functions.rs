//! The answers of the functions in generated workflows. The reference interpreter uses them too, because services are
//! not under test.

use swirl_model::{Data, WorkflowError};

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
    let text = arguments.to_string();
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
