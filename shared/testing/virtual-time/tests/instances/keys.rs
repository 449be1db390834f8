//! The key of a call whose outcome is unknown (docs/language.md#decision-95).

use std::sync::{Arc, Mutex};

use swirl_model::error::names;
use swirl_model::time::Timestamp;
use swirl_model::{Data, WorkflowError};
use swirl_ports::CallRequest;
use swirl_virtual_time::Mock;

use crate::fixture;

const DOCUMENT: &str = r#"
id: charge
version: "1.0.0"
specVersion: "0.8"
functions: [{name: charge, type: rest, operation: "file://shop.json#charge"}]
retries: [{name: Again, delay: PT1S, maxAttempts: 20}]
errors: [{name: All, code: "*"}]
states:
  - name: Charge
    type: operation
    actions: [{functionRef: charge, retryRef: Again}]
    end: true
"#;

fn failure(code: &str) -> WorkflowError {
    WorkflowError {
        code: Some(code.to_owned()),
        status: code.parse().ok(),
        ..WorkflowError::new(names::FUNCTION_ERROR, "it failed")
    }
}

/// The keys of the attempts of one call, which fails with these codes, one after another.
fn keys(failures: &[&'static str]) -> Vec<String> {
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, failures) = (keys.clone(), failures.to_vec());
    let attempts = failures.len() + 1;
    let answer = move |request: &CallRequest| {
        let mut seen = seen.lock().unwrap();
        let result = match failures.get(seen.len()) {
            Some(code) => Err(failure(code)),
            None => Ok(Data::object()),
        };
        seen.push(request.key.clone());
        Mock::Answer {
            after_ms: 0,
            result,
        }
    };
    let mut world = fixture::world(&[DOCUMENT], answer);
    fixture::run(&mut world, "charge", Timestamp(3_600_000));
    let keys = keys.lock().unwrap().clone();
    assert_eq!(keys.len(), attempts, "{keys:?}");
    keys
}

/// Each key in its order, as a letter.
fn pattern(failures: &[&'static str]) -> String {
    let keys = keys(failures);
    let mut known: Vec<&String> = Vec::new();
    let letters = keys.iter().map(|key| {
        let index = known.iter().position(|one| *one == key);
        let index = index.unwrap_or_else(|| {
            known.push(key);
            known.len() - 1
        });
        char::from(b'a' + index as u8)
    });
    letters.collect()
}

#[test]
fn one_key_until_the_service_has_given_a_definite_answer() {
    for (failures, expected) in [
        (&["503", "502", "504"][..], "aaaa"),
        (&["timeout", "connection"], "aaa"),
        // The service has answered: the next attempt is another call.
        (&["500", "429", "409"], "abcd"),
        (&["503", "500", "connection", "timeout", "404"], "aabbbc"),
        (&["failed"], "ab"),
    ] {
        assert_eq!(pattern(failures), expected, "{failures:?}");
    }
}
