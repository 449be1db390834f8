//! Builds a request from an operation and arguments, without network access.

use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use swirl_model::Data;
use url::Url;

use super::body::{self, Body};
use super::operation::{Location, Operation, Parameter};
use super::style;
use crate::CallError;

/// Headers that belong to the connection itself.
const HEADERS_OF_CONNECTION: [&str; 7] = [
    "connection",
    "content-length",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request without credentials.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) cookies: Vec<(String, String)>,
    pub(crate) body: Body,
    /// The parameters of the API keys that were given as arguments.
    pub(crate) keys_given: Vec<(Location, String)>,
    /// Values that errors must not show.
    pub(crate) secrets: Vec<String>,
    /// Redirects within the same origin are followed.
    pub(crate) follows: bool,
}

impl Request {
    pub(crate) fn add_query(&mut self, name: &str, value: &str) {
        let pair = format!("{name}={value}");
        let query = match self.url.query() {
            Some(query) if !query.is_empty() => format!("{query}&{pair}"),
            _ => pair,
        };
        self.url.set_query(Some(&query));
    }

    /// # Errors
    /// The reason, without the value.
    pub(crate) fn set_header(
        &mut self,
        name: &str,
        value: &str,
        secret: bool,
    ) -> Result<(), String> {
        let lower = name.to_ascii_lowercase();
        if HEADERS_OF_CONNECTION.contains(&lower.as_str()) {
            return Err(format!("the header `{name}` cannot be set"));
        }
        let field = HeaderName::from_bytes(lower.as_bytes())
            .map_err(|_| format!("`{name}` is not a valid header name"))?;
        let mut value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| format!("the value of the header `{name}` has a control character"))?;
        value.set_sensitive(secret);
        self.headers.insert(field, value);
        Ok(())
    }

    /// All headers, including cookies.
    ///
    /// # Errors
    /// A cookie with a control character.
    pub(crate) fn all_headers(&self) -> Result<HeaderMap, CallError> {
        let mut headers = self.headers.clone();
        if !self.cookies.is_empty() {
            let pairs: Vec<_> = self
                .cookies
                .iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect();
            let mut value = HeaderValue::from_str(&pairs.join("; ")).map_err(|_| {
                CallError::arguments("a cookie has a character that is not allowed")
            })?;
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
        Ok(headers)
    }
}

/// Builds the request from an operation and an object of arguments, or null.
pub(crate) fn build(operation: &Operation, arguments: &Data) -> Result<Request, CallError> {
    let refuse =
        |message: String| CallError::arguments(format!("operation `{}`: {message}", operation.id));
    let mut arguments = match Value::from(arguments) {
        Value::Null => Map::new(),
        Value::Object(members) => members,
        _ => {
            let gave = arguments.kind_in_words();
            return Err(refuse(format!(
                "the arguments must be an object, but are {gave}"
            )));
        }
    };
    let given = assign(operation, &mut arguments).map_err(refuse)?;
    let body = body::build(operation, arguments).map_err(refuse)?;
    let url = url(operation, &given).map_err(refuse)?;
    let mut request = Request {
        method: operation.method.clone(),
        url,
        headers: HeaderMap::new(),
        cookies: Vec::new(),
        body,
        keys_given: Vec::new(),
        secrets: Vec::new(),
        follows: true,
    };
    request
        .set_header("accept", &operation.accept, false)
        .map_err(refuse)?;
    for (parameter, value) in &given {
        place(&mut request, parameter, value)
            .map_err(|message| refuse(format!("argument `{}`: {message}", parameter.name)))?;
    }
    Ok(request)
}

type Given<'a> = Vec<(&'a Parameter, Value)>;

