//! The function types that call the outside world, one folder each.
//!
//! `expression` isn't here: the engine evaluates it. Deployment checks a definition's function
//! types against the table below; adding a type means a folder and a line.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::{AuthId, AuthScheme, Function, FunctionKind, Workflow};
use swirl_ports::CallRequest;

use crate::CallError;
use crate::auth::Auth;
pub use checks::Checks;
pub(crate) use known::Known;
pub(crate) use misfit::Misfit;

pub(crate) mod asyncapi;
mod checks;
pub mod custom;
mod fits;
mod graphql;
mod http;
mod known;
mod misfit;
mod odata;
pub mod rest;
pub mod rpc;
pub(crate) mod service;

/// The function types that the worker calls, by their name in a definition (language 0.8,
/// "Function Definition"). Kept in alphabetical order.
pub static TYPES: [FunctionType; 7] = [
    asyncapi::TYPE,
    custom::TYPE,
    graphql::TYPE,
    http::TYPE,
    odata::TYPE,
    rest::TYPE,
    rpc::TYPE,
];

/// A function type: its two halves are reading a definition's operation, and calling it.
#[derive(Debug, Clone, Copy)]
pub struct FunctionType {
    pub word: &'static str,
    /// The URI of the document that a function's `operation` refers to; none if it needs none.
    pub(crate) document: fn(&Function) -> Option<&str>,
    /// Compiles functions of this type, all of a definition at once so that a document which
    /// several share is read once; gives one result for each, in the same order.
    pub(crate) compile: fn(&[&Function], &Documents<'_>) -> Vec<CompileResult>,
}

/// The type of this name.
pub fn find(word: &str) -> Option<&'static FunctionType> {
    TYPES.iter().find(|known| known.word == word)
}

/// The name in the table of a function's type: `custom` for those that the language doesn't know.
pub fn word(kind: &FunctionKind) -> &str {
    match kind {
        FunctionKind::Custom(_) => custom::TYPE.word,
        kind => kind.as_str(),
    }
}

/// The URI of the document that describes a function's service; none if it needs none.
pub fn document(function: &Function) -> Option<&str> {
    find(word(&function.kind)).and_then(|kind| (kind.document)(function))
}

/// A service that describes itself at deployment, if it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// Where it is asked; its answer is a document under this URI for [`Checks`].
    pub uri: String,
    /// The request body.
    pub question: String,
    /// The credentials: those for documents, otherwise those of calls.
    pub auth: Option<AuthId>,
}

/// The services of a definition that describe themselves, each once.
pub fn telling(workflow: &Workflow) -> Vec<Telling> {
    let mut all: Vec<Telling> = Vec::new();
    for function in &workflow.functions {
        let is_graphql = word(&function.kind) == graphql::TYPE.word;
        let uri = graphql::endpoint(function).filter(|_| is_graphql);
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

/// The reason why the answer of such a service is unusable, as a clause about the service.
///
/// # Errors
/// See above.
pub fn check_answer(answer: &str) -> Result<(), String> {
    graphql::readable(answer)
}

/// The operator's settings for the function types.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The implementations of custom function types.
    pub connectors: custom::Connectors,
    /// Where gRPC services listen; takes precedence over a definition.
    pub rpc_servers: rpc::Servers,
    /// Variables that commands get besides the usual ones.
    pub connector_environment: Vec<String>,
}

/// A function that can be called.
pub(crate) type Compiled = Arc<dyn CompiledFunction>;

/// Or why it cannot be, as a sentence.
pub(crate) type CompileResult = Result<Compiled, String>;

/// A function as its type compiles it at deployment.
#[async_trait]
pub(crate) trait CompiledFunction: Send + Sync {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError>;

    /// The reasons why a call with these arguments would fail, as far as they are known.
    fn check(&self, _arguments: &Known) -> Vec<Misfit> {
        Vec::new()
    }

    /// The reason why this kind of credentials can never be sent with these arguments.
    fn check_auth(&self, _auth: AuthScheme, _arguments: &Known) -> Option<String> {
        None
    }

    /// The same of a call's selection of the result; empty: nothing.
    fn check_selection(&self, _set: &str) -> Vec<String> {
        Vec::new()
    }

    /// The parts of an answer that the service would not give.
    fn check_answer(&self, _answer: &Known) -> Vec<String> {
        Vec::new()
    }
}

/// The shared clients.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) brokers: asyncapi::Brokers,
    pub(crate) custom: custom::CustomCaller,
    pub(crate) rpc: rpc::RpcCaller,
    pub(crate) rest: rest::RestCaller,
    /// For `asyncapi` over HTTP, `graphql` and `odata`.
    pub(crate) services: service::Services,
}

/// The call's data that the adapter has prepared.
pub(crate) struct Context<'a> {
    pub(crate) auth: Option<&'a Auth>,
    /// For the whole call.
    pub(crate) timeout: Duration,
}

/// The documents that a definition was deployed with, by URI, and the operator's settings.
pub(crate) struct Documents<'a> {
    pub(crate) resources: &'a [(String, String)],
    pub(crate) settings: &'a Settings,
    /// Whether the compiled function keeps its document, so that arguments can be checked.
    pub(crate) for_checks: bool,
}

impl<'a> Documents<'a> {
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
