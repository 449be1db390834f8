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
use super::{Server, Servers, check};
use crate::CallError;
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Known,
    Misfit,
};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "rpc",
    document,
    compile,
};

/// The placeholder for a server when nothing is called.
const UNKNOWN_SERVER: &str = "grpc://server.invalid:443";

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
            .map_err(String::clone)
            .and_then(|proto| proto.method(service, method))
            .map_err(|reason| format!("`{uri}`: {reason}"))?;
        let service = descriptor.parent_service();
        let found = server(
            function,
            &documents.settings.rpc_servers,
            service.full_name(),
            service.name(),
        );
        // A check makes no calls, and addresses of services are often configured only by the operator.
        let (server, unaddressed) = match found {
            Ok(server) => (server, None),
            Err(reason) => {
                let server = UNKNOWN_SERVER.parse::<Server>();
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
        Ok(Box::new(RpcFunction {
            method,
            unaddressed,
        }) as Compiled)
    };
    functions
        .iter()
        .map(|function| compile(*function))
        .collect()
}

/// The operator's address for the service, or else the definition's.
fn server(
    function: &Function,
    servers: &Servers,
    full_name: &str,
    name: &str,
) -> Result<Server, String> {
    if let Some(server) = servers.get(full_name, name) {
        return Ok(server.clone());
    }
    match function.metadata.get(SERVER) {
        Some(given) => {
            let text = given.as_str().ok_or("`metadata.server` must be a text")?;
            let server = text.parse::<Server>();
            server.map_err(|error| format!("`metadata.server`: {error}"))
        }
        None => Err(format!(
            "nothing says where the service `{full_name}` listens: give the function \
             `metadata: {{server: \"grpc://host:port\"}}`, or the runtime \
             `--rpc-server {full_name}=grpc://host:port`"
        )),
    }
}

struct RpcFunction {
    method: Method,
    /// The reason why its service's address isn't known.
    unaddressed: Option<String>,
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
        clients
            .rpc
            .call(&self.method, &request.arguments, &context)
            .await
    }

    fn release_documents(&mut self) -> Result<(), String> {
        self.unaddressed.take().map_or(Ok(()), Err)
    }

    fn check(&self, arguments: &Known) -> Vec<Misfit> {
        check::arguments(&self.method.descriptor, arguments)
    }

    fn check_answer(&self, answer: &Known) -> Vec<String> {
        check::answer(&self.method.descriptor, answer)
    }
}
