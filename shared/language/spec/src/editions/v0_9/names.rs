//! The naming convention: lower case letters, digits and single dashes between them (section "Naming Convention"). A
//! missing name of an action or a condition is only a warning.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;
use crate::edition::is_conventional;

pub(super) fn check(ctx: &mut Ctx<'_>, root: &mut Node) {
    own(ctx, root, "a workflow's name");
    for (list, what) in [
        ("functions", "a function's name"),
        ("events", "an event's name"),
        ("retries", "a retry definition's name"),
        ("auth", "an auth definition's name"),
    ] {
        for item in items(root.get(list)) {
            own(ctx, item, what);
        }
    }
    if let Some(errors) = root.get("errors") {
        for (list, what) in [
            ("definitions", "an error's name"),
            ("handlers", "an error handler's name"),
            ("policies", "an error policy's name"),
        ] {
            for item in items(errors.get(list)) {
                own(ctx, item, what);
            }
        }
    }
    for state in items(root.get("states")) {
        state_names(ctx, state);
    }
}

fn state_names(ctx: &mut Ctx<'_>, state: &Node) {
    own(ctx, state, "a state's name");
    let callback = state.get("action").map(std::slice::from_ref);
    actions(ctx, callback.unwrap_or_default());
    actions(ctx, items(state.get("actions")));
    for entry in items(state.get("onEvents")) {
        actions(ctx, items(entry.get("actions")));
    }
    for branch in items(state.get("branches")) {
        own(ctx, branch, "a branch's name");
        actions(ctx, items(branch.get("actions")));
    }
    for list in ["dataConditions", "eventConditions"] {
        for condition in items(state.get(list)) {
            needed(ctx, condition, "a condition", "");
        }
    }
}

fn actions(ctx: &mut Ctx<'_>, list: &[Node]) {
    for action in list {
        let without = ": a result that is not an object needs 'toStateData' then";
        needed(ctx, action, "an action", without);
    }
}

fn needed(ctx: &mut Ctx<'_>, node: &Node, what: &str, without: &str) {
    if node.members().is_some() && node.get("name").is_none() {
        let message = format!("{what} has no 'name'{without}");
        ctx.warn(
            node,
            codes::MISSING_PROPERTY,
            message,
            "add 'name'".to_owned(),
        );
    }
    own(ctx, node, &format!("the name of {what}"));
}

fn own(ctx: &mut Ctx<'_>, node: &Node, what: &str) {
    let Some(node) = node.get("name") else {
        return;
    };
    // The reader reports a name that is empty or not a text.
    let Some(name) = node.as_str().filter(|name| !name.is_empty()) else {
        return;
    };
    if is_conventional(name) {
        return;
    }
    let message = format!(
        "{what} cannot be '{name}': names have lower case letters, digits and single dashes between them"
    );
    let hint = match conventional(name) {
        Some(best) => format!("write '{best}'"),
        None => "write for example 'check-applicant'".to_owned(),
    };
    ctx.error(node, codes::BAD_NAME, message, hint);
}

/// The name in the form of the convention: `CheckApplicant` and `check applicant` become `check-applicant`.
fn conventional(name: &str) -> Option<String> {
    let mut made = String::new();
    let mut lower = false;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            if c.is_ascii_uppercase() && lower {
                made.push('-');
            }
            lower = !c.is_ascii_uppercase();
            made.push(c.to_ascii_lowercase());
        } else {
            lower = false;
            if !made.is_empty() && !made.ends_with('-') {
                made.push('-');
            }
        }
    }
    let made = made.trim_end_matches('-').to_owned();
    is_conventional(&made).then_some(made)
}

fn items(list: Option<&Node>) -> &[Node] {
    list.and_then(Node::items).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_the_convention() {
        for name in ["a", "a1", "check-applicant", "0-9"] {
            assert!(is_conventional(name), "{name}");
        }
        for name in ["", "-", "a-", "-a", "a--b", "A", "a b", "a_b", "ä"] {
            assert!(!is_conventional(name), "{name}");
        }
        for (name, expected) in [
            ("CheckApplicant", "check-applicant"),
            ("check applicant", "check-applicant"),
            ("My API call!", "my-api-call"),
        ] {
            assert_eq!(conventional(name).as_deref(), Some(expected));
        }
        assert_eq!(conventional("!?"), None);
    }
}
