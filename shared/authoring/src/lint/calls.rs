//! Calls that change something at a service that doesn't document how it recognises repeated calls.
//!
//! Each call carries an idempotency key, because it is repeated after a crash. That helps only if the service checks
//! the key, which its OpenAPI document indicates with a header parameter of that name.

use swirl_documents::source::{Limits, Node, parse};
use swirl_model::workflow::{ActionKind, FunctionKind};

use super::{REPEATED_CALL, Subject, places};

const KEY: &str = "idempotency-key";

/// Methods that may take effect twice if they are called twice.
const UNSAFE: [&str; 2] = ["post", "patch"];

pub fn check(subject: &mut Subject<'_>) {
    let (workflow, root, documents) = (subject.workflow, subject.root, subject.documents);
    for (index, function) in workflow.functions.iter().enumerate() {
        let is_called = workflow.actions.iter().any(|action| match &action.kind {
            ActionKind::Call(call) => call.function.0 as usize == index,
            _ => false,
        });
        if function.kind != FunctionKind::Rest || !is_called {
            continue;
        }
        let Some((uri, operation)) = function.operation.split_once('#') else {
            continue;
        };
        let document = documents.iter().find(|(known, _)| known == uri);
        let Some(Ok(document)) =
            document.map(|(_, text)| parse(text.as_bytes(), &Limits::default()))
        else {
            continue;
        };
        let Some(method) = changes(&document, operation) else {
            continue;
        };
        // A task describes its call itself.
        let (what, node) = match function.place.is_empty() {
            true => ("function", places::entry(root, "functions", &function.name)),
            false => ("task", root.at(&function.place)),
        };
        let node = node.unwrap_or(root);
        let message = format!(
            "the {what} '{}' is a {} whose document has no header 'Idempotency-Key': after a crash it may be carried out twice",
            function.name,
            method.to_uppercase()
        );
        let hint = "have the service compare the header 'Idempotency-Key', which each call carries, and document that";
        subject.found(&REPEATED_CALL, node, message, hint);
    }
}

/// The method of an operation that changes something and has no key.
fn changes(document: &Node, id: &str) -> Option<&'static str> {
    for path in document.get("paths")?.members()? {
        let shared = path.value().get("parameters");
        for method in UNSAFE {
            let Some(operation) = path.value().get(method) else {
                continue;
            };
            if operation.get("operationId").and_then(Node::as_str) != Some(id) {
                continue;
            }
            let own = operation.get("parameters");
            let parameters = own
                .into_iter()
                .chain(shared)
                .filter_map(Node::items)
                .flatten();
            let mut parameters = parameters.map(|parameter| {
                let reference = parameter.get("$ref").and_then(Node::as_str);
                reference.map_or(Some(parameter), |reference| {
                    document.at(reference.strip_prefix('#')?)
                })
            });
            // A parameter in another document may be the key.
            let knows = parameters.any(|parameter| {
                parameter.is_none_or(|parameter| {
                    let name = parameter.get("name").and_then(Node::as_str);
                    name.is_some_and(|name| name.eq_ignore_ascii_case(KEY))
                })
            });
            return (!knows).then_some(method);
        }
    }
    None
}
