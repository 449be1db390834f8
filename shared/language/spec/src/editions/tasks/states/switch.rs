//! Switch: the transition depends on data, or on the first event.
//!
//! The tasks draft lists conditions over data or over events. The release of 0.1 has choices, each with one condition
//! or several (`and`, `or`, `not`).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{
    Comparison, Condition, EventCondition, Next, StateKind, Switch, SwitchEvents, Test,
};

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::build::expression::VisibleVars;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "switch",
    properties: &[
        "dataConditions",
        "choices",
        "conditions",
        "eventConditions",
        "eventTimeout",
        "timeout",
        "default",
        "defaultCondition",
    ],
    has_next: false,
    retries: false,
    read,
};

/// The operators of both texts in lower case, as they are compared.
const OPERATORS: [&str; 16] = [
    "exists",
    "notexists",
    "null",
    "notnull",
    "equals",
    "notequals",
    "lessthan",
    "lessthanorequals",
    "lessthanequals",
    "greaterthan",
    "greaterthanorequals",
    "greaterthanequals",
    "matches",
    "notmatches",
    "custom",
    "isnull",
];

/// The properties that combine several conditions into one choice.
const JOINS: [&str; 3] = ["and", "or", "not"];

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    let what = format!("a switch {}", reader.variant.state);
    let (name, other) = reader.variant.conditions;
    let data = reader.named(obj, name, &[other, "conditions"]);
    let events = obj.get("eventConditions");
    let default = match reader.named(obj, "default", &["defaultCondition"]) {
        Some(node) => Some(default(reader, node)),
        None => {
            let message = format!(
                "{what} has no 'default': if nothing matches, it fails with 'NoMatchingCondition'"
            );
            let hint = "add 'default' with a transition".to_owned();
            reader.warn(obj.node, codes::SWITCH_WITHOUT_DEFAULT, message, hint);
            None
        }
    };
    let timeout = timeout(reader, obj, events.is_some());
    match (data, events) {
        (Some(data), Some(events)) => {
            reader.exclusive(obj, &what, &[name, "eventConditions"]);
            // Errors inside them are reported too.
            for item in data.items().unwrap_or_default() {
                on_data(reader, item);
            }
            for item in events.items().unwrap_or_default() {
                on_event(reader, item);
            }
            None
        }
        (None, None) => {
            let names: &[&str] = if name == "choices" {
                &["choices"]
            } else {
                &["dataConditions", "eventConditions"]
            };
            reader.missing(obj, &what, names);
            None
        }
        (Some(node), None) => {
            let items = reader.full_list(node, &format!("'{name}'"))?;
            let conditions: Vec<_> = items.iter().map(|item| on_data(reader, item)).collect();
            Some(StateKind::Switch(Switch {
                conditions: conditions.into_iter().collect::<Option<_>>()?,
                default: read_or_none(default)?,
            }))
        }
        (None, Some(node)) => {
            let items = reader.full_list(node, "'eventConditions'")?;
            let conditions: Vec<_> = items.iter().map(|item| on_event(reader, item)).collect();
            Some(StateKind::SwitchEvents(SwitchEvents {
                conditions: conditions.into_iter().collect::<Option<_>>()?,
                timeout,
                default: read_or_none(default)?,
            }))
        }
    }
}

/// `default`, which is a transition here. In the next editions the transition, or an end, is in it.
fn default(reader: &mut Reader<'_, '_>, node: &Node) -> Option<Next> {
    let (next, other) = reader.variant.next;
    let is_transition = [next, other].iter().any(|name| node.get(name).is_some());
    let holds = ["transition", "end"]
        .iter()
        .any(|name| node.get(name).is_some());
    if is_transition || !holds {
        return reader.transition(node).map(Next::Transition);
    }
    let message =
        "in other editions 'default' has a transition or an end in it; it is read as there";
    let hint = format!("write 'default: {{{next}: ...}}'");
    reader.warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
    let obj = reader.object(node, "'default'", &["transition", "end"])?;
    reader.next(obj)
}

/// `Some(None)`: it is absent. `None`: it could not be read.
fn read_or_none(default: Option<Option<Next>>) -> Option<Option<Next>> {
    match default {
        None => Some(None),
        Some(next) => next.map(Some),
    }
}

fn timeout(
    reader: &mut Reader<'_, '_>,
    obj: Obj<'_>,
    events: bool,
) -> Option<swirl_model::workflow::Period> {
    let node = reader.named(obj, "eventTimeout", &["timeout"]);
    match (node, events) {
        (Some(node), true) => reader.positive(node, "'eventTimeout'"),
        (Some(node), false) => {
            reader.ignored(node, "eventTimeout", "the switch waits for no event");
            None
        }
        (None, true) => {
            let message = "a switch over events has no 'eventTimeout': it may wait forever";
            let hint = "add 'eventTimeout', such as 'PT1H'".to_owned();
            reader.warn(obj.node, codes::MISSING_PROPERTY, message, hint);
            None
        }
        (None, false) => None,
    }
}

