//! OpenAPI paths that are part of the definition itself (language 0.9, "Using Functions for OpenAPI Service
//! Invocations").
//!
//! They don't state the service's address, unless an operation or a path has `servers`. Otherwise the function's
//! `metadata.server` does. A function with neither can be deployed, but each call of it is an error.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::OpenApi;
use super::described::RestFunction;
use crate::CallError;
use crate::types::service::service_url;
use crate::types::{Clients, CompileResult, CompiledFunction, Context, Known, Misfit};

/// The key in a function's `metadata` for the service's address.
const SERVER: &str = "server";

/// The id of the only operation, if it has none of its own.
const ID: &str = "inline";

pub(super) fn is_inline(function: &Function) -> bool {
    function.operation.starts_with('{')
}

/// The address in the function's metadata.
pub(super) fn server(function: &Function) -> Result<Option<String>, String> {
    let Some(given) = function.metadata.get(SERVER) else {
        return Ok(None);
    };
    let text = given.as_str().ok_or("`metadata.server` must be a text")?;
    let url = service_url(text, "`metadata.server`")?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!(
            "`metadata.server` `{text}` must have no query and no fragment"
        ));
    }
    Ok(Some(text.to_owned()))
}

pub(super) fn compile(function: &Function) -> CompileResult {
    let mut paths: Value = serde_json::from_str(&function.operation)
        .map_err(|error| format!("the inline OpenAPI paths are not valid JSON: {error}"))?;
    let server = server(function)?;
    let mut has_server = server.is_some();
    for item in paths.as_object_mut().into_iter().flatten() {
        let (_, item) = item;
        has_server |= item.get("servers").is_some();
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            let Some(operation) = operation.as_object_mut() else {
                continue;
            };
            has_server |= operation.contains_key("servers");
            operation.insert("operationId".to_owned(), json!(ID));
            // The function's `authRef` provides the credentials.
            operation.remove("security");
        }
    }
    // A document needs a server. This one is never used.
    let server = server.unwrap_or_else(|| "http://server.invalid".to_owned());
    let document = json!({"openapi": "3.1.0", "servers": [{"url": server}], "paths": paths});
    let document = OpenApi::parse(document.to_string().as_bytes(), "inline:")
        .map_err(|error| error.to_string())?;
    let operation = document.operation(ID).map_err(|error| error.to_string())?;
    let described = RestFunction::new(operation, Some(Arc::new(document)));
    if has_server {
        return Ok(Box::new(described));
    }
    Ok(Box::new(NoServer {
        name: function.name.to_string(),
        described,
    }))
}

/// A function that was deployed without its service's address.
struct NoServer {
    name: String,
    described: RestFunction,
}

#[async_trait]
impl CompiledFunction for NoServer {
    async fn call(&self, _: &Clients, _: &CallRequest, _: &Context<'_>) -> Result<Data, CallError> {
        let message = format!(
            "the function `{}` has an inline OpenAPI document without `servers`; say where the \
             service is with `metadata: {{server: \"https://host\"}}`",
            self.name
        );
        Err(CallError::arguments(message))
    }

    fn release_documents(&mut self) -> Result<(), String> {
        self.described.release_documents()
    }

    fn check(&self, arguments: &Known) -> Vec<Misfit> {
        self.described.check(arguments)
    }

    fn check_answer(&self, answer: &Known) -> Vec<String> {
        self.described.check_answer(answer)
    }
}
