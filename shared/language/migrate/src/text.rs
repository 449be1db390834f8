//! Documents as text.

use swirl_model::Data;

/// The format of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Json,
}

/// In YAML, the notes are comments above the document.
pub(super) fn write(document: &Data, format: Format, edition: &str, notes: &[String]) -> String {
    if format == Format::Json {
        let value = serde_json::Value::from(document);
        return format!("{value:#}\n");
    }
    let mut text = format!("# Migrated from edition {edition}.\n");
    for note in notes {
        text.push_str(&format!("# - {}\n", note.replace('\n', " ")));
    }
    members(document, 0, &mut text);
    text
}

/// An object as YAML, with one member per line.
pub fn yaml(document: &Data) -> String {
    let mut text = String::new();
    members(document, 0, &mut text);
    text
}

/// The members of an object, one per line. For an item of a list, the caller writes the indentation of the first line.
fn members(data: &Data, indent: usize, text: &mut String) {
    for (at, (key, value)) in data
        .as_object()
        .into_iter()
        .flat_map(|all| all.iter())
        .enumerate()
    {
        if at > 0 || indent == 0 || text.ends_with('\n') {
            text.push_str(&" ".repeat(indent));
        }
        text.push_str(&scalar(&Data(key.clone())));
        text.push(':');
        below(&Data(value.clone()), indent, text);
    }
}

/// A value after its key.
fn below(value: &Data, indent: usize, text: &mut String) {
    match (
        value.as_object().map(|all| !all.is_empty()),
        value.as_array(),
    ) {
        (Some(true), _) => {
            text.push('\n');
            members(value, indent + 2, text);
        }
        (_, Some(items)) if !items.is_empty() => {
            text.push('\n');
            list(
                items.iter().map(|item| Data(item.clone())),
                indent + 2,
                text,
            );
        }
        _ => {
            text.push(' ');
            match value.as_str().filter(|value| is_block(value)) {
                Some(value) => block(value, indent + 2, text),
                None => text.push_str(&scalar(value)),
            }
            text.push('\n');
        }
    }
}

/// Whether a text of several lines can stand as it is.
fn is_block(text: &str) -> bool {
    let plain =
        |line: &str| !line.is_empty() && line.trim() == line && !line.chars().any(is_unprinted);
    text.contains('\n') && text.split('\n').all(plain)
}

fn block(value: &str, indent: usize, text: &mut String) {
    text.push_str("|-");
    for line in value.split('\n') {
        text.push('\n');
        text.push_str(&" ".repeat(indent));
        text.push_str(line);
    }
}

fn list(items: impl Iterator<Item = Data>, indent: usize, text: &mut String) {
    for item in items {
        text.push_str(&" ".repeat(indent));
        text.push('-');
        if item.as_object().is_some_and(|all| !all.is_empty()) {
            text.push(' ');
            members(&item, indent + 2, text);
        } else {
            below(&item, indent, text);
        }
    }
}

/// A text that can be read only as this text is written without quotes; everything else is written as in JSON.
fn scalar(value: &Data) -> String {
    match value.as_str() {
        Some(text) if is_plain(text) => text.to_owned(),
        Some(text) if is_quotable(text) => format!("'{}'", text.replace('\'', "''")),
        _ => escaped(&value.to_string()),
    }
}

/// JSON in which nothing stands for itself that YAML doesn't print.
fn escaped(json: &str) -> String {
    let escape = |c: char| match is_unprinted(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    json.chars().map(escape).collect()
}

fn is_unprinted(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Whether it is easier to read in single quotes.
fn is_quotable(text: &str) -> bool {
    text.contains('"') && !text.chars().any(is_unprinted)
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "y"];
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && !text.eq_ignore_ascii_case("n")
}
