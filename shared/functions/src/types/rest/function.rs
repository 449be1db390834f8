//! `rest` as a function type: `operation` is `<URI of an OpenAPI document>#<operation id>`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::{AuthScheme, Function};
use swirl_ports::CallRequest;

use super::{CallContext, Library, OpenApi, Operation, Refused, check, inline, security};
use crate::CallError;
use crate::types::service::TRACEPARENT;
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Known,
    Misfit,
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

pub(super) fn parts(function: &Function) -> Result<(&str, &str), String> {
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
    let mut library = Library::default();
    let operations: Vec<Option<Result<Operation, String>>> = functions
        .iter()
        .map(|function| {
            let is_inline = inline::is_inline(function);
            (!is_inline).then(|| operation(&mut library, function, documents))
        })
        .collect();
    let read = match documents.for_checks {
        true => library.shared(),
        false => HashMap::new(),
    };
    let compiled = functions.iter().zip(operations);
    compiled
        .map(|(function, operation)| match operation {
            None => inline::compile(function, documents.for_checks),
            Some(operation) => {
                let (uri, _) = parts(function)?;
                let document = read.get(uri).cloned();
                Ok(Arc::new(RestFunction::new(operation?, document)) as Compiled)
            }
        })
        .collect()
}

fn operation(
    library: &mut Library,
    function: &Function,
    documents: &Documents<'_>,
) -> Result<Operation, String> {
    let found = library.operation(function, documents);
    found.map_err(|refused| match refused {
        Refused::Wrong(reason) => reason,
        Refused::Missing(uri) => {
            format!("`{uri}`, which its document refers to, isn't among the definition's resources")
        }
    })
}

pub(super) struct RestFunction {
    operation: Operation,
    /// Kept only where arguments are checked.
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

    fn check(&self, arguments: &Known) -> Vec<Misfit> {
        match &self.document {
            Some(document) => check::arguments(document, &self.operation, arguments),
            None => Vec::new(),
        }
    }

    fn check_auth(&self, auth: AuthScheme, arguments: &Known) -> Option<String> {
        security::misfit(&self.operation, auth, arguments)
    }

    fn check_answer(&self, answer: &Known) -> Vec<String> {
        match &self.document {
            Some(document) => check::answer(document, &self.operation.id, answer),
            None => Vec::new(),
        }
    }
}
