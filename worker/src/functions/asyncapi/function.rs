//! `asyncapi` as a function type: `operation` is `<URI of an AsyncAPI document>#<operation id>`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use swirl_model::Data;
use swirl_model::workflow::{AuthScheme, Function};
use swirl_ports::CallRequest;

use super::check;
use super::compile::{self, Sending};
use super::document::Document;
use super::message::{Message, Parts};
use super::send::{self, Outgoing};
use crate::functions::service::{TRACEPARENT, in_time};
use crate::functions::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Known,
};
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
    let mut read: HashMap<&str, Result<Arc<Document>, String>> = HashMap::new();
    let mut compile = |function| {
        let (uri, id) = parts(function)?;
        let document = read.entry(uri).or_insert_with(|| {
            let content = documents.get(uri);
            let content = content.ok_or("it isn't among the definition's resources")?;
            Document::parse(content).map(Arc::new)
        });
        let document = document.as_ref();
        let sending = document
            .map_err(Clone::clone)
            .and_then(|document| compile::sending(document, id, &function.metadata))
            .map_err(|reason| format!("`{uri}`: {reason}"))?;
        let document = document.ok().filter(|_| documents.for_checks).cloned();
        Ok(Arc::new(AsyncapiFunction { sending, document }) as Compiled)
    };
    functions
        .iter()
        .map(|function| compile(*function))
        .collect()
}

struct AsyncapiFunction {
    sending: Sending,
    /// Kept only where arguments are checked.
    document: Option<Arc<Document>>,
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
        let sent = send::send(clients, sending, &outgoing, context.auth);
        in_time(context.timeout, &outgoing.what, sent).await
    }

    fn check(&self, arguments: &Known, _: Option<AuthScheme>) -> Vec<String> {
        match &self.document {
            Some(document) => check::arguments(document, &self.sending, arguments),
            None => Vec::new(),
        }
    }
}

fn outgoing<'a>(sending: &Sending, request: &'a CallRequest) -> Result<Outgoing<'a>, String> {
    let (parts, message, address) = filled(sending, Value::from(&request.arguments))?;
    Ok(Outgoing {
        what: send::what(&sending.server, &sending.method, &address),
        address,
        payload: message.encode(&parts.payload)?,
        content_type: message.content_type.clone(),
        headers: parts.header_texts()?,
        key: &request.key,
        secrets: request.secrets.expose(),
    })
}

/// The parts of a message, the one that they fit, and the address.
pub(super) fn filled(
    sending: &Sending,
    arguments: Value,
) -> Result<(Parts, &Message, String), String> {
    let parts = Parts::of(arguments, &sending.messages, sending.address.parameters())?;
    let mut refused = None;
    let fits = sending.messages.iter().find(|message| {
        let result = message.check(&parts.payload, &parts.headers);
        let fits = result.is_ok();
        refused = refused.take().or(result.err());
        fits
    });
    let message = fits.ok_or_else(|| {
        let reason = refused.unwrap_or_default();
        match sending.messages.len() {
            1 => reason,
            many => format!("none of the {many} messages fits; the first: {reason}"),
        }
    })?;
    let protocol = sending.server.protocol;
    let address = sending
        .address
        .fill(&parts.parameters, &parts.payload, protocol)?;
    Ok((parts, message, address))
}
