//! `call: openapi` of DSL 1.0: an operation that a task describes itself.
//!
//! The function's metadata have `output` and `redirect`, as the task has them.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::{AuthScheme, Function};
use swirl_ports::CallRequest;

use super::{CallContext, OpenApi, Operation, check, security};
use crate::CallError;
use crate::types::service::{IDEMPOTENCY_KEY, TRACEPARENT};
use crate::types::task_answer::{Wanted, in_words, output};
use crate::types::{Clients, CompiledFunction, Context, Misfit, StaticValue};

/// Headers that aren't parameters of the operation.
const OWN_HEADERS: [&str; 3] = ["accept", IDEMPOTENCY_KEY, TRACEPARENT];

pub(super) struct TaskCall {
    operation: Operation,
    output: Option<String>,
    redirect: bool,
    parameters: check::Kept,
    /// Kept only for checking arguments.
    document: Option<Arc<OpenApi>>,
}

impl TaskCall {
    pub(super) fn new(
        function: &Function,
        operation: Operation,
        document: Option<Arc<OpenApi>>,
    ) -> TaskCall {
        let form = function.metadata.get("output");
        let redirect = function.metadata.get("redirect");
        let kept = document.as_deref();
        let kept = kept.map(|document| check::Kept::of(document, &operation));
        TaskCall {
            parameters: kept.unwrap_or_default(),
            operation,
            output: form.as_ref().and_then(Data::as_str).map(str::to_owned),
            redirect: redirect.as_ref().and_then(Data::as_bool) == Some(true),
            document,
        }
    }
}

#[async_trait]
impl CompiledFunction for TaskCall {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        if let Some(reason) = self.parameters.misfit(&self.operation, &request.arguments) {
            return Err(in_words(CallError::arguments(reason)));
        }
        let trace = request.trace.map(|trace| trace.to_string());
        let headers = trace.as_ref().map(|trace| (TRACEPARENT, trace.as_str()));
        let context = CallContext {
            idempotency_key: &request.key,
            timeout: Some(context.timeout),
            auth: context.auth,
            headers: headers.as_slice(),
            secrets: request.secrets.expose(),
        };
        let rest = &clients.rest;
        let asked = rest.ask(&self.operation, &request.arguments, &context, self.redirect);
        let done = asked.await.map_err(in_words)?;
        let sent = &done.request;
        let own = |name: &str| OWN_HEADERS.contains(&name);
        let plain = sent.headers.iter();
        let plain = plain.filter(|(name, value)| !value.is_sensitive() && !own(name.as_str()));
        let wanted = Wanted {
            output: self.output.as_deref(),
            redirect: self.redirect,
            method: &sent.method,
            url: &sent.url,
            headers: plain
                .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
                .collect(),
        };
        output(&wanted, &done.answer, &sent.secrets)
    }

    fn release_documents(&mut self) -> Result<(), String> {
        self.document = None;
        Ok(())
    }

    fn check(&self, arguments: &StaticValue) -> Vec<Misfit> {
        match &self.document {
            Some(document) => check::arguments(document, &self.operation, arguments),
            None => Vec::new(),
        }
    }

    fn check_auth(&self, auth: AuthScheme, arguments: &StaticValue) -> Option<String> {
        security::misfit(&self.operation, auth, arguments)
    }
}
