//! OpenAPI paths that are part of the definition itself (language 0.9, "Using Functions for OpenAPI Service
//! Invocations").
//!
//! They don't state the service's address, unless an operation or a path has `servers`. Otherwise the function's
//! `metadata.server` does. A function with neither can be deployed, but each call of it is an error.

use std::sync::Arc;

use serde_json::{Value, json};
use swirl_model::workflow::Function;

use super::OpenApi;
use super::described::RestFunction;
use crate::servers::unknown;
use crate::types::service::service_url;
use crate::types::{CompileResult, Documents, NOWHERE, Unaddressed};

/// The key in a function's `metadata` for the service's address.
const SERVER: &str = "server";

/// The id of the only operation, if it has none of its own.
const ID: &str = "inline";

pub(super) fn is_inline(function: &Function) -> bool {
    function.operation.starts_with('{')
}

/// The address in the function's metadata.
pub(crate) fn server(function: &Function) -> Result<Option<String>, String> {
    let Some(given) = function.metadata.get(SERVER) else {
        return Ok(None);
    };
    let text = given.as_str().ok_or("`metadata.server` must be a string")?;
    let url = service_url(text, "`metadata.server`")?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!(
            "`metadata.server` `{text}` must have no query and no fragment"
        ));
    }
    Ok(Some(text.to_owned()))
}

pub(super) fn compile(function: &Function, documents: &Documents<'_>) -> CompileResult {
    let mut paths: Value = serde_json::from_str(&function.operation)
        .map_err(|error| format!("the inline OpenAPI paths are not valid JSON: {error}"))?;
    let own = documents.server(function, None);
    let server = documents.server_or_own(function, None)?;
    let mut has_server = server.is_some();
    for item in paths.as_object_mut().into_iter().flatten() {
        let (_, item) = item;
        has_server |= item.get("servers").is_some();
        if let (Some(item), Some(_)) = (item.as_object_mut(), own) {
            item.remove("servers");
        }
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            let Some(operation) = operation.as_object_mut() else {
                continue;
            };
            has_server |= operation.contains_key("servers");
            operation.insert("operationId".to_owned(), json!(ID));
            if own.is_some() {
                operation.remove("servers");
            }
            // The function's `authRef` provides the credentials.
            operation.remove("security");
        }
    }
    // A document needs a server. This one is never used.
    let server = server.map_or_else(|| NOWHERE.to_owned(), |server| server.to_string());
    let server = server.trim_end_matches('/');
    let document = json!({"openapi": "3.1.0", "servers": [{"url": server}], "paths": paths});
    let document = OpenApi::parse(document.to_string().as_bytes(), "inline:")
        .map_err(|error| error.to_string())?;
    let operation = document.operation(ID).map_err(|error| error.to_string())?;
    let described = RestFunction::new(operation, Some(Arc::new(document)));
    if has_server {
        return Ok(Box::new(described));
    }
    let service = "the service of its inline OpenAPI document, which has no `servers`,";
    let reason = unknown(&function.name, service, "https://host");
    Ok(Unaddressed::wrap(Box::new(described), reason))
}
