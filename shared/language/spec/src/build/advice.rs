//! Hints for values of a wrong type, if the value shows what its author meant.

use std::sync::Arc;

use swirl_documents::source::{Node, NodeKind};

use crate::time;

/// What a flag must be.
pub(crate) const FLAG: &str = "true or false";

/// A hint, and the names or words that may stand in the place of what is wrong, if they are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Advice {
    pub(super) hint: Option<String>,
    pub(super) words: Arc<Vec<String>>,
}

impl Advice {
    pub(crate) fn among(words: &[&str], hint: impl Into<Option<String>>) -> Advice {
        Advice {
            hint: hint.into(),
            words: Arc::new(words.iter().map(|word| (*word).to_owned()).collect()),
        }
    }
}

impl From<String> for Advice {
    fn from(hint: String) -> Advice {
        Advice::among(&[], hint)
    }
}

impl From<Option<String>> for Advice {
    fn from(hint: Option<String>) -> Advice {
        Advice::among(&[], hint)
    }
}

/// The number of characters of a value that a hint repeats.
const REPEATED_MAX: usize = 40;

/// The hint for a `node` that must be `wanted`, in the words of the message.
pub(super) fn for_type(node: &Node, wanted: &str) -> Option<String> {
    if wanted == "a list" {
        return list(node);
    }
    let duration = wanted.contains("duration") && node.is_number();
    if let Some(text) = duration.then(|| time::duration::suggestion(node.raw())) {
        return text.map(|text| format!("write '{text}', if the number means seconds"));
    }
    if let (true, Some(value)) = (wanted.contains("true"), node.as_str().and_then(answer)) {
        return Some(format!(
            "write {value} without quotes: YAML reads 'yes', 'no', 'on' and 'off' as strings"
        ));
    }
    let is_name = ["a string", "'s name", "'s id"]
        .iter()
        .any(|word| wanted.contains(word));
    let (text, around) = is_name.then(|| only_text(node)).flatten()?;
    Some(format!("write '{text}' alone, without the {around}"))
}

/// The boolean that a text spells, in any case; some programs write `"True"`.
pub(crate) fn flag(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        return Some(true);
    }
    text.eq_ignore_ascii_case("false").then_some(false)
}

/// A text that YAML 1.1 would read as a boolean.
fn answer(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 2]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is_one_of(["yes", "on"]) {
        return Some(true);
    }
    is_one_of(["no", "off"]).then_some(false)
}

fn list(node: &Node) -> Option<String> {
    match node.kind() {
        NodeKind::Object => {
            Some("write a list: '[...]', or in YAML entries that begin with '- '".to_owned())
        }
        NodeKind::String => {
            let text = short(node)?;
            Some(format!("a list of one is '[{text}]'"))
        }
        _ => None,
    }
}

/// The text in a list or an object that has nothing else.
fn only_text(node: &Node) -> Option<(&str, &'static str)> {
    match (node.items(), node.members()) {
        (Some([item]), _) => Some((short(item)?, "list")),
        (_, Some([member])) => Some((short(member.value())?, "object")),
        _ => None,
    }
}

fn short(node: &Node) -> Option<&str> {
    let is_short = |text: &&str| !text.is_empty() && text.chars().count() <= REPEATED_MAX;
    node.as_str().filter(is_short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::reader::read;
    use crate::resource::MapResources;

    /// The hints for a document whose only state is `state`.
    fn hints(state: &str) -> Vec<String> {
        let text = format!(
            "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nevents: [{{name: e, type: t}}]\nstates: [{state}]\n"
        );
        let reading = read(
            text.as_bytes(),
            &MapResources::default(),
            &Options::default(),
        );
        let findings = reading.diagnostics.into_iter();
        findings.filter_map(|finding| finding.hint).collect()
    }

    #[test]
    fn a_value_of_a_wrong_type_has_a_hint() {
        for (state, hint) in [
            (
                "{name: A, type: operation, actions: {functionRef: f}, end: true}",
                "write a list: '[...]', or in YAML entries that begin with '- '",
            ),
            (
                "{name: A, type: event, onEvents: [{eventRefs: e}], end: true}",
                "a list of one is '[e]'",
            ),
            (
                "{name: A, type: sleep, duration: 90, end: true}",
                "write 'PT90S', if the number means seconds",
            ),
            (
                "{name: A, type: inject, data: {}, end: yes}",
                "write true without quotes: YAML reads 'yes', 'no', 'on' and 'off' as strings",
            ),
            (
                "{name: A, type: event, exclusive: off, onEvents: [{eventRefs: [e]}], end: true}",
                "write false without quotes: YAML reads 'yes', 'no', 'on' and 'off' as strings",
            ),
            (
                "{name: A, type: switch, eventConditions: [{eventRef: [e], end: true}]}",
                "write 'e' alone, without the list",
            ),
            (
                "{name: A, type: operation, actions: [{subFlowRef: c, retryRef: {refName: r}}], end: true}",
                "write 'r' alone, without the object",
            ),
            (
                "{name: A, type: operation, actions: [{subFlowRef: [c]}], end: true}",
                "write 'c' alone, without the list",
            ),
            (
                "{name: A, type: inject, data: {}, transition: [B]}",
                "write 'B' alone, without the list",
            ),
            (
                "{name: A, type: inject, data: {}, stateDataFilter: .x, end: true}",
                "write an object with 'input' or 'output'",
            ),
            (
                "{name: A, type: operation, actions: [{workflowId: c}], end: true}",
                "write 'subFlowRef: {workflowId: ...}'",
            ),
            (
                "{name: A, type: sleep, duration: '${ .d }', end: true}",
                "write the duration itself: in this edition it cannot be an expression",
            ),
        ] {
            let hints = hints(state);
            assert!(
                hints.iter().any(|found| found == hint),
                "{state}: {hints:?}"
            );
        }
    }

    /// A server may be able to read what the client that deploys a definition is not.
    #[test]
    fn nothing_of_a_fetched_document_is_quoted() {
        let text = "id: t\nversion: 1.0.0\nspecVersion: '0.8'\nsecrets: http://h/env\nfunctions: HTTPS://h/list\n\
                    dataInputSchema: http://h/schema\nerrors: http://h/broken\n\
                    states: [{name: A, type: inject, data: {}, end: true}]\n";
        let mut documents = MapResources::default();
        documents.insert("http://h/env", "DB_PASSWORD=hunter2secret");
        let list = "- {name: f, hunter2secret: 1, operation: [hunter2secret], type: hunter2secret}";
        documents.insert("HTTPS://h/list", list);
        documents.insert("http://h/schema", "{\"type\": \"hunter2secret\"}");
        documents.insert("http://h/broken", "{hunter2secret");
        let reading = read(text.as_bytes(), &documents, &Options::default());
        let findings: Vec<String> = reading
            .diagnostics
            .into_iter()
            .map(|finding| format!("{} = {:?}", finding.message, finding.hint))
            .collect();
        let all = findings.join("\n");
        assert!(!all.contains("hunter2"), "{all}");
        for place in [
            "in 'http://h/env', line 1: A value has a different type",
            "in 'HTTPS://h/list', line 1: ",
            "'http://h/schema' is not a valid JSON Schema",
            "'http://h/broken' is not valid JSON or YAML",
        ] {
            assert!(all.contains(place), "{place}: {all}");
        }
    }

    #[test]
    fn flags_in_any_case() {
        assert_eq!(flag("True"), Some(true));
        assert_eq!(flag("FALSE"), Some(false));
        assert_eq!(flag("yes"), None);
    }
}
