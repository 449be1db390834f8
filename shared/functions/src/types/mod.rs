//! The function types that call the outside world, with one folder for each.
//!
//! `expression` isn't here, because the engine evaluates it. Deployment checks a definition's function types against
//! the table below. To add a type, add a folder and a line.

use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::{AuthId, AuthScheme, Function, FunctionKind, Workflow};
use swirl_ports::CallRequest;
use url::Url;

use crate::CallError;
use crate::auth::Auth;
use crate::problem::Unusable;
use crate::servers::Servers;
pub use checks::Checks;
pub use compiled::CompiledFunctions;
pub(crate) use compiled::no_caller;
pub(crate) use misfit::Misfit;
pub(crate) use static_value::StaticValue;
pub(crate) use unaddressed::{NOWHERE, Unaddressed};

pub mod a2a;
pub(crate) mod asyncapi;
mod checks;
mod compiled;
pub mod custom;
mod fits;
mod graphql;
mod http;
mod http_call;
mod json_rpc;
mod mcp;
mod misfit;
mod odata;
pub mod process;
pub mod rest;
pub mod rpc;
pub(crate) mod service;
mod static_value;
pub(crate) mod task_answer;
mod unaddressed;

/// The function types that the worker calls, by their names in definitions (language 0.8, "Function Definition"). Kept
/// in alphabetical order.
pub static TYPES: [FunctionType; 11] = [
    a2a::TYPE,
    asyncapi::TYPE,
    custom::TYPE,
    graphql::TYPE,
    http::TYPE,
    http_call::TYPE,
    mcp::TYPE,
    odata::TYPE,
    process::TYPE,
    rest::TYPE,
    rpc::TYPE,
];

/// A function type. It has two parts: one reads a definition's operation, the other calls it.
#[derive(Debug, Clone, Copy)]
pub struct FunctionType {
    pub word: &'static str,
    /// The URI of the document that a function's `operation` refers to; `None` if it needs none.
    pub(crate) document: fn(&Function) -> Option<&str>,
    /// Compiles functions of this type, all functions of a definition together so that shared documents are read only
    /// once. Returns one result for each, in the same order.
    pub(crate) compile: fn(&[&Function], &Documents<'_>) -> Vec<CompileResult>,
}

/// Finds a type by its name.
pub fn find(word: &str) -> Option<&'static FunctionType> {
    TYPES.iter().find(|known| known.word == word)
}

/// The name of a function's type in the table: `custom` for types that the language doesn't define.
pub fn word(kind: &FunctionKind) -> &str {
    match kind {
        FunctionKind::Custom(_) => custom::TYPE.word,
        kind => kind.as_str(),
    }
}

/// The URI of the document that describes a function's service; `None` if it needs none.
pub fn document(function: &Function) -> Option<&str> {
    find(word(&function.kind)).and_then(|kind| (kind.document)(function))
}

/// A service that can be queried for its description at deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// The address of the query. The answer becomes a document with this URI for [`Checks`].
    pub uri: String,
    /// The request body.
    pub question: String,
    /// The credentials for documents if defined, otherwise those for calls.
    pub auth: Option<AuthId>,
}

/// The services of a definition that can be queried for their descriptions, each once.
pub fn telling(workflow: &Workflow) -> Vec<Telling> {
    let mut all: Vec<Telling> = Vec::new();
    for function in &workflow.functions {
        let is_graphql = word(&function.kind) == graphql::TYPE.word;
        let uri = graphql::endpoint(function).filter(|_| is_graphql);
        // Nothing can be asked at an address that only calls know.
        let uri = uri.filter(|uri| Url::parse(uri).is_ok_and(|url| url.has_host()));
        let Some(uri) = uri.filter(|uri| all.iter().all(|known| known.uri != **uri)) else {
            continue;
        };
        all.push(Telling {
            uri: uri.to_owned(),
            question: graphql::question(),
            auth: function.resource_auth.or(function.auth),
        });
    }
    all
}

/// Checks the description that such a service returned.
///
/// # Errors
/// The reason why it is unusable, as a clause about the service.
pub fn check_answer(answer: &str) -> Result<(), String> {
    graphql::readable(answer)
}

