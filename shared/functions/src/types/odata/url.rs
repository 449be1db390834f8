//! The URL of a query.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

/// Characters that stay unescaped in a path segment: all that occur in a key predicate, except slashes.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'(')
    .remove(b')')
    .remove(b'\'')
    .remove(b',')
    .remove(b'=');

/// Characters that stay unescaped in the value of an option.
const OPTION: &AsciiSet = &PATH
    .remove(b'/')
    .remove(b':')
    .remove(b'$')
    .remove(b'*')
    .remove(b'@');

/// The options of the schema, and whether their values are texts, whole numbers or booleans.
const OPTIONS: [(&str, &str, OptionType); 13] = [
    ("compute", "$compute", OptionType::Text),
    ("count", "$count", OptionType::Bool),
    ("expand", "$expand", OptionType::Text),
    ("filter", "$filter", OptionType::Text),
    ("format", "$format", OptionType::Text),
    ("index", "$index", OptionType::Text),
    ("orderBy", "$orderby", OptionType::Text),
    // As in the example of the language specification.
    ("orderby", "$orderby", OptionType::Text),
    ("schemaVersion", "$schemaversion", OptionType::Text),
    ("search", "$search", OptionType::Text),
    ("select", "$select", OptionType::Text),
    ("skip", "$skip", OptionType::Whole),
    ("top", "$top", OptionType::Whole),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionType {
    Text,
    Whole,
    Bool,
}

/// The URL of an entity set. A query in the service's own URL is kept.
pub(super) fn entity_set(mut service: Url, set: &str) -> Url {
    let parts: Vec<String> = set
        .split('/')
        .map(|part| utf8_percent_encode(part, PATH).to_string())
        .collect();
    let path = format!(
        "{}/{}",
        service.path().trim_end_matches('/'),
        parts.join("/")
    );
    service.set_path(&path);
    service
}

/// # Errors
/// The arguments that don't fit the schema.
pub(super) fn query(base: &Url, arguments: &Value) -> Result<Url, String> {
    let nothing = Map::new();
    let arguments = object(arguments, &nothing).ok_or("the arguments must be an object")?;
    let mut url = base.clone();
    let known = ["key", "queryOptions"];
    if let Some(name) = arguments
        .keys()
        .find(|name| !known.contains(&name.as_str()))
    {
        return Err(format!(
            "there is no argument `{name}`; it takes `key` and `queryOptions`"
        ));
    }
    if let Some(key) = arguments.get("key").filter(|key| !key.is_null()) {
        let key = utf8_percent_encode(&predicate(key)?, PATH).to_string();
        url.set_path(&format!("{}({key})", base.path()));
    }
    let options = arguments.get("queryOptions").unwrap_or(&Value::Null);
    let options = object(options, &nothing).ok_or("`queryOptions` must be an object")?;
    if options.contains_key("orderBy") && options.contains_key("orderby") {
        return Err("`orderBy` and `orderby` are the same option; give one".to_owned());
    }
    let mut pairs: Vec<String> = url.query().map(str::to_owned).into_iter().collect();
    for (name, value) in options {
        let found = OPTIONS.iter().find(|(known, ..)| known == name);
        let Some((_, sent, kind)) = found else {
            let known: Vec<&str> = OPTIONS.iter().map(|(known, ..)| *known).collect();
            return Err(format!(
                "there is no query option `{name}`; it takes {}",
                known.join(", ")
            ));
        };
        if let Some(text) = option(value, *kind)
            .map_err(|wanted| format!("the query option `{name}` must be {wanted}"))?
        {
            pairs.push(format!("{sent}={}", utf8_percent_encode(&text, OPTION)));
        }
    }
    if !pairs.is_empty() {
        url.set_query(Some(&pairs.join("&")));
    }
    Ok(url)
}

fn object<'a>(value: &'a Value, nothing: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    match value {
        Value::Null => Some(nothing),
        other => other.as_object(),
    }
}

/// Null counts as missing.
fn option(value: &Value, kind: OptionType) -> Result<Option<String>, &'static str> {
    Ok(Some(match (kind, value) {
        (_, Value::Null) => return Ok(None),
        (OptionType::Text, Value::String(text)) if !text.is_empty() => text.clone(),
        (OptionType::Bool, Value::Bool(value)) => value.to_string(),
        (OptionType::Whole, Value::Number(number)) if number.as_u64().is_some() => {
            number.to_string()
        }
        (OptionType::Text, _) => return Err("a string that isn't empty"),
        (OptionType::Bool, _) => return Err("true or false"),
        (OptionType::Whole, _) => return Err("a whole number, 0 or more"),
    }))
}

