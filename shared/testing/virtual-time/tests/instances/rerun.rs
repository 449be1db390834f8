//! Which tasks an operator can rerun, where a nested one has failed.

use swirl_model::error::names;
use swirl_model::time::Timestamp;
use swirl_model::{Data, WorkflowError};
use swirl_service::{Action, Operation, Refusal};
use swirl_virtual_time::Mock;

use crate::fixture;

const NESTED: &str = r#"
document: {dsl: 1.0.3, namespace: shop, name: nested, version: 1.0.0}
use:
  functions:
    pay: {call: openapi, with: {document: {endpoint: 'http://pay/openapi.json'}, operationId: pay}}
do:
  - outer:
      do:
        - f:
            fork:
              branches:
                - x: {call: pay}
                - y: {set: {a: 1}}
"#;

fn refused(action: Action) -> Refusal {
    let mut world = fixture::world(&[NESTED], |_| Mock::Answer {
        after_ms: 10,
        result: Err(WorkflowError::new(names::FUNCTION_ERROR, "not today")),
    });
    fixture::run(&mut world, "shop.nested", Timestamp(1_000));
    let all = world.instances().unwrap();
    let (service, id) = (world.service.clone(), all[0].header.id.clone());
    let done = world.wait(async move { service.would(&id, &Operation::Act(action)).await });
    done.unwrap().unwrap_err()
}

#[test]
fn a_task_of_the_main_list_is_named() {
    let refusal = refused(Action::Edit {
        state: None,
        data: Data::object(),
        context: None,
    });
    assert_eq!(refusal.code, "wrong-status");
    let reason = refusal.reason;
    assert!(
        reason.ends_with("rerun 'outer' with the data that you want"),
        "{reason}"
    );
    for inner in ["f", "x", "y"] {
        let refusal = refused(Action::Rerun(inner.to_owned()));
        let expected = format!(
            "only a task of the main list can be rerun: rerun 'outer', which '{inner}' is part of"
        );
        assert_eq!(
            (refusal.code, refusal.reason),
            ("unknown-state", expected),
            "{inner}"
        );
    }
    let refusal = refused(Action::Rerun("nowhere".to_owned()));
    assert_eq!(refusal.code, "unknown-state");
    assert_eq!(refusal.reason, "shop.nested:1.0.0 has no task 'nowhere'");
}
