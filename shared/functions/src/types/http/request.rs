//! Builds a request from an operation and arguments, without network access.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::{Map, Value};
use swirl_model::Data;
use url::Url;
use url::form_urlencoded::Serializer;

use crate::types::fits::{self, did_you_mean, nearest};
use crate::types::misfit::below;
use crate::types::service::service_url;
use crate::types::{Misfit, NOWHERE, StaticValue};

/// The arguments that aren't parts of the URI.
const PLACES: [&str; 3] = ["body", "headers", "cookies"];

/// An operation as the definition states it.
pub(super) struct Template {
    pub(super) uri: String,
    method: Method,
    headers: Vec<(String, String)>,
    cookies: Vec<(String, String)>,
}

pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
}

impl Template {
    /// `server`: the operator's address, which takes precedence; `own`: one for a relative URI. The second part says
    /// whether nothing says where the service is.
    ///
    /// # Errors
    /// The reason why the operation cannot be called, as a sentence.
    pub(super) fn read(
        operation: &str,
        server: Option<Url>,
        own: Result<Option<Url>, String>,
    ) -> Result<(Template, bool), String> {
        let operation: Value = serde_json::from_str(operation).map_err(|_| {
            "the operation of an http function must be an object with `method` and `uri`".to_owned()
        })?;
        let text = |name: &str| {
            let text = operation.get(name).and_then(Value::as_str);
            text.ok_or_else(|| format!("the operation needs `{name}`"))
        };
        let written = text("uri")?;
        let is_relative = written.starts_with('/');
        let path = match (is_relative, written.split_once("://")) {
            (false, Some((_, rest))) => &rest[rest.find(['/', '?']).unwrap_or(rest.len())..],
            _ => written,
        };
        let base = match (server, is_relative) {
            (Some(server), _) => Some(server),
            (None, true) => own?,
            (None, false) => None,
        };
        let is_unknown = is_relative && base.is_none();
        let uri = match base {
            Some(base) => format!("{}{path}", base.as_str().trim_end_matches('/')),
            None if is_unknown => format!("{NOWHERE}{path}"),
            None => written.to_owned(),
        };
        let method = text("method")?.to_ascii_uppercase();
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| format!("`{method}` is not an HTTP method"))?;
        // The values of the names aren't known yet, so the address must not depend on them.
        let filled = fill(&uri, |_| Ok("0".to_owned()))?;
        service_url(&filled, "the uri")?;
        let before = uri.find('{').map_or(uri.as_str(), |at| &uri[..at]);
        let host = before.split_once("://").map_or("", |(_, rest)| rest);
        if uri.contains('{') && !host.contains('/') && !host.contains('?') {
            return Err(format!("`{uri}` has a `{{name}}` in its host"));
        }
        let template = Template {
            uri,
            method,
            headers: pairs(operation.get("headers"), "headers")?,
            cookies: pairs(operation.get("cookies"), "cookies")?,
        };
        Ok((template, is_unknown))
    }
}

impl Template {
    /// Of an operation of which only the URI can be read, to check arguments with.
    pub(super) fn of_uri(operation: &str) -> Option<Template> {
        let operation: Value = serde_json::from_str(operation).ok()?;
        let uri = operation.get("uri")?.as_str()?.to_owned();
        fill(&uri, |_| Ok("0".to_owned())).ok()?;
        Some(Template {
            uri,
            method: Method::GET,
            headers: Vec::new(),
            cookies: Vec::new(),
        })
    }
}

