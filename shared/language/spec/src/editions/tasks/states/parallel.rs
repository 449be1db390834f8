//! Parallel: branches, each a flow of states (docs/language.md#decision-33, #decision-53 and #decision-100).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Body, Branch, Count, Parallel, StateKind};

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::build::expression::whole;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "parallel",
    properties: &["branches", "completionType", "n", "numCompleted"],
    has_next: true,
    retries: true,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    let items = match obj.get("branches") {
        Some(node) => reader.full_list(node, "'branches'").unwrap_or_default(),
        None => {
            let what = format!("a parallel {}", reader.variant.state);
            reader.missing(obj, &what, &["branches"]);
            &[]
        }
    };
    reader.unique(items, "name", "branch");
    let mut branches = Vec::with_capacity(items.len());
    for item in items {
        branches.push(branch(reader, item, obj.has("completionType")));
    }
    let number = Some(items.len()).filter(|number| *number > 0);
    let at_least = at_least(reader, obj, number);
    Some(StateKind::Parallel(Parallel {
        branches: branches.into_iter().collect::<Option<_>>()?,
        at_least,
        ..Parallel::default()
    }))
}

/// `counted`: the state's `completionType` determines which branches are awaited.
fn branch(reader: &mut Reader<'_, '_>, node: &Node, counted: bool) -> Option<Branch> {
    let (states, other) = reader.variant.states;
    let mut known = vec!["name", "startsAt", states, other];
    let says = reader.variant.branches_awaited_if_said;
    if says {
        known.push("waitForCompletion");
    }
    let obj = reader.object(node, "a branch", &known)?;
    let awaited = reader.flag(obj, "waitForCompletion", !says || counted);
    let name = reader.need_string(obj, "a branch", "name");
    let what = match &name {
        Some(name) => format!("the branch '{name}'"),
        None => "a branch".to_owned(),
    };
    let flow = reader.nested_flow(obj, &what);
    Some(Branch {
        name: name?.into(),
        body: Body::Flow(flow?),
        timeout: None,
        awaited,
    })
}

/// `branches`: their number, if the list could be read.
fn at_least(reader: &mut Reader<'_, '_>, obj: Obj<'_>, branches: Option<usize>) -> Option<Count> {
    let kind = completion(reader, obj);
    let node = reader.named(obj, "n", &["numCompleted"]);
    match (kind, node) {
        (Some("n_of_m"), None) => {
            let what = format!(
                "a parallel {} with 'completionType: n_of_m'",
                reader.variant.state
            );
            reader.missing(obj, &what, &["n"]);
            None
        }
        // Whatever the type is meant to be, if it could not be read.
        (kind, Some(node))
            if kind.map_or(obj.has("completionType"), |kind| kind == "n_of_m")
                && (kind.is_some() || node.raw() != "0") =>
        {
            let branches = branches?;
            let text = node.as_str().map_or(node.raw(), str::trim);
            let count = whole(text).filter(|count| (1..=branches).contains(&(*count as usize)));
            if count.is_none() {
                let message = format!(
                    "'n' must be a whole number from 1 to {branches}, the number of branches"
                );
                let hint = "it is how many branches must be done".to_owned();
                reader.error(node, codes::BAD_COUNT, message, hint);
            }
            count.map(Count::Fixed)
        }
        (kind, node) => {
            if let Some(node) = node {
                // In the specification, 0 means none.
                if node.raw() != "0" {
                    reader.ignored(node, "n", "it belongs to 'completionType: n_of_m'");
                }
            }
            (kind == Some("xor")).then_some(Count::Fixed(1))
        }
    }
}

/// `completionType`, by its words here or in later editions.
fn completion(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Option<&'static str> {
    let node = obj.get("completionType")?;
    let text = node.as_str().unwrap_or_default();
    for (later, here) in [("allOf", "and"), ("atLeast", "n_of_m")] {
        if text.eq_ignore_ascii_case(later) {
            reader.other_name(node, later, here);
            return Some(here);
        }
    }
    reader.word(obj, "completionType", &["and", "xor", "n_of_m"])
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{Count, Parallel, StateKind};

    use crate::editions::tasks::testing::reading;

    fn parallel(schema: &str, states: &str, state: &str, branch: &str) -> Parallel {
        let text = format!(
            "id: a\nname: a\nversion: 1.0.0\n{schema}{states}:\n- name: A\n  type: parallel\n  start: {{kind: default}}\n  {state}\n  branches:\n  - {{name: b, {branch}{states}: [{{name: B, type: delay, timeDelay: PT1S, start: {{kind: default}}, end: {{kind: default}}}}]}}\n  end: {{kind: default}}\n"
        );
        let reading = reading(&text);
        let findings: Vec<_> = reading.diagnostics.iter().collect();
        let mut workflow = reading.workflow.unwrap_or_else(|| panic!("{findings:?}"));
        match workflow.states.swap_remove(0).kind {
            StateKind::Parallel(parallel) => parallel,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_number_of_awaited_branches() {
        let of = |state: &str| parallel("", "tasks", state, "").at_least;
        assert_eq!(of("metadata: {}"), None);
        assert_eq!(of("completionType: and"), None);
        assert_eq!(of("completionType: XOR"), Some(Count::Fixed(1)));
        assert_eq!(
            of("completionType: n_of_m\n  n: '1'"),
            Some(Count::Fixed(1))
        );
    }

    #[test]
    fn which_branches_are_awaited() {
        let release = "schemaVersion: '0.1'\n";
        let of = |schema, states, state, branch| {
            parallel(schema, states, state, branch).branches[0].awaited
        };
        assert!(of("", "tasks", "metadata: {}", ""));
        assert!(!of(release, "states", "metadata: {}", ""));
        assert!(of(
            release,
            "states",
            "metadata: {}",
            "waitForCompletion: true, "
        ));
        assert!(of(release, "states", "completionType: and", ""));
    }
}
