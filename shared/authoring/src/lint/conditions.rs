//! Conditions with a constant result, and conditions that make later ones superfluous.

use swirl_documents::source::Node;
use swirl_expr::{Env, Program};
use swirl_model::Data;
use swirl_model::workflow::{ExprId, Language, Next, State, StateKind, Test};

use super::{CONSTANT_CONDITION, Subject};

pub fn check(subject: &mut Subject<'_>) {
    let (workflow, root) = (subject.workflow, subject.root);
    let mut conditions: Vec<ExprId> = Vec::new();
    for action in &workflow.actions {
        conditions.extend(action.condition);
    }
    for state in &workflow.states {
        conditions.extend(guards(state));
        if let StateKind::Switch(switch) = &state.kind {
            for condition in &switch.conditions {
                expressions(&condition.test, &mut conditions);
            }
            repeated(subject, state);
        }
    }
    conditions.sort_unstable();
    conditions.dedup();
    for id in conditions {
        let source = &workflow[id];
        let Some(value) = constant(source.language, &source.text) else {
            continue;
        };
        let node = root.at(&source.pointer).unwrap_or(root);
        let message = format!("the condition '{}' is always {value}", source.text);
        let hint = match value {
            true => "remove the condition, or compare something of the data",
            false => "remove what depends on it, or compare something of the data",
        };
        subject.found(&CONSTANT_CONDITION, node, message, hint);
    }
}

/// Conditions that repeat an earlier one of the same switch.
fn repeated(subject: &mut Subject<'_>, state: &State) {
    let StateKind::Switch(switch) = &state.kind else {
        return;
    };
    let node = subject.places.state(subject.root, &state.name);
    let list = ["dataConditions", "conditions", "choices"];
    let list = list
        .iter()
        .find_map(|key| node.get(key))
        .and_then(Node::items);
    for (index, condition) in switch.conditions.iter().enumerate() {
        let earlier = &switch.conditions[..index];
        if earlier.iter().any(|other| other.test == condition.test) {
            let place = list.and_then(|list| list.get(index)).unwrap_or(node);
            let message =
                "the condition never decides: an earlier one of this state is the same".to_owned();
            subject.found(
                &CONSTANT_CONDITION,
                place,
                message,
                "remove it, or compare something else",
            );
        }
    }
}

fn guards(state: &State) -> impl Iterator<Item = ExprId> + '_ {
    state.next.iter().filter_map(|next| match next {
        Next::Transition(transition) => transition.guard,
        Next::Leave | Next::Skip | Next::End(_) => None,
    })
}

fn expressions(test: &Test, found: &mut Vec<ExprId>) {
    match test {
        Test::Holds(id) => found.push(*id),
        Test::All(tests) | Test::Any(tests) => {
            for test in tests {
                expressions(test, found);
            }
        }
        Test::Not(test) => expressions(test, found),
        // A condition that selects something depends on the data.
        Test::Exists(_) | Test::Compare { .. } => {}
    }
}

/// The value of a jq condition that doesn't depend on data: literals with operators between them, or a comparison with
/// equal sides.
fn constant(language: Language, text: &str) -> Option<bool> {
    if language != Language::Jq {
        return None;
    }
    if let Some(value) = same_sides(text) {
        return Some(value);
    }
    if !only_literals(text) {
        return None;
    }
    let program = Program::jq(text, &[]).ok()?;
    program
        .one(&Data::NULL, &[], &Env::default())
        .ok()??
        .as_bool()
}

fn same_sides(text: &str) -> Option<bool> {
    for (operator, value) in [("==", true), ("!=", false)] {
        let mut sides = text.split(operator);
        let (Some(left), Some(right), None) = (sides.next(), sides.next(), sides.next()) else {
            continue;
        };
        let (left, right) = (left.trim(), right.trim());
        let is_path =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$' | '[' | ']' | '"');
        if left == right && left.starts_with(['.', '$']) && left.chars().all(is_path) {
            return Some(value);
        }
    }
    None
}

/// Numbers, texts without interpolation, `true`, `false`, `null`, and operators between them.
fn only_literals(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => {
                let Some(end) = rest[1..].find(['"', '\\']) else {
                    return false;
                };
                if rest.as_bytes()[end + 1] == b'\\' {
                    return false;
                }
                end + 2
            }
            '=' | '!' | '<' | '>' | '(' | ')' | '+' | '-' | '*' | '/' | '|' => 1,
            c if c.is_ascii_alphanumeric() => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
                let word = &rest[..end.unwrap_or(rest.len())];
                let is_known = matches!(word, "true" | "false" | "null" | "and" | "or" | "not");
                if !is_known && word.parse::<f64>().is_err() {
                    return false;
                }
                word.len()
            }
            _ => return false,
        };
        rest = rest[length..].trim_start();
    }
    !text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants() {
        for (text, value) in [
            ("true", Some(true)),
            ("1 == 2", Some(false)),
            ("(1 < 2) and true", Some(true)),
            ("true | not", Some(false)),
            ("\"a\" == \"a\"", Some(true)),
            (".a == .a", Some(true)),
            (".a[0].b != .a[0].b", Some(false)),
            (".a", None),
            (".a == .b", None),
            ("now > 0", None),
            ("\"\\(.a)\" == \"1\"", None),
            ("input", None),
            ("1", None),
            (".a == .a and .b", None),
            ("", None),
        ] {
            assert_eq!(constant(Language::Jq, text), value, "{text}");
        }
        assert_eq!(constant(Language::JsonPath, "true"), None);
    }
}
