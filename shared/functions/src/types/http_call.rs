//! `call: http` of DSL 1.0: the arguments of the call are the request.
//!
//! The arguments are `method`, `uri`, `headers`, `query`, `body`, `output` and `redirect`, with their expressions
//! evaluated. Failures are errors of the type `communication`, as the language describes them.

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Map, Value};
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;
use url::Url;

use super::http::request::{pairs, sent};
use super::service::{Ask, IDEMPOTENCY_KEY, TRACEPARENT, in_time, service_url};
use super::task_answer::{Wanted, described, in_words, output};
use super::{Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType};
use crate::CallError;
use crate::http::shown;

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "http-call",
    document: |_| None,
    compile,
};

/// A request, as its arguments describe it.
#[derive(Debug, Clone, PartialEq)]
struct HttpRequest {
    method: Method,
    url: Url,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    redirect: bool,
}

fn compile(functions: &[&Function], _: &Documents<'_>) -> Vec<CompileResult> {
    let each = functions.iter();
    each.map(|_| Ok(Box::new(HttpCall) as Compiled)).collect()
}

struct HttpCall;

#[async_trait]
impl CompiledFunction for HttpCall {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        maps(&request.arguments)?;
        let made = HttpRequest::of(&request.arguments)
            .map_err(|reason| in_words(CallError::arguments(reason)))?;
        let what = format!("{} {}", made.method, shown(&made.url));
        let trace = request.trace.map(|trace| trace.to_string());
        let own = made.headers.iter();
        let mut headers: Vec<(&str, &str)> = own
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let further = [
            ("accept", Some("application/json, */*;q=0.1")),
            (IDEMPOTENCY_KEY, Some(request.key.as_str())),
            (TRACEPARENT, trace.as_deref()),
        ];
        for (name, value) in further {
            let mut given = headers.iter();
            if !given.any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                headers.extend(value.map(|value| (name, value)));
            }
        }
        let ask = Ask {
            method: made.method.clone(),
            url: &made.url,
            headers: &headers,
            body: made.body.as_deref(),
            follows: made.redirect,
            what: &what,
            secrets: request.secrets.expose(),
        };
        let exchange = async {
            let reply = clients.services.ask(&ask, context.auth).await?;
            let form = request.arguments.get("output");
            output(&made.wanted(form.as_ref()), &reply.answer, &reply.secrets)
        };
        let done = in_time(context.timeout, &what, exchange).await;
        done.map_err(in_words)
    }
}

impl HttpRequest {
    /// # Errors
    /// The reason why the request cannot be sent, as a sentence.
    fn of(arguments: &Data) -> Result<HttpRequest, String> {
        let arguments = match Value::from(arguments) {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or("");
        let method = text("method").to_ascii_uppercase();
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| format!("`{method}` is not an HTTP method"))?;
        let mut url = service_url(text("uri"), "the endpoint")?;
        if let Some(query) = arguments.get("query") {
            add_query(&mut url, query)?;
        }
        let given = arguments.get("headers");
        let plain = given.map(without_nulls);
        let mut headers = pairs(plain.as_ref(), "headers")?;
        let body = arguments.get("body").filter(|body| !body.is_null());
        let body = body.map(|body| sent(body, &mut headers)).transpose()?;
        Ok(HttpRequest {
            method,
            url,
            headers,
            body,
            redirect: arguments.get("redirect") == Some(&Value::Bool(true)),
        })
    }

    fn wanted<'a>(&'a self, form: Option<&'a Data>) -> Wanted<'a> {
        let headers = self.headers.iter();
        Wanted {
            output: form.and_then(Data::as_str),
            redirect: self.redirect,
            method: self.method.as_str(),
            url: &self.url,
            headers: headers
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect(),
        }
    }
}