/// Takes the values of the parameters out of the arguments. The rest is the body.
fn assign<'a>(
    operation: &'a Operation,
    arguments: &mut Map<String, Value>,
) -> Result<Given<'a>, String> {
    let mut given = Vec::new();
    let mut missing = Vec::new();
    for parameter in &operation.parameters {
        let name = &parameter.name;
        let namesakes: Vec<_> = operation
            .parameters
            .iter()
            .filter(|other| other.name == *name)
            .map(qualified)
            .collect();
        let is_only = namesakes.len() == 1;
        let qualified = qualified(parameter);
        if !is_only && arguments.contains_key(name) {
            return Err(format!(
                "`{name}` is the name of several parameters; write `{}`",
                namesakes.join("` or `")
            ));
        }
        let value = arguments.shift_remove(&qualified);
        if value.is_some() && is_only && arguments.contains_key(name) {
            return Err(format!(
                "`{name}` and `{qualified}` are the same parameter; give one"
            ));
        }
        let value = value.or_else(|| arguments.shift_remove(name).filter(|_| is_only));
        match value.filter(|value| !value.is_null()) {
            Some(value) => given.push((parameter, value)),
            None if parameter.required => {
                missing.push(format!("`{}`", if is_only { name } else { &qualified }));
            }
            None => {}
        }
    }
    match missing.as_slice() {
        [] => Ok(given),
        [one] => Err(format!("the argument {one} is missing")),
        several => Err(format!("the arguments {} are missing", several.join(", "))),
    }
}

fn qualified(parameter: &Parameter) -> String {
    format!("{}.{}", parameter.location.name(), parameter.name)
}

fn url(operation: &Operation, given: &Given<'_>) -> Result<Url, String> {
    let mut path = String::new();
    for segment in operation.path.trim_start_matches('/').split('/') {
        let (filled, names) = fill(segment, given)?;
        // Such a segment would turn the URL into that of another operation.
        if !names.is_empty() && matches!(filled.as_str(), "" | "." | "..") {
            return Err(format!(
                "argument `{}`: a path cannot have a part `{filled}`",
                names.join("`, `")
            ));
        }
        path.push('/');
        path.push_str(&filled);
    }
    let mut url = Url::parse(&format!("{}{path}", operation.server))
        .map_err(|error| format!("the URL `{}{path}` is not valid: {error}", operation.server))?;
    url.set_fragment(None);
    Ok(url)
}

/// Replaces the `{parameters}` of a path segment, and returns their names.
fn fill<'a>(segment: &'a str, given: &Given<'_>) -> Result<(String, Vec<&'a str>), String> {
    let (mut filled, mut names, mut rest) = (String::new(), Vec::new(), segment);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let value = given
            .iter()
            .find(|(parameter, _)| parameter.location == Location::Path && parameter.name == name);
        let Some((parameter, value)) = value else {
            return Err(format!("the argument `{name}` is missing"));
        };
        filled.push_str(before);
        filled.push_str(
            &style::path(parameter, value)
                .map_err(|reason| format!("argument `{name}`: {reason}"))?,
        );
        names.push(name);
        rest = after;
    }
    filled.push_str(rest);
    Ok((filled, names))
}

