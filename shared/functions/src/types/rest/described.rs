//! A compiled function that an OpenAPI document describes.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::AuthScheme;
use swirl_ports::CallRequest;

use super::{CallContext, OpenApi, Operation, check, security};
use crate::CallError;
use crate::types::service::TRACEPARENT;
use crate::types::{Clients, CompiledFunction, Context, Misfit, StaticValue};

pub(super) struct RestFunction {
    operation: Operation,
    /// Kept only for checking arguments.
    document: Option<Arc<OpenApi>>,
}

impl RestFunction {
    pub(super) fn new(operation: Operation, document: Option<Arc<OpenApi>>) -> RestFunction {
        RestFunction {
            operation,
            document,
        }
    }
}

#[async_trait]
impl CompiledFunction for RestFunction {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
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
        clients
            .rest
            .call(&self.operation, &request.arguments, &context)
            .await
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

    fn check_answer(&self, answer: &StaticValue) -> Vec<String> {
        match &self.document {
            Some(document) => check::answer(document, &self.operation.id, answer),
            None => Vec::new(),
        }
    }
}
