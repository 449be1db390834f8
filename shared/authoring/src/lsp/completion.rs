//! What may stand where somebody types.
//!
//! The reader itself says which properties an object has and which words a property takes: a
//! stand-in is put where the cursor is, and the reader's finding about it names them. So what is
//! offered is what is accepted, in each edition.

use serde_json::{Value, json};
use swirl_spec::codes;
use swirl_spec::diagnostic::Diagnostic;
use swirl_spec::resource::Resources;
use swirl_spec::{Options, read};

use super::analysis::Analysis;
use super::names::referred;
use super::properties;
use super::text::{Position, Text};

/// Like no word of the language, so that no finding suggests another one.
const STAND_IN: &str = "zzqqxxkkww";

pub fn complete(
    text: &Text,
    analysis: &Analysis,
    at: Position,
    resources: &dyn Resources,
) -> Value {
    let line = text.line(at.line);
    let before = text.before(at);
    match value_of(before) {
        Some(key) => {
            let names = referred(key).map(|kind| analysis.names.declared(kind));
            match names.filter(|names| !names.is_empty()) {
                Some(names) => items(names.into_iter().map(str::to_owned).collect(), 18),
                None => items(words(text, at, before, line, resources), 12),
            }
        }
        None => items(keys(text, at, before, resources), 10),
    }
}

fn items(labels: Vec<String>, kind: u8) -> Value {
    let rows = labels.into_iter().map(|label| {
        let about = properties::about(&label).filter(|_| kind == 10);
        let insert = match kind {
            10 => format!("{label}: "),
            _ => label.clone(),
        };
        json!({"label": label, "kind": kind, "insertText": insert, "documentation": about})
    });
    rows.collect()
}

/// The property whose value is being typed, where one is.
fn value_of(before: &str) -> Option<&str> {
    let start = before.rfind(['{', ',']).map_or(0, |at| at + 1);
    let part = before[start..]
        .trim_start()
        .trim_start_matches("- ")
        .trim_start();
    let (key, _) = part.split_once(':')?;
    let key = key.trim().trim_matches(['"', '\'']);
    (!key.is_empty()).then_some(key)
}

/// The properties that the object at the cursor may have.
fn keys(text: &Text, at: Position, before: &str, resources: &dyn Resources) -> Vec<String> {
    let typed = before.trim_start().trim_start_matches("- ").trim_start();
    let inside_braces = typed.contains(['{', ',']);
    if !inside_braces && before.len() == typed.len() {
        return properties::OF_DEFINITION.map(str::to_owned).to_vec();
    }
    let kept = match inside_braces {
        true => &before[..before.rfind(['{', ',']).map_or(0, |at| at + 1)],
        false => &before[..before.len() - typed.len()],
    };
    let line = match inside_braces {
        true => format!("{kept} {STAND_IN}: 0{}", rest_of_braces(text, at)),
        false => format!("{kept}{STAND_IN}: 0"),
    };
    let document = with_line(text, at.line, &line);
    let reading = read(document.as_bytes(), resources, &Options::default());
    let is_it = |finding: &&Diagnostic| {
        finding.code == codes::UNKNOWN_PROPERTY && finding.message.contains(STAND_IN)
    };
    let finding = reading.diagnostics.iter().find(is_it);
    finding
        .and_then(|finding| finding.hint.as_deref())
        .map(quoted)
        .unwrap_or_default()
}

/// What stands behind the cursor in an object in braces.
fn rest_of_braces(text: &Text, at: Position) -> &str {
    let line = text.line(at.line);
    let rest = &line[text.before(at).len()..];
    rest.find([',', '}']).map_or("}", |end| &rest[end..])
}

/// The words that the property at the cursor takes.
fn words(
    text: &Text,
    at: Position,
    before: &str,
    line: &str,
    resources: &dyn Resources,
) -> Vec<String> {
    let Some(colon) = before.rfind(':') else {
        return Vec::new();
    };
    let rest = &line[before.len()..];
    let rest = rest.find([',', '}']).map_or("", |end| &rest[end..]);
    let document = with_line(
        text,
        at.line,
        &format!("{}: {STAND_IN}{rest}", &before[..colon]),
    );
    let reading = read(document.as_bytes(), resources, &Options::default());
    let is_it = |finding: &&Diagnostic| {
        let said = |text: &str| text.contains(STAND_IN);
        finding.code == codes::UNKNOWN_VALUE && said(&finding.message)
    };
    let finding = reading.diagnostics.iter().find(is_it);
    finding
        .and_then(|finding| finding.hint.as_deref())
        .map(quoted)
        .unwrap_or_default()
}

fn with_line(text: &Text, line: usize, new: &str) -> String {
    let mut document = String::with_capacity(text.as_str().len() + new.len());
    for (index, old) in text.as_str().split('\n').enumerate() {
        if index > 0 {
            document.push('\n');
        }
        document.push_str(if index == line { new } else { old });
    }
    document
}

/// The words in quotes of a sentence.
fn quoted(sentence: &str) -> Vec<String> {
    let parts = sentence.split('\'').skip(1).step_by(2);
    parts
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_keys() {
        for (before, key) in [
            ("  transition: ", Some("transition")),
            ("  - {name: A, type: in", Some("type")),
            ("  - functionRef: \"f", Some("functionRef")),
            ("  - {name: A, ty", None),
            ("  tr", None),
            ("", None),
        ] {
            assert_eq!(value_of(before), key, "{before}");
        }
    }
}
