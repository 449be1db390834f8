//! `asyncapi` as a function type: `operation` is `<URI of an AsyncAPI document>#<operation id>`.

use std::collections::HashMap;

use async_trait::async_trait;
use serde_json::Value;
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::arguments::{awaited, filled};
use super::bundle::Refused;
use super::compile::{self, Sending};
use super::document::{Document, Side};
use super::incoming::{Came, Incoming};
use super::outgoing::Outgoing;
use super::server::{Protocol, Server};
use super::{check, receive, send};
use crate::exchange;
use crate::types::service::{TRACEPARENT, in_time};
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Known,
    Misfit,
};
use crate::watch;
use crate::{CallError, CallErrorKind};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "asyncapi",
    document,
    compile,
};

fn document(function: &Function) -> Option<&str> {
    parts(function).ok().map(|(uri, _)| uri)
}

fn parts(function: &Function) -> Result<(&str, &str), String> {
    let operation = &function.operation;
    let parts = operation.split_once('#');
    parts
        .filter(|(uri, id)| !uri.is_empty() && !id.is_empty())
        .ok_or_else(|| {
            format!(
                "the operation `{operation}` must be the URI of an AsyncAPI document, `#` and the \
                 id of one of its operations"
            )
        })
}

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let mut read: HashMap<&str, Result<Document, String>> = HashMap::new();
    let mut compile = |function| {
        let (uri, id) = parts(function)?;
        let document = read.entry(uri).or_insert_with(|| {
            let content = documents.get(uri);
            let content = content.ok_or("it isn't among the definition's resources")?;
            Document::parse(content)
        });
        let whole = document
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|document| {
                let get = |uri: &str| documents.get(uri);
                document.whole(uri, id, get).map_err(|refused| match refused {
                Refused::Missing(other) => {
                    format!("it refers to `{other}`, which isn't among the definition's resources")
                }
                Refused::Wrong(reason) => reason,
            })
            });
        let compiled = whole.and_then(|document| {
            let sending = compile::sending(&document, id, &function.metadata)?;
            Ok((sending, document))
        });
        let (sending, document) = compiled.map_err(|reason| format!("`{uri}`: {reason}"))?;
        let document = Some(document);
        Ok(Box::new(AsyncapiFunction { sending, document }) as Compiled)
    };
    functions
        .iter()
        .map(|function| compile(*function))
        .collect()
}

/// The first missing document that is needed to find the operation.
pub(crate) fn missing(function: &Function, documents: &Documents<'_>) -> Option<String> {
    let (uri, id) = parts(function).ok()?;
    let document = Document::parse(documents.get(uri)?).ok()?;
    match document.whole(uri, id, |uri| documents.get(uri)) {
        Err(Refused::Missing(other)) => Some(other),
        _ => None,
    }
}

struct AsyncapiFunction {
    sending: Sending,
    /// Kept only for checking arguments.
    document: Option<Document>,
}

#[async_trait]
impl CompiledFunction for AsyncapiFunction {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let sending = &self.sending;
        let refuse =
            |reason: String| CallError::arguments(format!("operation `{}`: {reason}", sending.id));
        if sending.side == Side::Subscribe {
            let address = awaited(sending, Value::from(&request.arguments)).map_err(refuse)?;
            let limit = clients.services.http().config().response_bytes_max;
            let incoming = Incoming::new(&sending.server, address, request, limit);
            note(&sending.server, &incoming.address, true);
            watch::sending(|| waiting(sending, &incoming.address)).await;
            let waited = receive::receive(clients, sending, &incoming, context.auth);
            let came = in_time(context.timeout, &incoming.what, waited).await?;
            return read(sending, &came, &incoming.what);
        }
        let mut outgoing = outgoing(sending, request).map_err(refuse)?;
        let is_given = |(name, _): &(String, String)| name.eq_ignore_ascii_case(TRACEPARENT);
        if let Some(trace) = request.trace
            && !outgoing.headers.iter().any(is_given)
        {
            let header = (TRACEPARENT.to_owned(), trace.to_string());
            outgoing.headers.push(header);
        }
        let (size, limit) = (
            outgoing.payload.len(),
            clients.services.http().config().request_bytes_max,
        );
        if size > limit {
            let message = format!(
                "{}: the payload has {size} bytes; at most {limit} are sent",
                outgoing.what
            );
            return Err(CallError::new(CallErrorKind::Limit, message));
        }
        note(&sending.server, &outgoing.address, false);
        if sending.server.protocol != Protocol::Http {
            watch::sending(|| outgoing.seen(&sending.server)).await;
        }
        let sent = send::send(clients, sending, &outgoing, context.auth);
        in_time(context.timeout, &outgoing.what, sent).await
    }

    fn check_answer(&self, answer: &Known) -> Vec<String> {
        match &self.document {
            Some(document) if self.sending.side == Side::Subscribe => {
                check::message(document, &self.sending, answer)
            }
            _ => Vec::new(),
        }
    }

    fn release_documents(&mut self) -> Result<(), String> {
        self.document = None;
        Ok(())
    }

    fn check(&self, arguments: &Known) -> Vec<Misfit> {
        match &self.document {
            Some(document) => check::arguments(document, &self.sending, arguments),
            None => Vec::new(),
        }
    }
}

/// Records the exchange. For HTTP the client does so.
fn note(server: &Server, address: &str, receives: bool) {
    if let Some(system) = server.protocol.system() {
        let host = server.host();
        exchange::note_message(system, (&host, server.port()), address, receives);
    }
}

/// An awaited message: only the subscription is sent.
fn waiting(sending: &Sending, address: &str) -> watch::Sending {
    watch::Sending {
        protocol: sending.server.protocol.as_str(),
        target: format!(
            "wait for a message at `{address}` of {}:{}",
            sending.server.host(),
            sending.server.port()
        ),
        headers: Vec::new(),
        body: watch::Content::None,
    }
}

fn outgoing<'a>(sending: &Sending, request: &'a CallRequest) -> Result<Outgoing<'a>, String> {
    let (parts, message, address) = filled(sending, Value::from(&request.arguments))?;
    Ok(Outgoing {
        what: sending
            .server
            .message_to(&sending.bindings.method, &address),
        address,
        payload: message.encode(&parts.payload)?,
        content_type: message.content_type.clone(),
        headers: parts.header_texts()?,
        partition_key: parts.key,
        key: &request.key,
        secrets: request.secrets.expose(),
    })
}

/// The first message of the operation that this payload fits.
fn read(sending: &Sending, came: &Came, what: &str) -> Result<Data, CallError> {
    let mut refused = None;
    for message in &sending.messages {
        match message.decode(&came.payload) {
            Ok(data) => return Ok(data),
            Err(reason) => refused = refused.or(Some(reason)),
        }
    }
    let reason = refused.unwrap_or_default();
    let message = match sending.messages.len() {
        1 => format!("{what}: {reason}"),
        many => format!("{what}: it fits none of the {many} messages; the first: {reason}"),
    };
    Err(CallError::new(CallErrorKind::Response, message))
}
