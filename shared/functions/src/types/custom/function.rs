//! Custom types as a function type. The connector of a type is looked up at deployment.

use async_trait::async_trait;
use swirl_model::Data;
use swirl_model::workflow::Function;
use swirl_ports::CallRequest;

use super::{Connector, builtin};
use crate::CallError;
use crate::problem::Unusable;
use crate::types::{
    Clients, CompileResult, Compiled, CompiledFunction, Context, Documents, FunctionType, Settings,
};

pub(crate) const TYPE: FunctionType = FunctionType {
    word: "custom",
    document: |_| None,
    compile,
};

/// The reason why a built-in operation can never run. `None` if it can, or if it isn't built in.
pub fn refused(function: &Function) -> Option<String> {
    let is_custom = function.kind.as_str() == TYPE.word;
    let documents = Documents {
        resources: &[],
        settings: &Settings::default(),
    };
    builtin::find(function, &documents)
        .filter(|_| is_custom)?
        .err()
        .map(|why| why.reason)
}

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let connectors = &documents.settings.connectors;
    let compile = |function: &&Function| {
        let kind = function.kind.as_str();
        if kind == TYPE.word
            && let Some(built_in) = builtin::find(function, documents)
        {
            return built_in;
        }
        let Some((name, connector)) = connectors.find(kind, &function.operation) else {
            return Err(Unusable::from(format!(
                "functions of type `{kind}` with the operation `{}` have no implementation here: name a connector with `--connector {kind}=http://host/path`, `--connector {kind}=nats://host:port/subject` \
                 or `--connector {kind}=exec:program`",
                function.operation
            )));
        };
        let what = match connector {
            Connector::Http(_) | Connector::Nats(_) => None,
            Connector::Exec(_) => Some("a command"),
            #[cfg(feature = "wasm")]
            Connector::Wasm(_) => Some("a module"),
        };
        if let Some(what) = what.filter(|_| function.auth.is_some()) {
            return Err(Unusable::from(format!(
                "the connector `{name}` is {what}, which takes no `authRef`: pass the \
                 credentials as arguments"
            )));
        }
        Ok(Box::new(CustomFunction {
            name: name.to_owned(),
            connector: connector.clone(),
        }) as Compiled)
    };
    functions.iter().map(compile).collect()
}

struct CustomFunction {
    name: String,
    connector: Connector,
}

#[async_trait]
impl CompiledFunction for CustomFunction {
    async fn call(
        &self,
        clients: &Clients,
        request: &CallRequest,
        context: &Context<'_>,
    ) -> Result<Data, CallError> {
        let (caller, timeout) = (&clients.custom, context.timeout);
        match &self.connector {
            Connector::Http(url) => {
                caller
                    .post(&self.name, url, request, context.auth, timeout)
                    .await
            }
            Connector::Exec(words) => caller.run(&self.name, words, request, timeout).await,
            #[cfg(feature = "wasm")]
            Connector::Wasm(module) => caller.compute(&self.name, module, request, timeout).await,
            Connector::Nats(to) => caller.ask(&self.name, to, clients, request, context).await,
        }
    }
}
