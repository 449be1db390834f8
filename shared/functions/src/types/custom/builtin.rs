//! Operations of type `custom` that need no connector (docs/language.md#decision-99): `sysout` logs a message,
//! `rest:METHOD:URL` and `http` call a service without a document.

use async_trait::async_trait;
use serde_json::{Map, Value};
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;
use url::Url;

use crate::CallError;
use crate::servers::unknown;
use crate::types::fits::{self, nearest};
use crate::types::rest::{
    BodyKind, CallContext, Location, Operation, Parameter, RequestBody, Style,
};
use crate::types::service::{TRACEPARENT, service_url};
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, Misfit, NOWHERE,
    StaticValue, Unaddressed,
};

/// The content types that are accepted in an answer.
const ACCEPT: &str = "application/json, text/plain;q=0.9, */*;q=0.8";

const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// The levels of `sysout:LEVEL`, with the names that loggers use.
const LEVELS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR"];

/// The target of `sysout` log entries, for log filters.
pub const SYSOUT_TARGET: &str = "swirl_functions::sysout";

/// The prefixes with which other runtimes mark arguments for headers and the query.
const PREFIXES: [(&str, Location); 2] =
    [("HEADER_", Location::Header), ("QUERY_", Location::Query)];

/// The key in a function's `metadata` that has all arguments sent as the body, whatever their names.
const AS_BODY: &str = "argumentsAreBody";

/// Whether the operation logs instead of calling a service.
pub fn is_sysout(operation: &str) -> bool {
    let word = operation.split(':').next().unwrap_or_default();
    word.trim().eq_ignore_ascii_case("sysout")
}

/// Finds a built-in operation.
pub(super) fn find(function: &Function, documents: &Documents<'_>) -> Option<CompileResult> {
    let operation = function.operation.trim();
    if is_sysout(operation) {
        return Some(sysout(operation));
    }
    let (word, rest) = operation.split_once(':').unwrap_or((operation, ""));
    match word.to_ascii_lowercase().as_str() {
        "rest" => Some(direct(function, documents, operation, rest)),
        "http" if rest.is_empty() => Some(Ok(Box::new(Http) as Compiled)),
        _ => None,
    }
}

fn sysout(operation: &str) -> CompileResult {
    let level = operation
        .split_once(':')
        .map_or("INFO", |(_, level)| level.trim());
    let level = LEVELS
        .iter()
        .find(|known| known.eq_ignore_ascii_case(level));
    let level = *level.ok_or_else(|| {
        format!(
            "the operation `{operation}` must be `sysout` or `sysout:` and one of {}",
            LEVELS.join(", ")
        )
    })?;
    Ok(Box::new(Sysout { level }) as Compiled)
}

struct Sysout {
    level: &'static str,
}

#[async_trait]
impl CompiledFunction for Sysout {
    async fn call(
        &self,
        _clients: &Clients,
        request: &CallRequest,
        _context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let message = request.arguments.get("message");
        let message = message
            .unwrap_or_else(|| request.arguments.clone())
            .to_text();
        // The runtime writes the log itself, so secrets are removed (docs/language.md#decision-84).
        let message = one_line(&request.secrets.text(&message));
        let workflow = &request.definition.workflow;
        match self.level {
            "TRACE" => tracing::trace!(target: SYSOUT_TARGET, %workflow, "{message}"),
            "DEBUG" => tracing::debug!(target: SYSOUT_TARGET, %workflow, "{message}"),
            "WARN" | "WARNING" => tracing::warn!(target: SYSOUT_TARGET, %workflow, "{message}"),
            "ERROR" => tracing::error!(target: SYSOUT_TARGET, %workflow, "{message}"),
            _ => tracing::info!(target: SYSOUT_TARGET, %workflow, "{message}"),
        }
        Ok(Data::NULL)
    }
}

/// A message whose data cannot begin another line of the log, or control a terminal. Its line breaks stay visible.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for c in message.chars() {
        match c {
            '\t' => line.push(c),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                line.extend(c.escape_default());
            }
            c => line.push(c),
        }
    }
    line
}

/// `rest:METHOD:URL`; the URL may have `{parameters}`.
struct Direct {
    id: String,
    method: &'static str,
    server: String,
    path: String,
    names: Vec<String>,
    /// The arguments as a whole are the body, and no name has a meaning of its own.
    as_body: bool,
}