/// The arguments that [`make`] would refuse, as far as they are known.
pub(super) fn check(template: &Template, arguments: &StaticValue) -> Vec<Misfit> {
    let mut names = Vec::new();
    // The template was parsed, so it can be filled.
    let _ = fill(&template.uri, |name| {
        names.push(name.to_owned());
        Ok(String::new())
    });
    let given: Vec<&str> = match arguments {
        StaticValue::Unknown => return Vec::new(),
        StaticValue::Null => Vec::new(),
        StaticValue::Object(members) => members.iter().map(|(name, _)| name.as_str()).collect(),
        other => {
            let kind = other.kind();
            return vec![format!("the arguments must be an object, but are {kind}").into()];
        }
    };
    let has_place = |name: &str| names.iter().any(|known| known == name) || PLACES.contains(&name);
    let mut strays: Vec<&str> = given.clone();
    strays.retain(|name| !has_place(name));
    let mut found: Vec<Misfit> = Vec::new();
    for name in names.iter().filter(|name| !given.contains(&name.as_str())) {
        let stray = nearest(name, strays.iter().copied());
        let what = format!("the argument `{name}`");
        found.push(fits::missing(&what, name, stray).into());
        // One finding is enough for both.
        strays.retain(|known| Some(*known) != stray);
    }
    for name in strays {
        let free = names.iter().map(String::as_str).chain(PLACES);
        let hint = did_you_mean(name, free.filter(|known| !given.contains(known)));
        let message = format!(
            "the argument `{name}` isn't used: it is neither in the uri nor one of `body`, `headers` and `cookies`{hint}"
        );
        found.push(Misfit::new(&below("", name), message));
    }
    found
}

/// # Errors
/// The reason why the request cannot be sent.
pub(super) fn make(template: &Template, arguments: &Data) -> Result<Request, String> {
    let mut arguments = match Value::from(arguments) {
        Value::Null => Map::new(),
        Value::Object(members) => members,
        _ => return Err("the arguments must be an object".to_owned()),
    };
    let mut used = Vec::new();
    let filled = fill(&template.uri, |name| {
        used.push(name.to_owned());
        match arguments.get(name) {
            Some(value) => text(value, name),
            None => Err(format!("the argument `{name}` is missing")),
        }
    })?;
    let url = service_url(&filled, "the uri")?;
    for name in used {
        arguments.remove(&name);
    }
    let body = arguments.remove("body").filter(|body| !body.is_null());
    let mut headers = template.headers.clone();
    for (name, value) in pairs(arguments.remove("headers").as_ref(), "headers")? {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        headers.push((name, value));
    }
    let mut cookies = template.cookies.clone();
    for (name, value) in pairs(arguments.remove("cookies").as_ref(), "cookies")? {
        cookies.retain(|(known, _)| *known != name);
        cookies.push((name, value));
    }
    if let Some(name) = arguments.keys().next() {
        return Err(format!(
            "the argument `{name}` isn't used: it is neither in the uri nor one of `body`, `headers` and `cookies`"
        ));
    }
    if !cookies.is_empty() {
        let cookies: Vec<String> = cookies
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        headers.push(("cookie".to_owned(), cookies.join("; ")));
    }
    let body = body.map(|body| sent(&body, &mut headers)).transpose()?;
    Ok(Request {
        method: template.method.clone(),
        url,
        headers,
        body,
    })
}

/// Encodes the body according to its content type.
pub(in crate::types) fn sent(
    body: &Value,
    headers: &mut Vec<(String, String)>,
) -> Result<Vec<u8>, String> {
    let given = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        .map(|(_, value)| value.to_ascii_lowercase());
    if let Value::String(text) = body {
        if given.is_none() {
            headers.push((
                "content-type".to_owned(),
                "text/plain; charset=utf-8".to_owned(),
            ));
        }
        let media = given.as_deref().unwrap_or_default();
        return swirl_content::encode(text, media).map_err(|error| format!("`body`: {error}"));
    }
    match given {
        Some(media) if media.starts_with("application/x-www-form-urlencoded") => {
            let members = body.as_object();
            let members = members.ok_or("a form needs a body that is an object")?;
            let mut form = Serializer::new(String::new());
            for (name, value) in members {
                form.append_pair(name, &text(value, name)?);
            }
            Ok(form.finish().into_bytes())
        }
        Some(media) if media.contains("json") => Ok(body.to_string().into_bytes()),
        Some(media) => Err(format!(
            "a body that is not a string cannot be sent as `{media}`: pass it as a string"
        )),
        None => {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
            Ok(body.to_string().into_bytes())
        }
    }
}

