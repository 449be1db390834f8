//! Types of errors in expressions. `errors.with.type` knows all names of a standard type; expressions compare texts.

use super::{OTHER_ERROR_TYPE, Subject};

/// The beginning of the types that are raised.
const RAISED: &str = "https://serverlessworkflow.io/spec/1.0.0/errors/";
/// The beginnings of other names of them.
const OTHERS: [&str; 3] = [
    "https://open-workflow-specification.org/spec/1.0.0/errors/",
    "https://open-workflow-specification.org/dsl/errors/types/",
    "https://serverlessworkflow.io/dsl/errors/types/",
];

pub fn check(subject: &mut Subject<'_>) {
    let (workflow, root) = (subject.workflow, subject.root);
    if workflow.tasks.is_none() {
        return;
    }
    for source in &workflow.expressions {
        let Some(other) = OTHERS.iter().find(|other| source.text.contains(**other)) else {
            continue;
        };
        let node = root.at(&source.pointer).unwrap_or(root);
        let message = format!("no error has a type that begins with '{other}' here");
        let hint = format!(
            "write '{RAISED}' in expressions, or filter by 'errors.with.type', which knows both"
        );
        subject.found(&OTHER_ERROR_TYPE, node, message, hint);
    }
}
