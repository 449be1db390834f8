//! SubFlow: another workflow, awaited or not.

use swirl_documents::codes;
use swirl_model::workflow::{Action, ActionKind, OnParentEnd, StateKind, Subflow};

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "subflow",
    properties: &["waitForCompletion", "workflowId"],
    has_next: true,
    retries: false,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    if reader.meant(obj, "waitForCompletion").is_none() {
        let state = reader.variant.state;
        let message = format!(
            "the subflow {state} has no 'waitForCompletion': it doesn't wait for the workflow"
        );
        let hint = "add 'waitForCompletion', true or false".to_owned();
        reader.warn(obj.node, codes::MISSING_PROPERTY, message, hint);
    }
    let waits = reader.flag(obj, "waitForCompletion", false);
    let Some(node) = obj.get("workflowId") else {
        let what = format!("a subflow {}", reader.variant.state);
        reader.missing(obj, &what, &["workflowId"]);
        return None;
    };
    let workflow = reader.string(node, "'workflowId'")?;
    reader.check_known_workflow(node, &workflow);
    let pointer = reader.location(obj.node).place.pointer;
    let action = reader.add_action(Action {
        kind: ActionKind::Subflow(Subflow {
            workflow,
            version: None,
            input: None,
            detached: !waits,
            // It continues when the parent ends (docs/language.md#decision-56).
            on_parent_end: OnParentEnd::Continue,
        }),
        pointer,
        results: swirl_model::workflow::ResultRule {
            ignore: !waits,
            ..Default::default()
        },
        ..Action::default()
    });
    Some(StateKind::Operation(
        reader.action_list(vec![action], false),
    ))
}
