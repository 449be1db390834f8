//! Quick fixes: the hints of findings as edits.

use serde_json::{Value, json};
use swirl_documents::codes;

use super::analysis::Finding;
use super::names::{NameKind, Names};
use super::scalar::Scalar;
use super::text::{Position, Range, Text};

/// An edit, with its title in the editor's menu.
struct Fix {
    title: String,
    range: Range,
    new_text: String,
    /// The finding has only this fix.
    is_preferred: bool,
}

/// The fixes of one finding.
pub fn fixes(finding: &Finding, text: &Text, names: &Names, uri: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let hint = finding.hint.as_deref().unwrap_or_default();
    all.extend(replaced(finding, hint, text));
    all.extend(quoted(finding, hint, text));
    all.extend(added(finding, hint, text, names));
    all.into_iter().map(|fix| fix.to_json(uri)).collect()
}

impl Fix {
    fn to_json(&self, uri: &str) -> Value {
        let edit = json!({"range": self.range, "newText": self.new_text});
        json!({
            "title": self.title,
            "kind": "quickfix",
            "isPreferred": self.is_preferred,
            "edit": {"changes": {uri: [edit]}},
        })
    }
}

/// Replaces the text of a finding with the text that its hint names.
fn replaced(finding: &Finding, hint: &str, text: &Text) -> Option<Fix> {
    let new = meant(hint)?;
    let range = finding.range(text);
    let new_text = match character_at(text, range.start) {
        Some(quote @ ('"' | '\'')) => format!("{quote}{new}{quote}"),
        _ => new.to_owned(),
    };
    Some(Fix {
        title: format!("write '{new}'"),
        range,
        new_text,
        is_preferred: true,
    })
}

/// Adds or removes quotes or expression delimiters around a value.
fn quoted(finding: &Finding, hint: &str, text: &Text) -> Option<Fix> {
    let start = text.offset(finding.line, finding.column);
    let whole = text.word_at(finding.line, finding.column);
    let written = text.as_str().get(start..text.byte(whole.end))?;
    let value = match written.starts_with(['"', '\'']) {
        true => Scalar::at(text.as_str(), start).value,
        false => written.to_owned(),
    };
    let (title, new_text) = if finding.message.contains("(put it in quotes)") {
        (format!("put {value} in quotes"), in_quotes(&value, text))
    } else if hint.contains("put a literal text into quotes") {
        let literal = format!("\"{value}\"");
        (
            format!("write the text {literal}"),
            in_quotes(&literal, text),
        )
    } else if hint == "write true without quotes" || hint == "write false without quotes" {
        (format!("write {value} without quotes"), value)
    } else if hint == "put it into '${ }' if it is one" {
        let expression = format!("${{ {value} }}");
        (format!("write {expression}"), in_quotes(&expression, text))
    } else {
        return None;
    };
    Some(Fix {
        title,
        range: whole,
        new_text,
        is_preferred: false,
    })
}

/// Inserts a missing property with an initial value.
fn added(finding: &Finding, hint: &str, text: &Text, names: &Names) -> Vec<Fix> {
    const ADDING: [&str; 4] = [
        codes::MISSING_PROPERTY.as_str(),
        codes::SWITCH_WITHOUT_DEFAULT.as_str(),
        "retry-without-delay",
        "wait-without-timeout",
    ];
    if !ADDING.contains(&finding.code) {
        return Vec::new();
    }
    let Some(rest) = hint.strip_prefix("add ") else {
        return Vec::new();
    };
    let all = rest.starts_with("one of ");
    let words = rest.split('\'').skip(1).step_by(2);
    let count = if all { usize::MAX } else { 1 };
    let one = |word: &str| {
        let (property, value) = match word.split_once(": ") {
            Some((property, value)) => (property, value.to_owned()),
            None => (word, beginning(word, names)?),
        };
        inserted(finding, property, &value, text)
    };
    words.take(count).filter_map(one).collect()
}

/// An initial value, in a syntax that is valid in both YAML and JSON.
fn beginning(property: &str, names: &Names) -> Option<String> {
    let value = match property {
        "end" => json!(true),
        "transition" | "nextState" | "next-state" => {
            let states = names.declared(NameKind::State);
            json!(states.last()?)
        }
        "defaultCondition" | "default" => json!({"end": true}),
        "delay" => json!("PT1S"),
        "timeouts" => json!({"eventTimeout": "P1D"}),
        "duration" | "timeDelay" => json!("PT1M"),
        "maxAttempts" => json!(3),
        "version" => json!("1.0.0"),
        "specVersion" => json!("0.8"),
        "kind" => json!("default"),
        "data" | "arguments" => json!({}),
        "actions" | "states" => json!([]),
        _ => return None,
    };
    Some(value.to_string())
}

/// Inserts a property at the beginning of the object at the finding's location.
fn inserted(finding: &Finding, property: &str, value: &str, text: &Text) -> Option<Fix> {
    let start = text.offset(finding.line, finding.column);
    let at = text.position(start);
    let rest = text.as_str().get(start..)?;
    let (place, new_text) = match rest.strip_prefix('{') {
        Some(inside) => {
            let is_empty = inside.trim_start().starts_with('}');
            let comma = if is_empty { "" } else { ", " };
            let key = if is_json(text) {
                format!("\"{property}\"")
            } else {
                property.to_owned()
            };
            (text.position(start + 1), format!("{key}: {value}{comma}"))
        }
        None if is_json(text) => return None,
        None => {
            let indent = " ".repeat(finding.column - 1);
            (at, format!("{property}: {value}\n{indent}"))
        }
    };
    Some(Fix {
        title: format!("add '{property}'"),
        range: Range {
            start: place,
            end: place,
        },
        new_text,
        is_preferred: false,
    })
}

fn is_json(text: &Text) -> bool {
    text.as_str().trim_start().starts_with('{')
}

fn in_quotes(value: &str, text: &Text) -> String {
    match is_json(text) || value.contains('\'') {
        true => json!(value).to_string(),
        false => format!("'{value}'"),
    }
}

fn character_at(text: &Text, at: Position) -> Option<char> {
    text.line(at.line)[text.before(at).len()..].chars().next()
}

/// The replacement that a hint such as `did you mean 'x'?` or `write 'x'` suggests.
fn meant(hint: &str) -> Option<&str> {
    let rest = hint
        .strip_prefix("did you mean '")
        .or_else(|| hint.strip_prefix("write '"))?;
    let (word, rest) = rest.split_once('\'')?;
    let is_whole = matches!(rest, "" | "?") || rest.starts_with(": case matters");
    (is_whole && !word.contains(['\n', '{', ':'])).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn hints_become_edits() {
        for (hint, word) in [
            ("did you mean 'transition'?", Some("transition")),
            ("write 'inject': case matters", Some("inject")),
            ("write 'PT15M'", Some("PT15M")),
            ("write 'specVersion: \"0.8\"'", None),
            ("did you mean 'x'? else put it into 'metadata'", None),
            ("add one of 'transition' or 'end'", None),
        ] {
            assert_eq!(meant(hint), word, "{hint}");
        }
    }
}
