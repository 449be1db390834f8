//! Request bodies: JSON, forms, text and bytes.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use super::operation::{BodyKind, Location, Operation, Parameter, Property, RequestBody, Style};
use super::style;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Empty,
    Bytes {
        content_type: String,
        bytes: Vec<u8>,
    },
    Multipart(Vec<FormPart>),
}

/// A part of a `multipart/form-data` body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FormPart {
    pub(crate) name: String,
    pub(crate) file_name: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

impl Body {
    /// The size in bytes, without the separators between the parts of a form.
    pub(crate) fn len(&self) -> usize {
        match self {
            Body::Empty => 0,
            Body::Bytes { bytes, .. } => bytes.len(),
            Body::Multipart(parts) => parts.iter().map(|part| part.bytes.len()).sum(),
        }
    }
}

/// Builds the body from the arguments that no parameter took.
///
/// # Errors
/// The mismatch, as the end of a sentence that names the operation.
pub(crate) fn build(operation: &Operation, arguments: Map<String, Value>) -> Result<Body, String> {
    let Some(body) = &operation.body else {
        return match arguments.is_empty() {
            true => Ok(Body::Empty),
            false => Err(unknown(operation, &arguments)),
        };
    };
    let Some(value) = value(body, arguments)? else {
        return Ok(Body::Empty);
    };
    let content_type = body.content_type.clone();
    let bytes = match body.kind {
        BodyKind::Json => encoded(&value.to_string(), &content_type)?,
        BodyKind::Form => form(body, &value)?.into_bytes(),
        BodyKind::Multipart => return multipart(body, &value).map(Body::Multipart),
        BodyKind::Text => encoded(&text(&value), &content_type)?,
        BodyKind::Binary => match &value {
            Value::String(text) => decode(text).ok_or_else(|| not_base64("body"))?,
            _ => return Err(not_base64("body")),
        },
    };
    Ok(Body::Bytes {
        content_type,
        bytes,
    })
}

fn names(arguments: &Map<String, Value>) -> String {
    let names: Vec<_> = arguments.keys().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn unknown(operation: &Operation, arguments: &Map<String, Value>) -> String {
    let unknown = names(arguments);
    let known: Vec<_> = operation
        .parameters
        .iter()
        .map(|parameter| format!("`{}`", parameter.name))
        .collect();
    match known.is_empty() {
        true => format!("it takes no arguments, but got {unknown}"),
        false => format!(
            "it has no body and no parameter {unknown}; it has {}",
            known.join(", ")
        ),
    }
}

/// The value to send, or `None`.
fn value(body: &RequestBody, mut arguments: Map<String, Value>) -> Result<Option<Value>, String> {
    let whole = body
        .whole
        .iter()
        .find_map(|name| arguments.shift_remove_entry(name));
    if let Some((name, value)) = whole {
        if !arguments.is_empty() {
            let others = names(&arguments);
            return Err(format!(
                "`{name}` is the whole body, so {others} cannot be sent with it"
            ));
        }
        if body.kind == BodyKind::Json || !value.is_null() {
            return Ok(Some(value));
        }
    }
    let whole = body.whole.first().map(String::as_str);
    if !arguments.is_empty() && !body.members {
        let others = names(&arguments);
        return Err(match whole {
            Some(whole) => {
                format!("its body is not an object: give it as `{whole}`, not as {others}")
            }
            None => format!("its body is not an object, so {others} cannot be its members"),
        });
    }
    let needs_check = body.properties.iter().any(|property| property.required);
    if arguments.is_empty() && !body.required && !needs_check {
        return Ok(None);
    }
    if arguments.is_empty() && !body.members {
        let whole = whole.unwrap_or("body");
        return match body.required {
            true => Err(format!("the argument `{whole}`, its body, is missing")),
            false => Ok(None),
        };
    }
    Ok(Some(Value::Object(arguments)))
}

/// A member of a form: its name, its value, and its property if that is known.
type Member<'a> = (&'a str, &'a Value, Option<&'a Property>);

/// The members of a form in order, without nulls.
fn members<'a>(body: &'a RequestBody, value: &'a Value) -> Result<Vec<Member<'a>>, String> {
    let Value::Object(members) = value else {
        return Err("its body is a form: it must be an object".to_owned());
    };
    for property in body.properties.iter().filter(|property| property.required) {
        if members.get(&property.name).is_none_or(Value::is_null) {
            return Err(format!("the argument `{}` is missing", property.name));
        }
    }
    let property = |name: &str| {
        body.properties
            .iter()
            .find(|property| property.name == name)
    };
    let given = members.iter().filter(|(_, value)| !value.is_null());
    Ok(given
        .map(|(name, value)| (name.as_str(), value, property(name)))
        .collect())
}