/// The text between the parentheses.
fn predicate(key: &Value) -> Result<String, String> {
    let refused = "`key` must be a string, a number, or an object of these";
    match key {
        Value::Object(members) if !members.is_empty() => {
            let mut parts = Vec::new();
            for (name, value) in members {
                let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
                if !is_name || name.is_empty() {
                    return Err(format!("`{name}` in `key` is not the name of a property"));
                }
                parts.push(format!("{name}={}", literal(value).ok_or(refused)?));
            }
            Ok(parts.join(","))
        }
        single => literal(single).ok_or_else(|| refused.to_owned()),
    }
}

fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::String(text) if text.is_empty() => None,
        Value::String(text) if is_literal(text) => Some(text.clone()),
        Value::String(text) => Some(format!("'{}'", text.replace('\'', "''"))),
        _ => None,
    }
}

/// A number, a GUID, or a text in quotes, whose own quotes are doubled.
fn is_literal(text: &str) -> bool {
    let inner = text
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    if let Some(inner) = inner {
        return !inner.replace("''", "").contains('\'');
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_guid = lengths == [8, 4, 4, 4, 12]
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_whole || is_guid
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(arguments: Value) -> Result<String, String> {
        let base = Url::parse("https://example.org/OData.svc/?v=1").unwrap();
        let url = query(&entity_set(base, "Persons"), &arguments)?;
        Ok(url.as_str().replace("https://example.org/OData.svc/", ""))
    }

    #[test]
    fn queries() {
        for (arguments, expected) in [
            (Value::Null, "Persons?v=1"),
            (json!({"queryOptions": {"top": null}}), "Persons?v=1"),
            (
                json!({"queryOptions": {
                    "expand": "PersonDetail/Person",
                    "select": "Id, PersonDetail/Person/Name",
                    "top": 5,
                    "orderby": "PersonDetail/Person/Name"
                }}),
                "Persons?v=1&$expand=PersonDetail/Person&$select=Id,%20PersonDetail/Person/Name&$top=5\
                 &$orderby=PersonDetail/Person/Name",
            ),
            (
                json!({"queryOptions": {"filter": "Name eq 'A&B #1+2=3?'", "count": true, "skip": 0}}),
                "Persons?v=1&$filter=Name%20eq%20%27A%26B%20%231%2B2=3%3F%27&$count=true&$skip=0",
            ),
            (json!({"key": 7}), "Persons(7)?v=1"),
            (json!({"key": "7"}), "Persons(7)?v=1"),
            (json!({"key": "'7'"}), "Persons('7')?v=1"),
            (
                json!({"key": "O'Neil/../x?y#z"}),
                "Persons('O''Neil%2F..%2Fx%3Fy%23z')?v=1",
            ),
            (
                json!({"key": "'a') or ('b'"}),
                "Persons('''a'')%20or%20(''b''')?v=1",
            ),
            (
                json!({"key": "f89dee73-af9f-4cd4-b330-db93c25ff3c7"}),
                "Persons(f89dee73-af9f-4cd4-b330-db93c25ff3c7)?v=1",
            ),
            (
                json!({"key": {"OrderId": 1, "Product": "A"}}),
                "Persons(OrderId=1,Product='A')?v=1",
            ),
        ] {
            assert_eq!(sent(arguments).unwrap(), expected);
        }
    }

    #[test]
    fn invalid_options_are_rejected() {
        for (arguments, reason) in [
            (json!([]), "the arguments must be an object"),
            (json!({"filter": "a"}), "there is no argument `filter`"),
            (
                json!({"queryOptions": "a"}),
                "`queryOptions` must be an object",
            ),
            (
                json!({"queryOptions": {"fitler": "a"}}),
                "no query option `fitler`",
            ),
            (
                json!({"queryOptions": {"filter": 7}}),
                "`filter` must be a string",
            ),
            (
                json!({"queryOptions": {"top": -1}}),
                "`top` must be a whole number",
            ),
            (
                json!({"queryOptions": {"top": "5"}}),
                "`top` must be a whole number",
            ),
            (
                json!({"queryOptions": {"count": 1}}),
                "`count` must be true or false",
            ),
            (
                json!({"queryOptions": {"orderBy": "a", "orderby": "b"}}),
                "the same option",
            ),
            (json!({"key": []}), "`key` must be"),
            (json!({"key": ""}), "`key` must be"),
            (json!({"key": {"a=1,b": 2}}), "not the name of a property"),
        ] {
            let error = sent(arguments).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