fn direct(
    function: &Function,
    documents: &Documents<'_>,
    operation: &str,
    rest: &str,
) -> CompileResult {
    let (method, url) = rest.split_once(':').unwrap_or((rest, ""));
    let method = method_of(method).ok_or_else(|| {
        format!(
            "the operation `{operation}` must be `rest:METHOD:URL`, with one of {}",
            METHODS.join(", ")
        )
    })?;
    let given = match (documents.server(function, None), parts(url)) {
        (Some(server), _) => Some(server.clone()),
        (None, Some(_)) => None,
        (None, None) => documents.server_or_own(function, None)?,
    };
    let given = given.map(|server| server.as_str().trim_end_matches('/').to_owned());
    let is_path = url.trim().starts_with('/') || url.trim().starts_with('{');
    let (server, path, unaddressed) = match (given, parts(url)) {
        (Some(given), found) => {
            let path = found.map_or(url.trim(), |(_, path)| path);
            (given, path.to_owned(), None)
        }
        (None, Some((server, path))) => (server.to_owned(), path.to_owned(), None),
        (None, None) if is_path || !url.contains("://") && !url.trim().is_empty() => {
            let service = format!("the host of `{}`", url.trim());
            let reason = unknown(&function.name, &service, "http://host");
            (NOWHERE.to_owned(), url.trim().to_owned(), Some(reason))
        }
        (None, None) => {
            let method = method.to_ascii_lowercase();
            let reason = format!(
                "the operation `{operation}` needs a URL or a path, such as `rest:{method}:http://host/path`"
            );
            return Err(reason.into());
        }
    };
    let path = match path.starts_with(['/', '?']) || path.is_empty() {
        true => path,
        false => format!("/{path}"),
    };
    let as_body = function.metadata.get(AS_BODY);
    let as_body = as_body.is_some_and(|flag| flag.to_text().eq_ignore_ascii_case("true"));
    let as_body = as_body && has_body(method);
    let mut names: Vec<String> = Vec::new();
    for part in path.split('{').skip(1).filter(|_| !as_body) {
        if let Some((name, _)) = part.split_once('}')
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    let compiled = Box::new(Direct {
        id: operation.to_owned(),
        method,
        server,
        path,
        names,
        as_body,
    }) as Compiled;
    Ok(match unaddressed {
        Some(reason) => Unaddressed::wrap(compiled, reason),
        None => compiled,
    })
}

fn method_of(word: &str) -> Option<&'static str> {
    let known = METHODS.iter();
    known
        .copied()
        .find(|known| known.eq_ignore_ascii_case(word.trim()))
}

/// Splits `http://host:port` from the rest. Braces of parameters aren't escaped as they would be in a parsed URL.
fn parts(url: &str) -> Option<(&str, &str)> {
    let url = url.trim();
    let begin = url.find("://")? + 3;
    let end = url[begin..]
        .find(['/', '?'])
        .map_or(url.len(), |at| begin + at);
    let server = Url::parse(&url[..end]).ok()?;
    (matches!(server.scheme(), "http" | "https") && server.has_host()).then(|| url.split_at(end))
}

fn has_body(method: &str) -> bool {
    !matches!(method, "DELETE" | "GET" | "HEAD" | "OPTIONS")
}

/// An operation that consists only of its arguments.
fn operation(id: &str, method: &str, server: &str, path: &str) -> Operation {
    Operation {
        id: id.to_owned(),
        method: method.to_owned(),
        server: server.to_owned(),
        path: path.to_owned(),
        parameters: Vec::new(),
        body: None,
        accept: ACCEPT.to_owned(),
        security: Vec::new(),
    }
}

fn parameter(name: &str, location: Location) -> Parameter {
    Parameter {
        name: name.to_owned(),
        location,
        required: location == Location::Path,
        style: match location {
            Location::Path | Location::Header => Style::Simple,
            Location::Query | Location::Cookie => Style::Form,
        },
        explode: true,
        allow_reserved: false,
        json: false,
        secret: false,
    }
}

fn json_body(members: bool) -> RequestBody {
    RequestBody {
        kind: BodyKind::Json,
        content_type: "application/json".to_owned(),
        required: false,
        whole: vec!["body".to_owned()],
        members,
        properties: Vec::new(),
    }
}

fn object(arguments: &Data, id: &str) -> Result<Map<String, Value>, CallError> {
    match Value::from(arguments) {
        Value::Null => Ok(Map::new()),
        Value::Object(members) => Ok(members),
        _ => {
            let gave = arguments.kind_in_words();
            let message =
                format!("operation `{id}`: the arguments must be an object, but are {gave}");
            Err(CallError::arguments(message))
        }
    }
}

impl Direct {
    /// Maps arguments: those that the URL names go into the URL, `HEADER_NAME` and `QUERY_NAME` go where they say, and
    /// all others go into the query of a request without a body, or else into the body.
    fn request(&self, arguments: &Data) -> Result<(Operation, Data), CallError> {
        let mut operation = operation(&self.id, self.method, &self.server, &self.path);
        let mut sent = Map::new();
        if self.as_body {
            let body = match arguments.is_null() {
                true => Value::Object(Map::new()),
                false => Value::from(arguments),
            };
            sent.insert("body".to_owned(), body);
            operation.body = Some(json_body(false));
            return Ok((operation, Data::from(Value::Object(sent))));
        }
        for name in &self.names {
            operation.parameters.push(parameter(name, Location::Path));
        }
        for (name, value) in object(arguments, &self.id)? {
            let marked = PREFIXES.iter().find_map(|(prefix, location)| {
                Some((name.strip_prefix(prefix)?.to_owned(), *location))
            });
            if self.names.contains(&name) {
                sent.insert(format!("path.{name}"), value);
            } else if let Some((name, location)) = marked {
                sent.insert(format!("{}.{name}", location.name()), value);
                operation.parameters.push(parameter(&name, location));
            } else if has_body(self.method) {
                sent.insert(name, value);
            } else {
                sent.insert(format!("query.{name}"), value);
                operation.parameters.push(parameter(&name, Location::Query));
            }
        }
        operation.body = has_body(self.method).then(|| json_body(true));
        Ok((operation, Data::from(Value::Object(sent))))
    }
}