fn form(body: &RequestBody, value: &Value) -> Result<String, String> {
    let mut pairs = Vec::new();
    for (name, value, property) in members(body, value)? {
        let style = property.and_then(|property| property.style);
        let (style, explode) = style.unwrap_or((Style::Form, true));
        let is_json = value.is_object() && property.is_none_or(|property| property.style.is_none());
        let parameter = Parameter {
            name: name.to_owned(),
            location: Location::Query,
            required: false,
            style,
            explode,
            allow_reserved: false,
            json: is_json,
            secret: false,
        };
        let encoded = style::pairs(&parameter, value)
            .map_err(|reason| format!("argument `{name}`: {reason}"))?;
        pairs.extend(
            encoded
                .into_iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
    }
    Ok(pairs.join("&"))
}

fn multipart(body: &RequestBody, value: &Value) -> Result<Vec<FormPart>, String> {
    let mut parts = Vec::new();
    for (name, value, property) in members(body, value)? {
        if let Some(styled) = property.and_then(|property| property.style) {
            let pairs = style::parts(name, styled, value)
                .map_err(|reason| format!("argument `{name}`: {reason}"))?;
            parts.extend(pairs.into_iter().map(|(name, text)| FormPart {
                name,
                file_name: None,
                content_type: None,
                bytes: text.into_bytes(),
            }));
            continue;
        }
        let values = match value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        };
        for value in values {
            parts.push(part(name, value, property)?);
        }
    }
    Ok(parts)
}

fn part(name: &str, value: &Value, property: Option<&Property>) -> Result<FormPart, String> {
    let declared = property.and_then(|property| property.content_type.clone());
    let name = name.to_owned();
    if property.is_some_and(|property| property.binary) {
        let bytes = value
            .as_str()
            .and_then(decode)
            .ok_or_else(|| not_base64(&name))?;
        let content_type = declared.filter(|media| !media.contains('*'));
        let content_type = content_type.or_else(|| Some("application/octet-stream".to_owned()));
        return Ok(FormPart {
            file_name: Some(name.clone()),
            name,
            content_type,
            bytes,
        });
    }
    let is_json = value.is_object() || value.is_array();
    let content_type = declared.or_else(|| is_json.then(|| "application/json".to_owned()));
    Ok(FormPart {
        name,
        file_name: None,
        content_type,
        bytes: text(value).into_bytes(),
    })
}

/// In the character set of its content type.
fn encoded(text: &str, content_type: &str) -> Result<Vec<u8>, String> {
    swirl_content::encode(text, content_type).map_err(|error| format!("its body: {error}"))
}

/// A string without quotes, anything else as compact JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn not_base64(name: &str) -> String {
    format!("the argument `{name}` is sent as bytes, so it must be a string of base64")
}

