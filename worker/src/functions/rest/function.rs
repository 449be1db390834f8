//! `rest` as a function type: `operation` is `<URI of an OpenAPI document>#<operation id>`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::{CallContext, OpenApi, Operation, inline};
use crate::CallError;
use crate::functions::service::TRACEPARENT;
use crate::functions::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType,
};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "rest",
    document,
    compile,
};

fn document(function: &Function) -> Option<&str> {
    if inline::is_inline(function) {
        return None;
    }
    parts(function).ok().map(|(uri, _)| uri)
}

fn parts(function: &Function) -> Result<(&str, &str), String> {
    let operation = &function.operation;
    let parts = operation.split_once('#');
    let Some((uri, id)) = parts.filter(|(uri, id)| !uri.is_empty() && !id.is_empty()) else {
        return Err(format!(
            "the operation `{operation}` must be the URI of an OpenAPI document, `#` and the id of \
             one of its operations"
        ));
    };
    Ok((uri, id))
}

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let mut read: HashMap<&str, Result<OpenApi, String>> = HashMap::new();
    let mut compile = |function| {
        if inline::is_inline(function) {
            return inline::compile(function);
        }
        let (uri, id) = parts(function)?;
        let document = read.entry(uri).or_insert_with(|| {
            let content = documents
                .get(uri)
                .ok_or("it isn't among the definition's resources")?;
            OpenApi::parse(content.as_bytes(), uri).map_err(|error| error.to_string())
        });
        let document = document
            .as_ref()
            .map_err(|reason| format!("`{uri}`: {reason}"))?;
        let operation = document
            .operation(id)
            .map_err(|error| format!("`{uri}`: {error}"))?;
        Ok(Arc::new(RestFunction(operation)) as Compiled)
    };
    functions
        .iter()
        .map(|function| compile(*function))
        .collect()
}

pub(super) struct RestFunction(pub(super) Operation);

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
            .call(&self.0, &request.arguments, &context)
            .await
    }
}
