//! `rest` as a function type: `operation` is `<URI of an OpenAPI document>#<operation id>`.

use swirl_model::workflow::Function;
use url::Url;

use super::described::RestFunction;
use super::library::parts;
use super::task::TaskCall;
use super::{Library, Operation, Refused, inline};
use crate::problem::{FaultyPart, Unusable};
use crate::servers::unknown;
use crate::types::{CompileResult, Compiled, Documents, FunctionType, NOWHERE, Unaddressed};

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

fn compile(functions: &[&Function], documents: &Documents<'_>) -> Vec<CompileResult> {
    let mut library = Library::default();
    let operations: Vec<Option<Result<CallableOperation, Unusable>>> = functions
        .iter()
        .map(|function| {
            let is_inline = inline::is_inline(function);
            (!is_inline).then(|| operation(&mut library, function, documents))
        })
        .collect();
    let read = library.shared();
    let compiled = functions.iter().zip(operations);
    compiled
        .map(|(function, operation)| match operation {
            None => inline::compile(function, documents),
            Some(found) => {
                let (uri, _) = parts(function)?;
                let document = read.get(uri).cloned();
                let (operation, unaddressed) = found?;
                let compiled: Compiled = match function.place.is_empty() {
                    true => Box::new(RestFunction::new(operation, document)),
                    false => Box::new(TaskCall::new(function, operation, document)),
                };
                Ok(match unaddressed {
                    Some(reason) => Unaddressed::wrap(compiled, reason),
                    None => compiled,
                })
            }
        })
        .collect()
}

/// An operation, and the reason why it cannot be called, if nothing says where its service is.
type CallableOperation = (Operation, Option<String>);

fn operation(
    library: &mut Library,
    function: &Function,
    documents: &Documents<'_>,
) -> Result<CallableOperation, Unusable> {
    let found = match library.operation(function, documents) {
        Err(Refused::NoAddress(uri, reason)) => {
            let service = format!("the service of `{uri}` ({reason})");
            let reason = unknown(&function.name, &service, "https://host");
            let nowhere = Url::parse(NOWHERE).ok();
            let found = library.operation_at(function, documents, nowhere.as_ref());
            found.map(|operation| (operation, Some(reason)))
        }
        found => found.map(|operation| (operation, None)),
    };
    found.map_err(|refused| match refused {
        Refused::Unknown(reason) => Unusable::at(FaultyPart::Operation, reason),
        Refused::Wrong(reason) => reason.into(),
        Refused::NoAddress(uri, reason) => Unusable::from(reason).in_document(&uri),
        Refused::Missing(uri) => {
            format!("`{uri}`, which its document refers to, isn't among the definition's resources")
                .into()
        }
    })
}
