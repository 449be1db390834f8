//! Parses a document, and writes the message for unknown operations.

use serde_json::Value;

use super::error::Error;

/// The number of operation ids that an error lists.
const IDS_LISTED_MAX: usize = 10;

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Swagger2,
    OpenApi3,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Value, Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let json = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // A document that begins like JSON may be YAML in flow style, but its errors are reported as JSON errors.
    let is_json = bytes.trim_ascii_start().starts_with(b"{");
    // By YAML 1.2, as OpenAPI requires: a parameter named `y` or `no` isn't a boolean.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_slice_with_options(bytes, options).map_err(|yaml| {
        let place = match yaml.location() {
            _ if is_json => Some((json.line() as u64, json.column() as u64)),
            Some(at) => Some((at.line(), at.column())),
            None => None,
        };
        let at = place.map(|(line, column)| format!(" (line {line}, column {column})"));
        Error::Syntax {
            at: at.unwrap_or_default(),
        }
    })
}

pub(super) fn format(root: &Value) -> Result<Format, Error> {
    // Without quotes, `3.0` is a number in YAML.
    let version = |key| match root.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match (version("openapi"), version("swagger")) {
        (Some(version), _) => match version.split('.').collect::<Vec<_>>()[..] {
            ["3", "0" | "1", ..] => Ok(Format::OpenApi3),
            ["3"] => Ok(Format::OpenApi3),
            _ => Err(Error::Version { version }),
        },
        (None, Some(version)) => match version.as_str() {
            "2.0" | "2" => Ok(Format::Swagger2),
            _ => Err(Error::Version { version }),
        },
        (None, None) => Err(Error::NotOpenApi),
    }
}

pub(crate) fn hint(id: &str, ids: &mut [String]) -> String {
    if ids.is_empty() {
        return "none of its operations has an `operationId`".to_owned();
    }
    let likeness = |other: &String| strsim::jaro_winkler(&id.to_lowercase(), &other.to_lowercase());
    let nearest = ids
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    if let Some(nearest) = nearest.filter(|nearest| likeness(nearest) > 0.85) {
        return format!("did you mean `{nearest}`?");
    }
    ids.sort();
    let listed: Vec<_> = ids
        .iter()
        .take(IDS_LISTED_MAX)
        .map(|id| format!("`{id}`"))
        .collect();
    let more = match ids.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there are {}{more}", listed.join(", "))
}