#[async_trait]
impl CompiledFunction for Direct {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let (operation, arguments) = self.request(&request.arguments)?;
        call(clients, request, context, &operation, &arguments).await
    }

    fn check(&self, arguments: &StaticValue) -> Vec<Misfit> {
        let given: Vec<&str> = match arguments {
            _ if self.as_body => return Vec::new(),
            StaticValue::Unknown => return Vec::new(),
            StaticValue::Null => Vec::new(),
            StaticValue::Object(members) => {
                let members = members
                    .iter()
                    .filter(|(_, value)| *value != StaticValue::Null);
                members.map(|(name, _)| name.as_str()).collect()
            }
            other => {
                let kind = other.kind();
                return vec![format!("the arguments must be an object, but are {kind}").into()];
            }
        };
        let is_known = |name: &&str| self.names.iter().any(|known| known == name);
        let strays = || given.iter().copied().filter(|name| !is_known(name));
        let mut missing: Vec<&String> = self.names.iter().collect();
        missing.retain(|name| !given.contains(&name.as_str()));
        let missing = missing.into_iter().map(|name| {
            let what = format!("the argument `{name}`, which the URL names,");
            fits::missing(&what, name, nearest(name, strays())).into()
        });
        missing.collect()
    }
}

/// `http`: everything is in the arguments: `method`, `url`, `headers`, `query` and `body`.
struct Http;

impl Http {
    fn request(arguments: &Data) -> Result<(Operation, Data), CallError> {
        let refuse = |message: String| CallError::arguments(format!("operation `http`: {message}"));
        let mut given = object(arguments, "http")?;
        let text = |value: Value, name: &str| match value {
            Value::String(text) => Ok(text),
            _ => Err(refuse(format!("`{name}` must be a string"))),
        };
        let url = ["url", "uri", "endpoint"]
            .iter()
            .find_map(|name| given.shift_remove(*name));
        let url = url.ok_or_else(|| refuse("the argument `url` is missing".to_owned()))?;
        let url = service_url(&text(url, "url")?, "the URL").map_err(refuse)?;
        let method = match given.shift_remove("method") {
            Some(method) => text(method, "method")?,
            None => "GET".to_owned(),
        };
        let method = method_of(&method)
            .ok_or_else(|| refuse(format!("`{method}` is not one of {}", METHODS.join(", "))))?;
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let mut operation = operation("http", method, &url.origin().ascii_serialization(), &path);
        let mut sent = Map::new();
        for (name, location) in [("headers", Location::Header), ("query", Location::Query)] {
            let members = match given.shift_remove(name) {
                None | Some(Value::Null) => continue,
                Some(Value::Object(members)) => members,
                Some(_) => return Err(refuse(format!("`{name}` must be an object"))),
            };
            for (name, value) in members {
                sent.insert(format!("{}.{name}", location.name()), value);
                operation.parameters.push(parameter(&name, location));
            }
        }
        if let Some(body) = given.shift_remove("body").filter(|body| !body.is_null()) {
            sent.insert("body".to_owned(), body);
            operation.body = Some(json_body(false));
        }
        if let Some(name) = given.keys().next() {
            let message = format!(
                "there is no argument `{name}`: they are `method`, `url`, `headers`, `query` and `body`"
            );
            return Err(refuse(message));
        }
        Ok((operation, Data::from(Value::Object(sent))))
    }
}

#[async_trait]
impl CompiledFunction for Http {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let (operation, arguments) = Http::request(&request.arguments)?;
        call(clients, request, context, &operation, &arguments).await
    }
}

async fn call(
    clients: &Clients,
    request: &CallRequest,
    context: &Context<'_>,
    operation: &Operation,
    arguments: &Data,
) -> Result<Data, CallError> {
    let trace = request.trace.map(|trace| trace.to_string());
    let headers = trace.as_ref().map(|trace| (TRACEPARENT, trace.as_str()));
    let context = CallContext {
        idempotency_key: &request.key,
        timeout: Some(context.timeout),
        auth: context.auth,
        headers: headers.as_slice(),
        secrets: request.secrets.expose(),
    };
    clients.rest.call(operation, arguments, &context).await
}

#[cfg(test)]
mod tests;