/// Standard or URL-safe base64, with or without padding.
fn decode(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [STANDARD, URL_SAFE].iter().find_map(|alphabet| {
        GeneralPurpose::new(alphabet, CONFIG)
            .decode(text.trim())
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::OpenApi;
    use super::*;

    /// An operation with this `requestBody`, given as YAML.
    fn operation(body: &str) -> Operation {
        operation_of("3.0.0", body)
    }

    fn operation_of(version: &str, body: &str) -> Operation {
        let document = format!(
            "{{openapi: {version}, servers: [{{url: 'http://h'}}], paths: {{'/a': {{post: \
             {{operationId: a, parameters: [{{name: id, in: query}}], requestBody: {body}}}}}}}}}"
        );
        OpenApi::parse(document.as_bytes(), "")
            .unwrap()
            .operation("a")
            .unwrap()
    }

    fn sent(body: &str, arguments: Value) -> Result<(String, String), String> {
        let Value::Object(arguments) = arguments else {
            unreachable!("arguments are an object")
        };
        match build(&operation(body), arguments)? {
            Body::Empty => Ok((String::new(), String::new())),
            Body::Bytes {
                content_type,
                bytes,
            } => Ok((content_type, String::from_utf8_lossy(&bytes).into_owned())),
            Body::Multipart(parts) => Ok(("multipart".to_owned(), format!("{}", parts.len()))),
        }
    }

    fn text(body: &str, arguments: Value) -> String {
        sent(body, arguments).unwrap().1
    }

    const JSON: &str = "{required: true, content: {application/json: {schema: {type: object}}}}";

    #[test]
    fn remaining_arguments_become_a_json_body() {
        for (arguments, expected) in [
            (json!({"b": 1, "a": null}), r#"{"b":1,"a":null}"#),
            (json!({}), "{}"),
            (json!({"body": [1]}), "[1]"),
            (json!({"body": null}), "null"),
            (json!({"body": "x"}), r#""x""#),
        ] {
            assert_eq!(text(JSON, arguments), expected);
        }
        let error = sent(JSON, json!({"body": 1, "b": 2})).unwrap_err();
        assert_eq!(
            error,
            "`body` is the whole body, so `b` cannot be sent with it"
        );
        let optional = "{content: {application/json: {schema: {type: object}}}}";
        assert_eq!(text(optional, json!({})), "");
    }

    #[test]
    fn body_is_a_member_where_the_schema_has_one() {
        let body = "{content: {application/json: {schema: {allOf: [{properties: {body: {}}}]}}}}";
        assert_eq!(text(body, json!({"body": 1})), r#"{"body":1}"#);
    }

    #[test]
    fn a_body_that_is_not_an_object_is_given_as_a_whole() {
        let array = "{required: true, content: {application/json: {schema: {type: array}}}}";
        assert_eq!(text(array, json!({"body": [1]})), "[1]");
        assert_eq!(
            sent(array, json!({"a": 1})).unwrap_err(),
            "its body is not an object: give it as `body`, not as `a`"
        );
        assert_eq!(
            sent(array, json!({})).unwrap_err(),
            "the argument `body`, its body, is missing"
        );
    }

    #[test]
    fn the_best_media_type_is_sent() {
        for (content, expected) in [
            (
                "{text/plain: {}, application/json; v=1: {}}",
                "application/json; v=1",
            ),
            (
                "{application/xml: {}, application/x-www-form-urlencoded: {}}",
                "application/x-www-form-urlencoded",
            ),
            ("{'*/*': {}}", "application/json"),
            (
                "{application/vnd.a+json: {}, application/vnd.b+json: {}}",
                "application/vnd.a+json",
            ),
        ] {
            let body = format!("{{required: true, content: {content}}}");
            assert_eq!(sent(&body, json!({})).unwrap().0, expected);
        }
    }

    #[test]
    fn forms_are_urlencoded() {
        let body = "{content: {application/x-www-form-urlencoded: {schema: {required: [a], properties: {a: {}, l: {}}}, \
                    encoding: {l: {style: pipeDelimited}, d: {style: deepObject}}}}}";
        assert!(
            sent(body, json!({"l": []}))
                .unwrap_err()
                .contains("`a` is missing")
        );
        let body = body.replace(
            "properties: {a: {}, l: {}}",
            "properties: {a: {}, l: {}, d: {}}",
        );
        assert_eq!(
            text(
                &body,
                json!({"a": "x y&z", "m": [1, 2], "l": [1, 2], "o": {"k": 1}, "d": {"k": 1}, "n": null})
            ),
            "a=x%20y%26z&m=1&m=2&l=1%7C2&o=%7B%22k%22%3A1%7D&d%5Bk%5D=1"
        );
        assert!(
            sent(&body, json!({"body": [1]}))
                .unwrap_err()
                .contains("must be an object")
        );
    }

    #[test]
    fn multipart_bodies_have_a_part_for_each_value() {
        let operation = operation(
            "{content: {multipart/form-data: {schema: {properties: {file: {type: string, format: binary}, \
             pics: {type: array, items: {type: string, format: byte}}}}, encoding: {pics: {contentType: image/png}}}}}",
        );
        let build = |arguments: Value| build(&operation, arguments.as_object().unwrap().clone());
        let arguments =
            json!({"file": "aGk", "pics": ["AAA=", "_w=="], "note": "n", "meta": {"a": 1}});
        let Body::Multipart(parts) = build(arguments).unwrap() else {
            panic!("no multipart body")
        };
        let seen: Vec<_> = parts
            .iter()
            .map(|p| {
                (
                    p.name.as_str(),
                    p.file_name.is_some(),
                    p.content_type.as_deref(),
                    &p.bytes[..],
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("file", true, Some("application/octet-stream"), &b"hi"[..]),
                ("pics", true, Some("image/png"), &[0, 0]),
                ("pics", true, Some("image/png"), &[255]),
                ("note", false, None, b"n"),
                ("meta", false, Some("application/json"), br#"{"a":1}"#),
            ]
        );
        let error = build(json!({"file": "no base64!"})).unwrap_err();
        assert!(error.contains("`file` is sent as bytes"), "{error}");
    }

    #[test]
    fn parts_have_the_styles_of_openapi_3_1() {
        let body = "{content: {multipart/form-data: {schema: {type: object, properties: {file: {format: binary}}}, \
             encoding: {tags: {style: form, explode: false}, piped: {style: pipeDelimited}, all: {explode: true}, \
             place: {style: deepObject}, flat: {explode: false}, file: {style: form}}}}}";
        let body = body.replace(
            "properties: {",
            "properties: {tags: {}, piped: {}, all: {}, place: {}, flat: {}, ",
        );
        let parts = |version: &str, arguments: Value| {
            let Value::Object(arguments) = arguments else {
                unreachable!("arguments are an object")
            };
            let Ok(Body::Multipart(parts)) = build(&operation_of(version, &body), arguments) else {
                panic!("no multipart body")
            };
            let text = |part: FormPart| {
                let media = part.content_type.map(|media| format!(" ({media})"));
                let text = String::from_utf8(part.bytes).unwrap();
                format!("{}={text}{}", part.name, media.unwrap_or_default())
            };
            parts.into_iter().map(text).collect::<Vec<_>>()
        };
        let arguments = json!({
            "tags": ["x, y", "z"], "piped": ["a", "b"], "all": ["a", "b"], "place": {"city": "Ulm", "at": [1, 2]},
            "flat": {"R": 100, "G": true}, "file": "aGk=", "other": {"a": 1},
        });
        assert_eq!(
            parts("3.1.0", arguments.clone()),
            [
                "tags=x, y,z",
                "piped=a|b",
                "all=a",
                "all=b",
                "place[city]=Ulm",
                "place[at]=1",
                "place[at]=2",
                "flat=R,100,G,true",
                "file=hi (application/octet-stream)",
                "other={\"a\":1} (application/json)",
            ]
        );
        let older = parts("3.0.3", arguments);
        assert_eq!(older[..2], ["tags=x, y", "tags=z"]);
        assert!(
            older.contains(&"flat={\"R\":100,\"G\":true} (application/json)".to_owned()),
            "{older:?}"
        );
    }

    #[test]
    fn members_that_only_the_service_sets_are_not_required() {
        const PET: &str =
            "{type: object, required: [id, name], properties: {id: {readOnly: true}, name: {}}}";
        const PARTS: &str =
            "{allOf: [{required: [id, name]}, {properties: {id: {allOf: [{readOnly: true}]}}}]}";
        const ONE: &str = "{oneOf: [{required: [id], properties: {id: {}}}, {required: [name]}]}";
        for (schema, expected) in [
            (PET, Err("the argument `name` is missing")),
            (PARTS, Err("the argument `name` is missing")),
            // Only one of them applies.
            (ONE, Ok(())),
        ] {
            for media in ["application/x-www-form-urlencoded", "multipart/form-data"] {
                let body =
                    format!("{{required: true, content: {{{media}: {{schema: {schema}}}}}}}");
                assert!(sent(&body, json!({"name": "Rex"})).is_ok(), "{schema}");
                let found = sent(&body, json!({"age": 1})).map(drop);
                assert_eq!(found, expected.map_err(str::to_owned), "{schema}");
            }
        }
    }

    #[test]
    fn text_and_bytes_are_given_as_a_whole() {
        let text_body = "{content: {text/plain: {}}}";
        assert_eq!(text(text_body, json!({"body": "plain"})), "plain");
        assert_eq!(text(text_body, json!({"body": {"a": 1}})), r#"{"a":1}"#);
        let latin = "{content: {'text/plain; charset=latin1': {}}}";
        assert!(
            sent(latin, json!({"body": "\u{4e2d}"}))
                .unwrap_err()
                .contains("its body: the text has characters")
        );
        assert!(
            sent(text_body, json!({"a": 1}))
                .unwrap_err()
                .contains("give it as `body`")
        );
        let bytes = "{content: {image/png: {}}}";
        assert_eq!(
            sent(bytes, json!({"body": "aGk="})).unwrap(),
            ("image/png".to_owned(), "hi".to_owned())
        );
        assert!(
            sent(bytes, json!({"body": 5}))
                .unwrap_err()
                .contains("string of base64")
        );
    }
}