fn on_event(reader: &mut Reader<'_, '_>, node: &Node) -> Option<EventCondition> {
    const WHAT: &str = "an event condition";
    let known = &[
        "eventRef",
        "transition",
        "end",
        "eventDataFilter",
        "metadata",
    ];
    let obj = reader.object(node, WHAT, known)?;
    reader.metadata(obj);
    let filter = reader.event_filter(obj);
    let event = match obj.get("eventRef") {
        Some(node) => reader.event_ref(node, "'eventRef'"),
        None => {
            reader.missing(obj, WHAT, &["eventRef"]);
            None
        }
    };
    let next = reader.way(obj, WHAT);
    Some(EventCondition {
        name: None,
        event: event?,
        filter,
        next: next?,
    })
}

fn on_data(reader: &mut Reader<'_, '_>, node: &Node) -> Option<Condition> {
    const WHAT: &str = "a condition";
    let known = &[
        "path",
        "value",
        "operator",
        "transition",
        "end",
        "metadata",
        "and",
        "or",
        "not",
    ];
    let obj = reader.object(node, WHAT, known)?;
    reader.metadata(obj);
    let next = reader.way(obj, WHAT);
    let joins: Vec<&str> = JOINS.into_iter().filter(|name| obj.has(name)).collect();
    let test = match joins.as_slice() {
        [] => comparison(reader, obj),
        [join] => {
            for name in ["path", "value", "operator"] {
                if let Some(node) = obj.get(name) {
                    let why = format!("the conditions are under '{join}'");
                    reader.ignored(node, name, &why);
                }
            }
            joined(reader, obj.get(join)?, join)
        }
        several => {
            reader.exclusive(obj, WHAT, several);
            None
        }
    };
    Some(Condition {
        name: None,
        test: test?,
        next: next?,
    })
}

/// `and`, `or` and `not`, with one condition or a list of them. `not` holds if no condition in its list does
/// (docs/language.md#decision-39).
fn joined(reader: &mut Reader<'_, '_>, node: &Node, join: &str) -> Option<Test> {
    let items = match node.items() {
        Some(items) => {
            reader.full_list(node, &format!("'{join}'"));
            items
        }
        None => std::slice::from_ref(node),
    };
    let tests: Vec<_> = items.iter().map(|item| inner(reader, item)).collect();
    let tests: Vec<Test> = tests.into_iter().collect::<Option<_>>()?;
    Some(match join {
        "and" => Test::All(tests),
        "or" => Test::Any(tests),
        _ => Test::Not(Box::new(Test::Any(tests))),
    })
}

fn inner(reader: &mut Reader<'_, '_>, node: &Node) -> Option<Test> {
    let known = &["path", "value", "operator", "and", "or", "not"];
    let obj = reader.object(node, "a condition", known)?;
    match JOINS.into_iter().find(|name| obj.has(name)) {
        Some(join) => joined(reader, obj.get(join)?, join),
        None => comparison(reader, obj),
    }
}