/// Replaces `{name}`s with percent-encoded values.
fn fill(
    uri: &str,
    mut value: impl FnMut(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = uri;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| format!("a `{{` of `{uri}` is not closed"))?;
        filled.push_str(before);
        let value = value(name.trim())?;
        filled.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

pub(in crate::types) fn pairs(
    value: Option<&Value>,
    what: &str,
) -> Result<Vec<(String, String)>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(members)) => members
            .iter()
            .map(|(name, value)| Ok((name.clone(), text(value, name)?)))
            .collect(),
        Some(_) => Err(format!("`{what}` must be an object")),
    }
}

fn text(value: &Value, name: &str) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(format!("`{name}` must be a string, a number or a boolean")),
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    fn shown(operation: &str, arguments: Data) -> Result<String, String> {
        let request = make(&Template::read(operation, None, Ok(None))?.0, &arguments)?;
        let headers: Vec<String> = request
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let body = String::from_utf8(request.body.unwrap_or_default()).unwrap_or_default();
        Ok(format!(
            "{} {} [{}] {body}",
            request.method,
            request.url,
            headers.join(", ")
        ))
    }

    #[test]
    fn arguments_without_a_place_are_found_before_the_call() {
        let template = r#"{"method": "get", "uri": "http://a/pet/{petId}"}"#;
        let template = Template::read(template, None, Ok(None)).unwrap().0;
        let found = |arguments: Value| {
            let found = check(&template, &StaticValue::from(arguments)).into_iter();
            found
                .map(|misfit| (misfit.at, misfit.message))
                .collect::<Vec<_>>()
        };
        assert!(found(serde_json::json!({"petId": 1, "headers": {}})).is_empty());
        let message =
            "the argument `petId` is missing, and `petID` is there; did you mean `petId`?";
        assert_eq!(
            found(serde_json::json!({"petID": 1})),
            [(String::new(), message.to_owned())]
        );
        let found = found(serde_json::json!({"petId": 1, "body1": 2}));
        assert_eq!(found[0].0, "/body1");
        assert!(check(&template, &StaticValue::Unknown).is_empty());
    }

    #[test]
    fn arguments_go_to_their_places() {
        let get = r#"{"method": "get", "uri": "http://a/pet/{petId}?tag={tag}"}"#;
        let post = r#"{"method": "POST", "uri": "http://a/pet/", "headers": {"X-A": "1"}, "cookies": {"c": "1"}}"#;
        let form = r#"{"method": "POST", "uri": "http://a/", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}"#;
        for (operation, arguments, expected) in [
            (
                get,
                data!({"petId": 3, "tag": "a b/c"}),
                Ok("GET http://a/pet/3?tag=a%20b%2Fc [] "),
            ),
            (
                get,
                data!({"petId": 3}),
                Err("the argument `tag` is missing"),
            ),
            (
                get,
                data!({"petId": 3, "tag": "x", "more": 1}),
                Err(
                    "the argument `more` isn't used: it is neither in the uri nor one of `body`, `headers` and `cookies`",
                ),
            ),
            (
                post,
                data!({"body": {"name": "Lulu"}, "headers": {"x-a": "2"}, "cookies": {"d": "2"}}),
                Ok(
                    "POST http://a/pet/ [x-a: 2, cookie: c=1; d=2, content-type: application/json] {\"name\":\"Lulu\"}",
                ),
            ),
            (
                post,
                data!({"body": "hello"}),
                Ok(
                    "POST http://a/pet/ [X-A: 1, cookie: c=1, content-type: text/plain; charset=utf-8] hello",
                ),
            ),
            (
                form,
                data!({"body": {"a": "x y", "b": 2}}),
                Ok("POST http://a/ [Content-Type: application/x-www-form-urlencoded] a=x+y&b=2"),
            ),
            (
                r#"{"method": "GET", "uri": "http://{host}/a"}"#,
                data!({}),
                Err("`http://{host}/a` has a `{name}` in its host"),
            ),
        ] {
            let got = shown(operation, arguments);
            assert_eq!(got, expected.map(str::to_owned).map_err(str::to_owned));
        }
    }
}