/// The operator's settings for the function types.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The implementations of custom function types.
    pub connectors: custom::Connectors,
    /// The addresses of services. They take precedence over the definition's.
    pub servers: Servers,
    /// The variables that commands get in addition to the usual ones.
    pub connector_environment: Vec<String>,
    /// The processes that tasks may run.
    pub processes: process::Processes,
    /// The folder of the default catalog of functions.
    pub catalog: Option<std::path::PathBuf>,
}

/// A function that can be called.
pub(crate) type Compiled = Box<dyn CompiledFunction>;

/// A compiled function, or why it cannot be called.
pub(crate) type CompileResult = Result<Compiled, Unusable>;

/// Whether its calls run processes, which the operator allows or not.
pub fn is_process(function: &Function) -> bool {
    match function.kind {
        FunctionKind::Process => true,
        FunctionKind::Mcp => mcp::is_process(function),
        _ => false,
    }
}

/// A function as its type compiles it at deployment.
#[async_trait]
pub(crate) trait CompiledFunction: Send + Sync {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError>;

    /// Drops the documents that only checks need, before the function is kept for calls.
    ///
    /// # Errors
    /// The reason why it cannot be called, although calls can be checked.
    fn release_documents(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// The reason why it cannot be called, although the arguments of its calls can be checked.
    fn unusable(&self) -> Option<&str> {
        None
    }

    /// The reason why it cannot be called: nothing says where its service is.
    fn unaddressed(&self) -> Option<&str> {
        None
    }

    /// The reasons why a call with these arguments would fail, as far as they are known.
    fn check(&self, _arguments: &StaticValue) -> Vec<Misfit> {
        Vec::new()
    }

    /// The reason why credentials of this kind can never be sent with these arguments.
    fn check_auth(&self, _auth: AuthScheme, _arguments: &StaticValue) -> Option<String> {
        None
    }

    /// The reasons why the service would reject a call's selection of the result. An empty selection means nothing.
    fn check_selection(&self, _set: &str) -> Vec<String> {
        Vec::new()
    }

    /// The parts of an answer that the service would not return.
    fn check_answer(&self, _answer: &StaticValue) -> Vec<String> {
        Vec::new()
    }
}

/// The shared clients.
#[derive(Debug)]
pub(crate) struct Clients {
    /// For what goes on behind a call.
    pub(crate) own: Weak<Clients>,
    pub(crate) brokers: asyncapi::Brokers,
    pub(crate) custom: custom::CustomCaller,
    pub(crate) processes: process::ProcessCaller,
    pub(crate) rpc: rpc::RpcCaller,
    pub(crate) rest: rest::RestCaller,
    /// Shared by `asyncapi` over HTTP, `graphql` and `odata`.
    pub(crate) services: service::Services,
}

/// The data of a call that the adapter has prepared.
pub(crate) struct Context<'a> {
    pub(crate) auth: Option<&'a Auth>,
    /// The limit for the whole call.
    pub(crate) timeout: Duration,
}

/// The documents that a definition was deployed with, by URI, and the operator's settings.
pub(crate) struct Documents<'a> {
    pub(crate) resources: &'a [(String, String)],
    pub(crate) settings: &'a Settings,
}

impl<'a> Documents<'a> {
    /// The operator's address for a function's service.
    pub(crate) fn server(&self, function: &Function, document: Option<&str>) -> Option<&'a Url> {
        self.settings.servers.address_of(function, document)
    }

    /// The operator's address for a function's service, else the one in the function's metadata.
    ///
    /// # Errors
    /// `metadata.server` is not a valid address.
    pub(crate) fn server_or_own(
        &self,
        function: &Function,
        document: Option<&str>,
    ) -> Result<Option<Url>, String> {
        if let Some(server) = self.server(function, document) {
            return Ok(Some(server.clone()));
        }
        let own = rest::metadata_server(function)?;
        Ok(own.and_then(|own| Url::parse(&own).ok()))
    }

    pub(crate) fn get(&self, uri: &str) -> Option<&'a str> {
        let mut all = self.resources.iter();
        all.find(|(known, _)| known == uri)
            .map(|(_, content)| content.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{TYPES, find};

    #[test]
    fn the_table_is_in_order() {
        assert!(TYPES.is_sorted_by_key(|known| known.word));
    }

    #[test]
    fn types_are_found_by_name() {
        assert_eq!(find("rest").map(|known| known.word), Some("rest"));
        assert!(find("REST").is_none() && find("expression").is_none());
    }
}