fn comparison(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Option<Test> {
    for name in ["path", "operator"] {
        if !obj.has(name) {
            reader.missing(obj, "a condition", &[name]);
        }
    }
    let path = reader.opt_expression(obj, "path", VisibleVars::PLAIN);
    let operator = reader.word(obj, "operator", &OPERATORS);
    let value = obj.get("value");
    let needed = !matches!(
        operator,
        None | Some("exists" | "notexists" | "null" | "isnull" | "notnull" | "custom")
    );
    let absent =
        operator == Some("exists") && reader.variant.exists_false && value.is_some_and(is_false);
    match value {
        None if needed => reader.missing(obj, "a condition", &["value"]),
        Some(node) if needed && (node.members().is_some() || node.items().is_some()) => {
            reader.wrong_type(node, "'value'", "a string, a number, true or false");
            return None;
        }
        Some(node) if !needed && !absent && is_false(node) => {
            let word = operator.unwrap_or_default();
            let why = format!("'{word}' doesn't use it");
            reader.ignored(node, "value", &why);
        }
        _ => {}
    }
    let (path, operator) = (path?, operator?);
    if needed {
        value?;
    }
    let data = value.map(Node::to_data).unwrap_or_default();
    let compare = |operator, value: &Data| Test::Compare {
        path,
        operator,
        value: value.clone(),
        as_text: false,
    };
    let not = |test| Test::Not(Box::new(test));
    Some(match operator {
        "exists" if absent => not(compare(Comparison::Present, &Data::NULL)),
        "exists" => compare(Comparison::Present, &Data::NULL),
        "notexists" => not(compare(Comparison::Present, &Data::NULL)),
        "null" | "isnull" => compare(Comparison::Null, &Data::NULL),
        "notnull" => Test::All(vec![
            compare(Comparison::Present, &Data::NULL),
            not(compare(Comparison::Null, &Data::NULL)),
        ]),
        "equals" => compare(Comparison::Equal, &data),
        "notequals" => not(compare(Comparison::Equal, &data)),
        "lessthan" => compare(Comparison::Less, &data),
        "lessthanorequals" | "lessthanequals" => compare(Comparison::LessOrEqual, &data),
        "greaterthan" => compare(Comparison::Greater, &data),
        "greaterthanorequals" | "greaterthanequals" => compare(Comparison::GreaterOrEqual, &data),
        "matches" | "notmatches" => {
            let node = value?;
            pattern(reader, node)?;
            let matches = compare(Comparison::Matches, &data);
            if operator == "matches" {
                matches
            } else {
                not(matches)
            }
        }
        _ => {
            let node = obj.get("operator").unwrap_or(obj.node);
            let message =
                "the operator 'custom' depends on the runtime, and has no meaning in this one";
            let hint =
                "use one of the other operators, or an expression function before the switch";
            reader.error(node, codes::UNKNOWN_VALUE, message, hint.to_owned());
            return None;
        }
    })
}

fn is_false(node: &Node) -> bool {
    node.as_bool() == Some(false)
        || node
            .as_str()
            .is_some_and(|text| text.eq_ignore_ascii_case("false"))
}

/// A regular expression that compiles.
fn pattern(reader: &mut Reader<'_, '_>, node: &Node) -> Option<()> {
    let text = reader.string(node, "'value'")?;
    if let Err(why) = reader.check_pattern(node, &text) {
        let message = format!("'{text}' is not a valid regular expression: {why}");
        reader.error(node, codes::BAD_EXPRESSION, message, None);
        return None;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{StateKind, Test};

    use crate::editions::tasks::testing::{findings, reading};

    fn text(condition: &str) -> String {
        format!(
            "id: a\nname: a\nversion: 1.0.0\nschemaVersion: '0.1'\nstates:\n- {{name: A, type: SWITCH, start: {{kind: DEFAULT}}, choices: [{{{condition}, transition: {{nextState: Z}}}}], default: {{nextState: Z}}}}\n- {{name: Z, type: RELAY, end: {{kind: DEFAULT}}}}\n"
        )
    }

    fn test(condition: &str) -> Test {
        let reading = reading(&text(condition));
        let findings: Vec<_> = reading.diagnostics.iter().collect();
        let mut workflow = reading.workflow.unwrap_or_else(|| panic!("{findings:?}"));
        match workflow.states.swap_remove(0).kind {
            StateKind::Switch(mut switch) => switch.conditions.swap_remove(0).test,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn choices_of_several_conditions() {
        let one = "{path: $.a, value: '1', operator: Equals}";
        assert!(matches!(
            test("path: $.a, value: '1', operator: Equals"),
            Test::Compare { .. }
        ));
        assert!(
            matches!(test(&format!("and: [{one}, {one}]")), Test::All(list) if list.len() == 2)
        );
        assert!(matches!(test(&format!("or: [{one}, {one}]")), Test::Any(list) if list.len() == 2));
        assert!(matches!(test(&format!("not: {one}")), Test::Not(_)));
        let nested = test(&format!("and: [{{or: [{one}, {one}]}}, {{not: [{one}]}}]"));
        assert!(
            matches!(&nested, Test::All(list) if matches!(list[0], Test::Any(_)) && matches!(list[1], Test::Not(_)))
        );
    }

    #[test]
    fn ignored_operands_are_reported() {
        let of = |condition: &str| {
            findings(&format!(
                "tasks:\n- {{name: A, type: switch, start: {{kind: default}}, dataConditions: [{{{condition}, transition: {{nextTask: Z}}}}], default: {{nextTask: Z}}}}\n- {{name: Z, type: inject, end: {{kind: default}}}}\n"
            ))
        };
        assert_eq!(of("path: $.a, operator: exists"), "");
        assert_eq!(of("path: $.a, operator: exists, value: ''"), "");
        assert_eq!(
            of("path: $.a, operator: exists, value: 'false'"),
            "warning ignored-property /tasks/0/dataConditions/0/value 5"
        );
    }

    #[test]
    fn regular_expressions_have_limits() {
        let found = |count: usize, pattern: &str| {
            let one =
                |number| format!("{{path: $.a, value: '{pattern}{number}', operator: Matches}}");
            let all: Vec<String> = (0..count).map(one).collect();
            let reading = reading(&text(&format!("and: [{}]", all.join(", "))));
            let found = reading.diagnostics.iter();
            let found = found.map(|finding| (finding.pointer.clone(), finding.message.clone()));
            found.collect::<Vec<_>>()
        };
        let [(_, message)] = &found(1, r"\w{900}")[..] else {
            panic!("it isn't refused");
        };
        assert!(message.contains("bytes of memory"), "{message}");
        // Ten fit.
        let [(pointer, message)] = &found(30, r"\w{20}")[..] else {
            panic!("they aren't refused once");
        };
        assert!(pointer.ends_with("/value"), "{pointer}");
        assert!(message.contains("16 MiB"), "{message}");
        assert_eq!(found(10, r"\w{20}"), []);
    }
}
