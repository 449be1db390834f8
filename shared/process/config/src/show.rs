//! Shows the effective configuration with the source of each value. Secrets are masked.

use serde_json::{Value as Json, json};

use super::entry::GivenSetting;
use super::kind::{Value, ValueKind, show_bytes, show_ms};
use super::load::Loaded;
use super::problem::Problem;
use super::secret::{MASK, mask_url};

/// The text form: TOML with comments.
pub fn text(loaded: &Loaded) -> String {
    let lines: Vec<(String, String)> = loaded
        .entries
        .iter()
        .filter_map(|entry| {
            let value = value(entry)?;
            let line = format!("{} = {}", entry.setting.key, toml(&value));
            Some((line, entry.place.to_string()))
        })
        .collect();
    let width = lines.iter().map(|(line, _)| line.chars().count());
    let width = width.filter(|width| *width <= 60).max().unwrap_or(0);
    let mut text = String::new();
    for (line, place) in lines {
        text.push_str(&format!("{line:<width$}  # {place}\n"));
    }
    text
}

/// The JSON form.
pub fn json(loaded: &Loaded) -> Json {
    let settings: serde_json::Map<String, Json> = loaded
        .entries
        .iter()
        .map(|entry| {
            let value = value(entry).unwrap_or(Json::Null);
            let from = entry.place.to_string();
            let shown = json!({"value": value, "from": from});
            (entry.setting.key.to_owned(), shown)
        })
        .collect();
    json!({
        "valid": true,
        "file": loaded.file,
        "settings": settings,
        "warnings": problems(&loaded.warnings),
    })
}

/// Problems or warnings as JSON.
pub fn problems(problems: &[Problem]) -> Json {
    problems
        .iter()
        .map(|problem| {
            json!({
                "place": problem.place.to_string(),
                "message": problem.message,
                "hint": problem.hint,
            })
        })
        .collect()
}

fn value(entry: &GivenSetting) -> Option<Json> {
    let value = entry.value.as_ref()?;
    let setting = entry.setting;
    if setting.secret {
        return Some(match value {
            Value::Map(entries) => entries.keys().map(|key| (key.clone(), MASK)).collect(),
            _ => MASK.into(),
        });
    }
    Some(match (setting.kind, value) {
        (ValueKind::Url(_), Value::Text(url)) => mask_url(url).into(),
        (ValueKind::List(ValueKind::Url(_)), Value::List(urls)) => {
            urls.iter().map(|url| mask_url(url)).collect()
        }
        (ValueKind::Duration { .. }, Value::Number(ms)) => show_ms(*ms).into(),
        (ValueKind::Bytes, Value::Number(bytes)) => show_bytes(*bytes).into(),
        (_, Value::Text(text)) => text.as_str().into(),
        (_, Value::Flag(flag)) => (*flag).into(),
        (_, Value::Number(number)) => (*number).into(),
        (_, Value::Ratio(ratio)) => (*ratio).into(),
        (_, Value::List(items)) => items.iter().map(String::as_str).collect(),
        (_, Value::Map(entries)) => entries
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str()))
            .collect(),
        (_, Value::Tokens(tokens)) => tokens
            .iter()
            .map(|token| {
                json!({
                    "name": token.name,
                    "hash": MASK,
                    "roles": token.roles,
                    "namespaces": token.namespaces,
                    "expires": token.expires,
                })
            })
            .collect(),
    })
}

/// JSON values in TOML notation, on one line.
pub fn toml(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(toml).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| format!("{} = {}", toml_key(key), toml(value)))
                .collect();
            match members.is_empty() {
                true => "{}".to_owned(),
                false => format!("{{ {} }}", members.join(", ")),
            }
        }
        // JSON texts are valid TOML texts, because TOML has all escapes that the JSON writer uses.
        other => other.to_string(),
    }
}

fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !key.is_empty() && key.chars().all(bare) {
        true => key.to_owned(),
        false => Json::from(key).to_string(),
    }
}
