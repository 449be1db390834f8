//! `asyncapi` as a function type: `operation` is `<URI of an AsyncAPI document>#<operation id>`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::arguments::{awaited, filled};
use super::bundle::Refused;
use super::compile::{self, Sending};
use super::document::{Document, Side};
use super::incoming::Incoming;
use super::message::first_fitting;
use super::outgoing::Outgoing;
use super::server::{Protocol, Server};
use super::taking::Taking;
use super::{check, open, receive, send};
use crate::exchange;
use crate::problem::Unusable;
use crate::servers::unknown;
use crate::types::service::{TRACEPARENT, in_time};
use crate::types::task_answer::in_words;
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Misfit,
    StaticValue, Unaddressed,
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

fn compile<'f>(functions: &[&'f Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let mut read: HashMap<&'f str, Result<Document, String>> = HashMap::new();
    let mut compile = |function: &'f Function| {
        let (uri, id) = parts(function)?;
        let document = read.entry(uri).or_insert_with(|| {
            let content = documents.get(uri);
            let content = content.ok_or("it isn't among the definition's resources")?;
            Document::parse(content)
        });
        let whole = document
            .as_ref()
            .map_err(|reason| Unusable::from(reason.clone()))
            .and_then(|document| {
                let get = |uri: &str| documents.get(uri);
                document
                    .whole(uri, id, get)
                    .map_err(|refused| match refused {
                        Refused::Missing(other) => format!(
                            "it refers to `{other}`, which isn't among the definition's resources"
                        )
                        .into(),
                        Refused::Wrong(reason) => reason.into(),
                    })
            });
        let compiled = whole.and_then(|document| {
            let given = documents.server(function, Some(uri));
            let servers = &documents.settings.servers;
            let (sending, is_unknown) = compile::sending(
                &document,
                id,
                (&function.metadata, !function.place.is_empty()),
                given,
                servers,
            )?;
            Ok((sending, is_unknown, document))
        });
        let (sending, is_unknown, document) =
            compiled.map_err(|why: Unusable| why.in_document(uri))?;
        let document = Some(document);
        let sending = Arc::new(sending);
        let compiled = Box::new(AsyncapiFunction { sending, document }) as Compiled;
        Ok(match is_unknown {
            true => {
                let service = format!("the server of `{uri}`, which names none,");
                let reason = unknown(&function.name, &service, "nats://host:port");
                Unaddressed::wrap(compiled, reason)
            }
            false => compiled,
        })
    };
    functions.iter().map(|function| compile(function)).collect()
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
    sending: Arc<Sending>,
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
        let done = self.perform(clients, request, context).await;
        match self.sending.of_task {
            true => done.map_err(in_words),
            false => done,
        }
    }

    fn check_answer(&self, answer: &StaticValue) -> Vec<String> {
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

    fn check(&self, arguments: &StaticValue) -> Vec<Misfit> {
        match &self.document {
            Some(document) => check::arguments(document, &self.sending, arguments),
            None => Vec::new(),
        }
    }
}

impl AsyncapiFunction {
    async fn perform(
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
            let rule = request.consumes.as_deref();
            let number = rule.and_then(|rule| rule.subscription());
            if let (Some(rule), Some(number), false) = (rule, number, sending.keeps_messages()) {
                note(&sending.server, &address, true);
                watch::sending(|| waiting(sending, &address)).await;
                let auth = context.auth;
                let taken = open::take(clients, sending, request, rule, number, &address, auth);
                let what = sending.server.message_from(&address);
                return in_time(context.timeout, &what, taken).await;
            }
            let taking = rule.map(|rule| Taking::new(rule, sending, limit));
            if let Some(taking) = &taking
                && taking.is_over()?
            {
                return Ok(Data::array(Vec::new()));
            }
            let incoming = Incoming::new(&sending.server, address, request, limit, taking.as_ref());
            note(&sending.server, &incoming.address, true);
            watch::sending(|| waiting(sending, &incoming.address)).await;
            let waited = receive::receive(clients, sending, &incoming, context.auth);
            in_time(context.timeout, &incoming.what, waited).await?;
            let came = incoming.came().unwrap_or_default();
            let what = incoming.what.clone();
            drop(incoming);
            return match taking {
                Some(taking) => Ok(taking.into_list()),
                None => Ok(first_fitting(&sending.messages, &came, &what)?.0),
            };
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
