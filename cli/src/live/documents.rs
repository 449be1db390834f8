//! Definitions in the form in which they are deployed: with calls of the test's connector instead of their functions.

use serde_json::{Value, json};
use swirl_documents::source::{self, Limits};
use swirl_model::workflow::{FunctionKind, Workflow};
use swirl_scenario::RunError;
use swirl_scenario::file::{Scenario, WorkflowSource};
use swirl_scenario::is_sysout;
use swirl_spec::edition::Edition;
use swirl_spec::resource::FUNCTIONS_URI;

use super::mock::CONNECTOR;
use super::tasks::unanswerable;

/// A document and the files that it needs, for the API.
pub struct Document {
    pub name: String,
    pub text: String,
    pub resources: Vec<(String, String)>,
}

/// The document as written in the scenario.
pub fn plain(scenario: &Scenario, source: &WorkflowSource) -> Result<Document, RunError> {
    // A file is sent unchanged, because mistakes in it might be lost if it were read and written again.
    let text = match source {
        WorkflowSource::Inline(_) => value(source)?.to_string(),
        WorkflowSource::Path(path) => swirl_documents::files::read_text(path)
            .map_err(|error| RunError::Unreadable(format!("{}: {error}", path.display())))?,
    };
    Ok(Document {
        name: scenario.name.clone(),
        text,
        resources: scenario.resources.clone().into_iter().collect(),
    })
}

/// The document with functions that this process answers.
pub fn mocked(
    scenario: &Scenario,
    source: &WorkflowSource,
    (workflow, edition): (&Workflow, Option<Edition>),
    resources: &[(String, String)],
) -> Result<Document, RunError> {
    if workflow.tasks.is_some() {
        if let Some(why) = unanswerable(workflow) {
            return Err(RunError::Skipped(why.to_owned()));
        }
        let mut document = plain(scenario, source)?;
        for (uri, content) in resources {
            if document.resources.iter().all(|(known, _)| known != uri) {
                document.resources.push((uri.clone(), content.clone()));
            }
        }
        return Ok(document);
    }
    let mut document = value(source)?;
    if workflow
        .functions
        .iter()
        .any(|function| function.auth.is_some())
    {
        let why = "its functions authenticate themselves, which the mock doesn't check";
        return Err(RunError::Skipped(why.to_owned()));
    }
    let functions: Vec<Value> = workflow
        .functions
        .iter()
        .map(|function| match function.kind {
            FunctionKind::Expression => json!({
                "name": &*function.name, "type": "expression", "operation": function.operation,
            }),
            _ if is_sysout(function) => json!({
                "name": &*function.name, "type": "custom", "operation": function.operation,
            }),
            _ => json!({
                "name": &*function.name, "type": CONNECTOR, "operation": &*function.name,
            }),
        })
        .collect();
    let mut all: Vec<(String, String)> = scenario.resources.clone().into_iter().collect();
    if functions.is_empty() {
        // The definition has no functions.
    } else if edition >= Some(Edition::V0_5) || defines_operations(&document) {
        document["functions"] = Value::Array(functions);
    } else {
        // An older edition: the names are looked up among the given functions (docs/language.md#decision-103).
        if let Some(named) = document.get_mut("functions").and_then(Value::as_array_mut) {
            for function in named.iter_mut().filter_map(Value::as_object_mut) {
                function.insert("type".to_owned(), json!("given"));
            }
        }
        all.retain(|(uri, _)| uri != FUNCTIONS_URI);
        let given = Value::Array(functions).to_string();
        all.push((FUNCTIONS_URI.to_owned(), given));
    }
    for (uri, content) in resources {
        if !all.iter().any(|(known, _)| known == uri) {
            all.push((uri.clone(), content.clone()));
        }
    }
    Ok(Document {
        name: scenario.name.clone(),
        text: document.to_string(),
        resources: all,
    })
}

/// Whether a document of an older edition defines its functions as documents from 0.5 on do. If it only refers to
/// another document for them, it defines none itself.
fn defines_operations(document: &Value) -> bool {
    match document.get("functions") {
        Some(Value::Array(functions)) => functions.iter().all(|function| {
            function.get("operation").is_some() || function.get("metadata").is_some()
        }),
        other => other.is_some(),
    }
}

fn value(source: &WorkflowSource) -> Result<Value, RunError> {
    match source {
        WorkflowSource::Inline(node) => Ok(Value::from(&node.to_data())),
        WorkflowSource::Path(path) => {
            let unreadable =
                |reason: String| RunError::Unreadable(format!("{}: {reason}", path.display()));
            let bytes = swirl_documents::files::read(path, swirl_documents::files::BYTES_MAX)
                .map_err(|error| unreadable(error.to_string()))?;
            let node = source::parse(&bytes, &Limits::default())
                .map_err(|error| unreadable(error.to_string()))?;
            Ok(Value::from(&node.to_data()))
        }
    }
}
