//! `odata` as a function type.

use ::url::Url;
use async_trait::async_trait;
use reqwest::Method;
use serde_json::Value;
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::{answer, url};
use crate::CallError;
use crate::http::shown;
use crate::types::service::{Ask, IDEMPOTENCY_KEY, TRACEPARENT, addressed, in_time};
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType,
    Unaddressed,
};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "odata",
    document: |_| None,
    compile,
};

struct OdataFunction {
    /// Includes the entity set, but neither key nor options.
    base: Url,
}

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    functions
        .iter()
        .map(|function| read(function, documents))
        .collect()
}

fn read(function: &Function, documents: &Documents<'_>) -> CompileResult {
    let operation = &function.operation;
    let parts = operation.split_once('#');
    let Some((service, set)) =
        parts.filter(|(service, set)| !service.is_empty() && !set.trim().is_empty())
    else {
        let reason = format!(
            "the operation `{operation}` must be the URL of an OData service, `#` and an entity set"
        );
        return Err(reason.into());
    };
    let (service, unaddressed) = addressed(function, documents, service, "the service")?;
    let base = url::entity_set(service, set.trim());
    let compiled = Box::new(OdataFunction { base }) as Compiled;
    Ok(match unaddressed {
        Some(reason) => Unaddressed::wrap(compiled, reason),
        None => compiled,
    })
}

#[async_trait]
impl CompiledFunction for OdataFunction {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let url = url::query(&self.base, &Value::from(&request.arguments)).map_err(|reason| {
            CallError::arguments(format!("GET {}: {reason}", shown(&self.base)))
        })?;
        let what = format!("GET {}", shown(&url));
        let trace = request.trace.map(|trace| trace.to_string());
        let mut headers = vec![
            ("accept", "application/json"),
            (IDEMPOTENCY_KEY, &request.key),
        ];
        headers.extend(trace.as_ref().map(|trace| (TRACEPARENT, trace.as_str())));
        let ask = Ask {
            method: Method::GET,
            url: &url,
            headers: &headers,
            body: None,
            follows: true,
            what: &what,
            secrets: request.secrets.expose(),
        };
        let exchange = async {
            let reply = clients.services.ask(&ask, context.auth).await?;
            answer::data(&reply, &what)
        };
        in_time(context.timeout, &what, exchange).await
    }
}
