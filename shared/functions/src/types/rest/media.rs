//! Media types: how bodies are encoded and decoded, and which answers are requested.

use super::operation::BodyKind;

/// The encoding for a media type.
pub(crate) fn body_kind(media: &str) -> BodyKind {
    let media = media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match media.as_str() {
        "*/*" | "application/*" | "application/json" | "text/json" => BodyKind::Json,
        "application/x-www-form-urlencoded" => BodyKind::Form,
        "multipart/form-data" | "multipart/*" => BodyKind::Multipart,
        "application/xml"
        | "application/yaml"
        | "application/x-yaml"
        | "application/graphql"
        | "application/javascript"
        | "application/x-ndjson" => BodyKind::Text,
        other if other.ends_with("+json") => BodyKind::Json,
        other if other.ends_with("+xml") || other.ends_with("+yaml") => BodyKind::Text,
        other if other.starts_with("text/") => BodyKind::Text,
        _ => BodyKind::Binary,
    }
}

pub(crate) fn content_type(media: &str, kind: BodyKind) -> String {
    match (kind, media.contains('*')) {
        (BodyKind::Json, true) => "application/json".to_owned(),
        (BodyKind::Multipart, _) => "multipart/form-data".to_owned(),
        (BodyKind::Text, true) => "text/plain".to_owned(),
        (BodyKind::Binary, true) => "application/octet-stream".to_owned(),
        _ => media.to_owned(),
    }
}

/// JSON first, then the document's other types, then anything, because errors may have another type.
pub(crate) fn accept(types: &[String]) -> String {
    let mut accept: Vec<&str> = Vec::new();
    for wanted in [true, false] {
        for name in types {
            let is_json = body_kind(name) == BodyKind::Json;
            if is_json == wanted && name != "*/*" && !accept.contains(&name.as_str()) {
                accept.push(name);
            }
        }
    }
    if accept.is_empty() {
        accept.push("application/json");
    }
    let ranked: Vec<String> = accept
        .iter()
        .enumerate()
        .map(|(index, name)| {
            if index == 0 {
                (*name).to_owned()
            } else {
                format!("{name};q=0.9")
            }
        })
        .collect();
    format!("{}, */*;q=0.1", ranked.join(", "))
}
