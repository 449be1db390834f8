//! Functions and their authentication.

use swirl_documents::suggest::did_you_mean;
use swirl_model::Data;
use swirl_model::workflow::{AuthId, AuthScheme, Function, FunctionKind, Workflow};

use super::writer::{SetIf, Writer, metadata};

/// Words that 0.8 reads as a type, or as a misspelt type.
const TYPES: [&str; 7] = [
    "rest",
    "asyncapi",
    "rpc",
    "graphql",
    "odata",
    "expression",
    "custom",
];

/// Functions that aren't described by a document: `custom` in 0.8.
pub(super) fn simplify(workflow: &mut Workflow, notes: &mut Vec<String>) {
    for function in &mut workflow.functions {
        let name = &function.name;
        match &function.kind {
            FunctionKind::Custom(word) => {
                let near = TYPES.iter().any(|known| known.eq_ignore_ascii_case(word))
                    || did_you_mean(word, TYPES).is_some();
                if word == "custom" || !near {
                    continue;
                }
                notes.push(format!(
                    "the type '{word}' of the function '{name}' looks misspelt: it becomes 'custom' with the operation '{word}:{name}'"
                ));
                function.operation = format!("{word}:{name}");
            }
            FunctionKind::Rest
            | FunctionKind::Asyncapi
            | FunctionKind::Rpc
            | FunctionKind::Graphql
            | FunctionKind::Odata
                if *function.operation == **name && !name.contains('#') =>
            {
                notes.push(format!(
                    "the function '{name}' has no document: it is 'custom', for a function that is given by its name"
                ));
            }
            _ => continue,
        }
        function.kind = FunctionKind::Custom("custom".to_owned());
    }
}

impl Writer<'_> {
    pub fn functions(&mut self) -> Vec<Data> {
        let functions = self.workflow.functions.iter();
        functions.map(|function| self.function(function)).collect()
    }

    fn function(&mut self, function: &Function) -> Data {
        let mut data = Data::object();
        data.set("name", Data::string(&*function.name));
        data.set("type", Data::string(function.kind.as_str()));
        let name = &function.name;
        match &function.kind {
            FunctionKind::Http => self.cannot(format!(
                "the function '{name}' describes an HTTP request itself; 0.8 has no such type"
            )),
            FunctionKind::Expression => {
                let text = &function.operation;
                data.set("operation", Data::string(format!("${{ {text} }}")));
            }
            FunctionKind::Custom(_) if function.operation.is_empty() => {}
            _ if function.operation.starts_with('{') => self.cannot(format!(
                "the function '{name}' has its document in it; in 0.8 a URI leads to it"
            )),
            _ => data.set("operation", Data::string(function.operation.as_str())),
        }
        let auth = |id: AuthId| Data::string(self.workflow[id].name.as_str());
        match (function.resource_auth, function.auth) {
            (None, None) => {}
            (None, Some(id)) => data.set("authRef", auth(id)),
            (Some(resource), invocation) => {
                let mut both = Data::object();
                both.set("resource", auth(resource));
                both.set_if("invocation", invocation.map(auth));
                data.set("authRef", both);
            }
        }
        data.set_if("metadata", metadata(&function.metadata));
        data
    }

    pub fn auth(&mut self) -> Vec<Data> {
        let definitions = self.workflow.auth.iter();
        definitions
            .map(|auth| {
                let mut data = Data::object();
                data.set("name", Data::string(auth.name.as_str()));
                let scheme = match auth.scheme {
                    AuthScheme::Basic => "basic",
                    AuthScheme::Bearer => "bearer",
                    AuthScheme::Digest => "digest",
                    AuthScheme::OAuth2 => "oauth2",
                };
                data.set("scheme", Data::string(scheme));
                data.set("properties", self.template(&auth.properties));
                data
            })
            .collect()
    }
}
