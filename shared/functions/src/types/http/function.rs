//! `http` as a function type.

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::request::{self, Template};
use crate::CallError;
use crate::http::shown;
use crate::servers::unknown;
use crate::types::rest::answer;
use crate::types::service::{Ask, IDEMPOTENCY_KEY, TRACEPARENT, in_time};
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Misfit,
    NOWHERE, StaticValue, Unaddressed,
};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "http",
    document: |_| None,
    compile,
};

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    functions
        .iter()
        .map(|function| {
            let server = documents.server(function, None).cloned();
            let own = documents.server_or_own(function, None);
            let read = Template::read(&function.operation, server, own);
            let (template, is_relative) = match (read, Template::of_uri(&function.operation)) {
                (Ok(read), _) => read,
                // Its calls can be checked even so.
                (Err(reason), Some(template)) => {
                    let unusable = Some(reason);
                    return Ok(Box::new(HttpFunction { template, unusable }) as Compiled);
                }
                (Err(reason), None) => return Err(reason.into()),
            };
            let uri = template.uri.clone();
            let compiled = Box::new(HttpFunction {
                template,
                unusable: None,
            }) as Compiled;
            Ok(match is_relative {
                true => {
                    let path = uri.trim_start_matches(NOWHERE);
                    let reason = unknown(
                        &function.name,
                        &format!("the host of `{path}`"),
                        "https://host",
                    );
                    Unaddressed::wrap(compiled, reason)
                }
                false => compiled,
            })
        })
        .collect()
}

struct HttpFunction {
    template: Template,
    /// The reason why no request can be made of it.
    unusable: Option<String>,
}

#[async_trait]
impl CompiledFunction for HttpFunction {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let made = request::make(&self.template, &request.arguments)
            .map_err(|reason| CallError::arguments(format!("{}: {reason}", self.template.uri)))?;
        let what = format!("{} {}", made.method, shown(&made.url));
        let trace = request.trace.map(|trace| trace.to_string());
        let own = made
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let mut headers: Vec<(&str, &str)> = own.collect();
        let further = [
            ("accept", Some("application/json, */*;q=0.1")),
            (IDEMPOTENCY_KEY, Some(request.key.as_str())),
            (TRACEPARENT, trace.as_deref()),
        ];
        for (name, value) in further {
            let given = headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name));
            headers.extend(value.filter(|_| !given).map(|value| (name, value)));
        }
        let ask = Ask {
            method: made.method.clone(),
            url: &made.url,
            headers: &headers,
            body: made.body.as_deref(),
            follows: true,
            what: &what,
            secrets: request.secrets.expose(),
        };
        let exchange = async {
            let reply = clients.services.ask(&ask, context.auth).await?;
            answer::data(&reply.answer, &what, &reply.secrets, "")
        };
        in_time(context.timeout, &what, exchange).await
    }

    fn check(&self, arguments: &StaticValue) -> Vec<Misfit> {
        request::check(&self.template, arguments)
    }

    fn unusable(&self) -> Option<&str> {
        self.unusable.as_deref()
    }
}
