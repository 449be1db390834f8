//! Hints for values of a wrong type, if the value shows what its author meant.

use crate::source::{Node, NodeKind};
use crate::time;

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
            "write {value} without quotes: YAML reads 'yes', 'no', 'on' and 'off' as texts"
        ));
    }
    let text = wanted.starts_with("a string").then(|| only_text(node));
    let text = text.flatten()?;
    Some(format!("write '{text}' alone, without the list"))
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

fn only_text(node: &Node) -> Option<&str> {
    match node.items()? {
        [item] => short(item),
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
                "write true without quotes: YAML reads 'yes', 'no', 'on' and 'off' as texts",
            ),
            (
                "{name: A, type: event, exclusive: off, onEvents: [{eventRefs: [e]}], end: true}",
                "write false without quotes: YAML reads 'yes', 'no', 'on' and 'off' as texts",
            ),
            (
                "{name: A, type: switch, eventConditions: [{eventRef: [e], end: true}]}",
                "write 'e' alone, without the list",
            ),
        ] {
            let hints = hints(state);
            assert!(
                hints.iter().any(|found| found == hint),
                "{state}: {hints:?}"
            );
        }
    }

    #[test]
    fn flags_in_any_case() {
        assert_eq!(flag("True"), Some(true));
        assert_eq!(flag("FALSE"), Some(false));
        assert_eq!(flag("yes"), None);
    }
}
