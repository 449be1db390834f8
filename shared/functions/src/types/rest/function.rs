//! `rest` as a function type: `operation` is `<URI of an OpenAPI document>#<operation id>`.

use swirl_model::workflow::Function;

use super::described::RestFunction;
use super::library::parts;
use super::{Library, Operation, Refused, inline};
use crate::types::{CompileResult, Compiled, Documents, FunctionType};

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
    let operations: Vec<Option<Result<Operation, String>>> = functions
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
            None => inline::compile(function),
            Some(operation) => {
                let (uri, _) = parts(function)?;
                let document = read.get(uri).cloned();
                Ok(Box::new(RestFunction::new(operation?, document)) as Compiled)
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