fn place(request: &mut Request, parameter: &Parameter, value: &Value) -> Result<(), String> {
    match parameter.location {
        Location::Path => {}
        Location::Query => {
            for (name, value) in style::pairs(parameter, value)? {
                request.add_query(&name, &value);
            }
        }
        Location::Header => {
            let text = style::header(parameter, value)?;
            request.set_header(&parameter.name, &text, parameter.secret)?;
        }
        Location::Cookie => request.cookies.extend(style::pairs(parameter, value)?),
    }
    if parameter.secret {
        request
            .keys_given
            .push((parameter.location, parameter.name.clone()));
        request.secrets.push(match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
    }
    Ok(())
}

/// Method, URL and body in a form that tests can compare.
#[cfg(test)]
pub(crate) fn request_line(operation: &Operation, arguments: &Data) -> Result<String, CallError> {
    let request = build(operation, arguments)?;
    let body = match &request.body {
        Body::Bytes { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    Ok(format!("{} {} {body}", request.method, request.url))
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::super::OpenApi;
    use super::*;

    const DOCUMENT: &str = "
openapi: 3.0.0
servers: [{url: 'http://h/base'}]
security: [{key: []}]
components:
  securitySchemes: {key: {type: apiKey, in: query, name: apikey}}
paths:
  /a/{id}/b{kind}:
    parameters:
    - {name: id, in: path, required: true, schema: {type: string}}
    - {name: kind, in: path, required: true, style: matrix, explode: true}
    - {name: q, in: query, schema: {type: string}}
    get:
      operationId: get
      parameters:
      - {name: q, in: query, required: true}
      - {name: filter, in: query, style: deepObject}
      - {name: json, in: query, content: {application/json: {}}}
      - {name: X-Trace, in: header}
      - {name: Host, in: header}
      - {name: Authorization, in: header, required: true}
      - {name: session, in: cookie}
  /both/{id}:
    get:
      operationId: both
      parameters: [{name: id, in: path, required: true}, {name: id, in: query, required: true}]
  /fixed?a=1#note: {get: {operationId: fixed, parameters: [{name: b, in: query}]}}
";

    fn build(id: &str, arguments: Data) -> Result<Request, String> {
        let document = OpenApi::parse(DOCUMENT.as_bytes(), "").unwrap();
        let operation = document.operation(id).unwrap();
        super::build(&operation, &arguments).map_err(|error| {
            assert!(!error.can_retry);
            assert_eq!(error.code(), "arguments");
            error.message
        })
    }

    #[test]
    fn arguments_go_to_parameters_by_name() {
        let arguments = data!({
            "id": "a/b", "kind": [1, 2], "q": 1.5, "filter": {"x": {"y": true}}, "json": {"k": []},
            "X-Trace": "t", "session": "s p", "apikey": "s3cret",
        });
        let request = build("get", arguments).unwrap();
        assert_eq!(
            request.url.as_str(),
            "http://h/base/a/a%2Fb/b;kind=1;kind=2?q=1.5&filter%5Bx%5D%5By%5D=true\
             &json=%7B%22k%22%3A%5B%5D%7D&apikey=s3cret"
        );
        let headers = request.all_headers().unwrap();
        assert_eq!(headers["x-trace"], "t");
        assert_eq!(headers["cookie"], "session=s%20p");
        assert_eq!(headers["accept"], "application/json, */*;q=0.1");
        assert_eq!(request.secrets, ["s3cret"]);
    }

    #[test]
    fn duplicate_names_are_qualified() {
        let url = |arguments| build("both", arguments).map(|request| request.url.to_string());
        assert_eq!(
            url(data!({"path.id": 1, "query.id": 2})).unwrap(),
            "http://h/base/both/1?id=2"
        );
        for (arguments, expected) in [
            (
                data!({"id": 1}),
                "operation `both`: `id` is the name of several parameters; write `path.id` or `query.id`",
            ),
            (
                data!({"path.id": 1}),
                "operation `both`: the argument `query.id` is missing",
            ),
        ] {
            assert_eq!(url(arguments).unwrap_err(), expected);
        }
        assert_eq!(
            build("fixed", data!({"query.b": 2})).unwrap().url.as_str(),
            "http://h/base/fixed?a=1&b=2"
        );
        let error = build("fixed", data!({"query.b": 2, "b": 2})).unwrap_err();
        assert!(error.contains("are the same parameter"), "{error}");
    }

    #[test]
    fn invalid_arguments_are_rejected_before_sending() {
        let full = |name: &str, value: Data| {
            let mut arguments = data!({"id": "1", "kind": "k", "q": "q"});
            arguments.set(name, value);
            arguments
        };
        for (arguments, expected) in [
            (data!({"kind": "k"}), "the arguments `id`, `q` are missing"),
            (
                data!([1]),
                "the arguments must be an object, but are an array",
            ),
            (full("q", Data::NULL), "the argument `q` is missing"),
            (
                full("id", data!("..")),
                "argument `id`: a path cannot have a part `..`",
            ),
            (
                full("id", data!("")),
                "argument `id`: a path cannot have a part ``",
            ),
            (
                full("id", data!({"a": [1]})),
                "argument `id`: an array within a value has no form",
            ),
            (
                full("X-Trace", data!("a\r\nb: c")),
                "argument `X-Trace`: the value of the header `X-Trace` has a control",
            ),
            (
                full("Host", data!("evil")),
                "argument `Host`: the header `Host` cannot be set",
            ),
            (
                full("other", data!(1)),
                "it has no body and no parameter `other`; it has `id`, `kind`, `q`",
            ),
        ] {
            let error = build("get", arguments).unwrap_err();
            assert!(
                error.starts_with(&format!("operation `get`: {expected}")),
                "{error}"
            );
        }
        assert!(build("get", full("X-Trace", Data::NULL)).is_ok());
    }
}
