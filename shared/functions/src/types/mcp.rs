//! `call: mcp` of DSL 1.0, over HTTP or over the standard input and output of a process: a session of the Model Context
//! Protocol for each call.
//!
//! The function's operation is the method; `protocolVersion` is in its metadata, and `transport` if it is `stdio`. The
//! arguments are `endpoint` and `headers`, or `stdio`; `client`; and `parameters`, with their expressions evaluated.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::http::request::pairs;
use super::json_rpc::{Peer, data, failed, has_response, in_words, request as request_of};
use super::process::{ProcessKind, Read, Session};
use super::service::{TRACEPARENT, in_time, service_url};
use super::{Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType};
use crate::CallError;
use crate::auth::redact;
use crate::http::shown;
use crate::problem::{FaultyPart, Unusable};
use crate::watch::{self, Content, Sending};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "mcp",
    document: |_| None,
    compile,
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// The numbers of the requests of a session.
const FIRST: &str = "0";
const SECOND: &str = "1";
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The end of a session isn't waited for longer than this.
const FAREWELL: Duration = Duration::from_secs(2);

/// Whether the server is a process.
pub(super) fn is_process(function: &Function) -> bool {
    let transport = function.metadata.get("transport");
    transport.is_some_and(|transport| transport.as_str() == Some("stdio"))
}

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let each = functions.iter().map(|function| {
        if is_process(function) && !documents.settings.processes.allows(ProcessKind::Mcp) {
            let reason = "it runs a process of the kind `mcp`, which the operator doesn't allow: \
                          `functions.processes` (or `--process mcp`)";
            return Err(Unusable::at(FaultyPart::Transport, reason.to_owned()));
        }
        let version = function.metadata.get("protocolVersion");
        let version = version.map(|version| version.to_text());
        Ok(Box::new(McpCall {
            method: function.operation.clone(),
            version: version.unwrap_or_default(),
        }) as Compiled)
    });
    each.collect()
}

struct McpCall {
    method: String,
    /// The version of the protocol that is proposed to the server.
    version: String,
}

#[async_trait]
impl CompiledFunction for McpCall {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        if let Some(described) = request.arguments.get("stdio") {
            let what = format!("MCP {} of `{}`", self.method, request.function.name);
            let session = self.process(clients, request, &described, &what);
            return in_time(context.timeout, &what, session)
                .await
                .map_err(in_words);
        }
        let arguments = Value::from(&request.arguments);
        let refuse = |reason: String| in_words(CallError::arguments(reason));
        let endpoint = arguments.get("endpoint").and_then(Value::as_str);
        let url = service_url(endpoint.unwrap_or(""), "the endpoint").map_err(refuse)?;
        let what = format!("MCP {} at {}", self.method, shown(&url));
        let mut headers = pairs(arguments.get("headers"), "headers").map_err(refuse)?;
        if let Some(trace) = request.trace {
            headers.push((TRACEPARENT.to_owned(), trace.to_string()));
        }
        let services = clients.services.until(has_response);
        let peer = Peer {
            services: &services,
            url: &url,
            headers,
            auth: context.auth,
            secrets: request.secrets.expose(),
            what: &what,
        };
        let done = in_time(context.timeout, &what, self.session(peer, &arguments)).await;
        done.map_err(in_words)
    }
}

impl McpCall {
    async fn session(&self, mut peer: Peer<'_>, arguments: &Value) -> Result<Data, CallError> {
        let proposal = self.proposal(arguments);
        let begun = peer.ask(FIRST, "initialize", Some(&proposal)).await?;
        let agreed = begun.results.first();
        let agreed = agreed.and_then(|result| result.get("protocolVersion")?.as_str());
        let agreed = agreed.unwrap_or(&self.version).to_owned();
        peer.headers.push((VERSION.to_owned(), agreed));
        let session = begun.headers.get(SESSION);
        let session = session.and_then(|id| id.to_str().ok()).map(str::to_owned);
        if let Some(session) = &session {
            peer.headers.push((SESSION.to_owned(), session.clone()));
        }
        let result = self.within(&peer, arguments).await;
        if session.is_some() {
            // The server forgets sessions by itself, so nothing depends on this.
            let farewell = peer.send(Method::DELETE, None);
            let _ = tokio::time::timeout(FAREWELL, farewell).await;
        }
        result
    }

    fn proposal(&self, arguments: &Value) -> Value {
        let client = arguments.get("client").cloned();
        let own = || json!({"name": "swirl", "version": env!("CARGO_PKG_VERSION")});
        json!({
            "protocolVersion": self.version, "capabilities": {}, "clientInfo": client.unwrap_or_else(own),
        })
    }

    /// A session with a process that is started for it.
    async fn process(
        &self,
        clients: &Clients,
        request: &CallRequest,
        described: &Data,
        what: &str,
    ) -> Result<Data, CallError> {
        let arguments = Value::from(&request.arguments);
        watch::sending(|| Sending {
            protocol: "process",
            target: described.get("command").unwrap_or_default().to_text(),
            headers: Vec::new(),
            body: Content::None,
        })
        .await;
        let secrets = request.secrets.expose();
        let shown = |mut error: CallError| {
            error.message = redact(&error.message, secrets);
            error
        };
        let session = Session::start(&clients.processes, described, what).await;
        let mut session = session.map_err(shown)?;
        let mut ask = async |id: &str, method: &str, params: Option<&Value>| {
            let message = request_of(id, method, params);
            let line = match id {
                // Nothing follows the first answer, so the notification goes before the second question.
                FIRST => message.to_string(),
                _ => format!("{INITIALIZED}\n{message}"),
            };
            let response = session.ask(&line, |line| read(line, id)).await;
            response.map_err(shown).and_then(|response| {
                let result = response.get("result").cloned();
                result.ok_or_else(|| failed(response.get("error"), what, secrets))
            })
        };
        ask(FIRST, "initialize", Some(&self.proposal(&arguments))).await?;
        let parameters = arguments.get("parameters").filter(|given| !given.is_null());
        let result = ask(SECOND, &self.method, parameters).await?;
        session.close(FAREWELL).await;
        Ok(data(&result))
    }

    async fn within(&self, peer: &Peer<'_>, arguments: &Value) -> Result<Data, CallError> {
        peer.notify("notifications/initialized").await?;
        let parameters = arguments.get("parameters").filter(|given| !given.is_null());
        let done = peer.ask(SECOND, &self.method, parameters).await?;
        let result = done.results.last();
        Ok(result.map(data).unwrap_or_default())
    }
}

/// A line of a server that is a process. Other lines than messages are ignored.
fn read(line: &str, id: &str) -> Read<Value> {
    let message: Value = serde_json::from_str(line).unwrap_or_default();
    let number = message.get("id").filter(|number| !number.is_null());
    match (message.get("method").and_then(Value::as_str), number) {
        (None, Some(number)) if number.as_str() == Some(id) => Read::Answer(message),
        (Some("ping"), Some(number)) => {
            let reply = json!({"jsonrpc": "2.0", "id": number, "result": {}});
            Read::Reply(reply.to_string())
        }
        (Some(_), Some(number)) => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let reply = json!({"jsonrpc": "2.0", "id": number, "error": error});
            Read::Reply(reply.to_string())
        }
        _ => Read::Other,
    }
}