/// The method and the endpoint may be expressions, which give texts; headers and the query may be some, which give
/// objects.
///
/// # Errors
/// The expression gave something else.
fn maps(arguments: &Data) -> Result<(), CallError> {
    for (name, member) in [("method", "method"), ("endpoint", "uri")] {
        let value = arguments.get(member).unwrap_or_default();
        if value.as_str().is_none() {
            let gave = value.kind_in_words();
            let reason = format!("the {name} must be a string, but its expression gave {gave}");
            return Err(described(CallError::arguments(reason), "expression", 400));
        }
    }
    for name in ["headers", "query"] {
        let value = arguments.get(name).unwrap_or_default();
        if !value.is_null() && !value.is_object() {
            let gave = value.kind_in_words();
            let reason = format!("`{name}` must be an object, but its expression gave {gave}");
            return Err(described(CallError::arguments(reason), "expression", 400));
        }
    }
    Ok(())
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

/// Lists repeat a parameter.
fn add_query(url: &mut Url, query: &Value) -> Result<(), String> {
    let members = match query {
        Value::Null => return Ok(()),
        Value::Object(members) => members,
        _ => return Err("`query` must be an object".to_owned()),
    };
    let mut all = Vec::new();
    for (name, value) in members {
        let values = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            match value {
                Value::Null => {}
                Value::String(text) => all.push((name, text.clone())),
                Value::Number(_) | Value::Bool(_) => all.push((name, value.to_string())),
                _ => {
                    return Err(format!(
                        "the query parameter `{name}` must be a string, a number, a boolean or a list of them"
                    ));
                }
            }
        }
    }
    if !all.is_empty() {
        url.query_pairs_mut().extend_pairs(all);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderMap, HeaderValue};
    use swirl_model::{WorkflowError, data};

    use super::*;
    use crate::http::Answer;

    fn give(arguments: Data, status: u16, media: &'static str, body: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(media));
        let answer = Answer {
            status,
            headers,
            body: body.as_bytes().to_vec(),
            coding_error: None,
        };
        let made = HttpRequest::of(&arguments).unwrap();
        let form = arguments.get("output");
        match output(&made.wanted(form.as_ref()), &answer, &[]) {
            Ok(data) => data.to_string(),
            Err(error) => WorkflowError::from(&error).to_problem().to_string(),
        }
    }

    #[test]
    fn arguments_are_the_request() {
        let arguments = data!({
            "method": "post", "uri": "http://a/p?x=1", "query": {"tag": ["a b", 2], "no": null},
            "headers": {"X-A": 1, "X-B": null}, "body": {"n": 1}
        });
        let made = HttpRequest::of(&arguments).unwrap();
        assert_eq!(made.url.as_str(), "http://a/p?x=1&tag=a+b&tag=2");
        assert_eq!(made.headers.len(), 2, "{:?}", made.headers);
        assert_eq!(made.body.as_deref(), Some(&b"{\"n\":1}"[..]));
        for (arguments, reason) in [
            (data!({"method": "get", "uri": "/p"}), "is not a valid URL"),
            (
                data!({"method": "g t", "uri": "http://a"}),
                "is not an HTTP method",
            ),
            (
                data!({"method": "get", "uri": "http://a", "query": {"a": {}}}),
                "parameter `a`",
            ),
        ] {
            let found = HttpRequest::of(&arguments).unwrap_err();
            assert!(found.contains(reason), "{found}");
        }
    }

    #[test]
    fn outputs() {
        let plain = data!({"method": "get", "uri": "http://a"});
        let raw = data!({"method": "get", "uri": "http://a", "output": "raw"});
        let whole = data!({"method": "get", "uri": "http://a", "output": "response"});
        let json = "application/json";
        assert_eq!(give(plain.clone(), 200, json, "{\"x\":1}"), "{\"x\":1}");
        assert_eq!(give(plain.clone(), 200, "text/plain", "hi"), "\"hi\"");
        assert_eq!(give(plain.clone(), 200, "image/png", "hi"), "\"aGk=\"");
        assert_eq!(give(raw, 200, json, "{}"), "\"e30=\"");
        assert_eq!(
            give(whole, 201, json, "[1]"),
            r#"{"request":{"method":"get","uri":"http://a/","headers":{}},"statusCode":201,"headers":{"content-type":"application/json"},"content":[1]}"#
        );
    }

    #[test]
    fn statuses_are_errors() {
        let plain = data!({"method": "get", "uri": "http://a"});
        let follows = data!({"method": "get", "uri": "http://a", "redirect": true});
        assert_eq!(
            give(plain.clone(), 404, "text/plain", "gone"),
            r#"{"type":"https://serverlessworkflow.io/spec/1.0.0/errors/communication","status":404,"title":"Not Found","detail":"gone"}"#
        );
        assert!(give(plain, 302, "text/plain", "").contains("\"title\":\"Found\""));
        assert_eq!(give(follows, 302, "text/plain", ""), "null");
    }
}
