//! `rpc` as a function type: `operation` is `<URI of a proto file>#<service>#<method>`.

use std::collections::HashMap;

use async_trait::async_trait;
use http::uri::PathAndQuery;
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::caller::{CallContext, Method};
use super::proto::Proto;
use super::sources::Sources;
use super::status::http_status;
use super::{Server, check};
use crate::problem::Unusable;
use crate::servers::unknown;
use crate::types::task_answer::{described, in_words};
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Misfit,
    NOWHERE, Settings, StaticValue, Unaddressed,
};
use crate::{CallError, CallErrorKind};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "rpc",
    document,
    compile,
};

/// The key in a function's `metadata` for the server's address.
const SERVER: &str = "server";

fn document(function: &Function) -> Option<&str> {
    parts(function).ok().map(|(uri, _, _)| uri)
}

/// The URIs of files that a function's proto file imports and that are missing from the documents, as far as the
/// available ones show them.
pub(crate) fn imports(function: &Function, documents: &Documents<'_>) -> Vec<String> {
    let sources = parts(function).and_then(|(uri, _, _)| {
        let text = documents.get(uri).unwrap_or_default();
        Sources::read(uri, text, |uri| documents.get(uri))
    });
    // Errors are reported when the function is compiled.
    sources.map(|sources| sources.missing).unwrap_or_default()
}

fn parts(function: &Function) -> Result<(&str, &str, &str), String> {
    let operation = &function.operation;
    let parts: Vec<&str> = operation.split('#').collect();
    match parts[..] {
        [uri, service, method] if parts.iter().all(|part| !part.trim().is_empty()) => {
            Ok((uri, service, method))
        }
        _ => Err(format!(
            "the operation `{operation}` must be the URI of a proto file, the name of a service in \
             it and the name of a method, with `#` between them"
        )),
    }
}

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let mut read: HashMap<&str, Result<Proto, String>> = HashMap::new();
    let mut compile = |function| {
        let (uri, service, method) = parts(function)?;
        let proto = read.entry(uri).or_insert_with(|| {
            let text = documents
                .get(uri)
                .ok_or("it isn't among the definition's resources")?;
            Proto::compile(Sources::read(uri, text, |uri| documents.get(uri))?)
        });
        let descriptor = proto
            .as_ref()
            .map_err(|reason| Unusable::from(reason.clone()))
            .and_then(|proto| proto.method(service, method))
            .map_err(|why| why.in_document(uri))?;
        let service = descriptor.parent_service();
        let found = server(
            function,
            documents.settings,
            uri,
            service.full_name(),
            service.name(),
        );
        // A check makes no calls, and addresses of services are often configured only by the operator.
        let (server, unaddressed) = match found? {
            Ok(server) => (server, None),
            Err(reason) => {
                let server = NOWHERE.parse::<Server>();
                (server.map_err(|error| error.to_string())?, Some(reason))
            }
        };
        let path = format!("/{}/{}", service.full_name(), descriptor.name());
        let path = PathAndQuery::try_from(path).map_err(|error| error.to_string())?;
        let method = Method {
            descriptor,
            path,
            server,
        };
        let of_task = !function.place.is_empty();
        let compiled = Box::new(RpcFunction { method, of_task }) as Compiled;
        Ok(match unaddressed {
            Some(reason) => Unaddressed::wrap(compiled, reason),
            None => compiled,
        })
    };
    functions
        .iter()
        .map(|function| compile(*function))
        .collect()
}

/// The operator's address for the service, or else the definition's. The inner error says that there is none.
fn server(
    function: &Function,
    settings: &Settings,
    document: &str,
    full_name: &str,
    name: &str,
) -> Result<Result<Server, String>, String> {
    let servers = &settings.servers;
    let given = servers.of_service(full_name, name);
    if let Some(server) = given.or_else(|| servers.address_of(function, Some(document))) {
        let server = server.as_str().parse::<Server>();
        let wrong = |error| format!("`functions.servers`, `{full_name}`: {error}");
        return server.map(Ok).map_err(wrong);
    }
    let Some(own) = function.metadata.get(SERVER) else {
        let service = format!("the service `{full_name}`");
        return Ok(Err(unknown(full_name, &service, "grpc://host:port")));
    };
    let text = own.as_str().ok_or("`metadata.server` must be a string")?;
    let redirected = url::Url::parse(text).ok();
    let redirected = redirected.and_then(|url| servers.redirected(&url));
    let text = redirected.as_ref().map_or(text, url::Url::as_str);
    let server = text.parse::<Server>();
    server
        .map(Ok)
        .map_err(|error| format!("`metadata.server`: {error}"))
}

struct RpcFunction {
    method: Method,
    /// Errors are described as DSL 1.0 does.
    of_task: bool,
}

#[async_trait]
impl CompiledFunction for RpcFunction {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let context = CallContext {
            idempotency_key: &request.key,
            trace: request.trace,
            timeout: context.timeout,
            auth: context.auth,
            secrets: request.secrets.expose(),
        };
        let rpc = &clients.rpc;
        let done = rpc.call(&self.method, &request.arguments, &context).await;
        done.map_err(|error| match (self.of_task, error.kind) {
            (false, _) => error,
            (true, CallErrorKind::Rpc(code)) => {
                described(error, "communication", http_status(code))
            }
            (true, _) => in_words(error),
        })
    }

    fn check(&self, arguments: &StaticValue) -> Vec<Misfit> {
        check::arguments(&self.method.descriptor, arguments)
    }

    fn check_answer(&self, answer: &StaticValue) -> Vec<String> {
        check::answer(&self.method.descriptor, answer)
    }
}
