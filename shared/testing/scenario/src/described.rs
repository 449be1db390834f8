//! Checks against the documents that describe functions: definitions are checked when a scenario deploys them, mocked
//! calls and answers while it runs.

use std::collections::BTreeMap;
use std::path::Path;

use swirl_deployment::{Locations, fetch};
use swirl_documents::codes;
use swirl_documents::diagnostic::Diagnostic;
use swirl_engine::Definition;
use swirl_functions::types::{self, Checks, Settings};
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::Workflow;
use swirl_spec::Reading;

use super::file::{Scenario, WorkflowSource};
use super::observed::RefusedDocument;
use super::resources::ScenarioResources;

/// What the documents of a scenario's definitions show.
#[derive(Default)]
pub struct Described {
    pub checks: BTreeMap<DefinitionId, Checks>,
    /// The documents by URI.
    pub resources: BTreeMap<DefinitionId, Vec<(String, String)>>,
    pub refused: Vec<RefusedDocument>,
}

/// Checks against the documents that the scenario contains or that are files next to it. Nothing is fetched, and
/// functions whose documents are missing aren't checked.
pub fn check(scenario: &Scenario, readings: &[(String, Reading)]) -> Described {
    let settings = Settings::default();
    let mut described = Described::default();
    for ((name, reading), source) in readings.iter().zip(&scenario.workflows) {
        // A refused definition is checked too, so that all findings are reported together.
        let partial = reading.partial.as_deref();
        let Some(workflow) = reading.workflow.as_ref().or(partial) else {
            continue;
        };
        let from = ScenarioResources::new(&scenario.resources, Path::new(name));
        let mut resources = Vec::new();
        let missing = fetch::find(workflow, &from, &mut resources);
        let checked = Checks::new(workflow, &resources, &settings);
        let root = match source {
            WorkflowSource::Inline(node) => Some(node),
            WorkflowSource::Path(_) => reading.root.as_ref(),
        };
        let Some(root) = root else { continue };
        let locations = Locations::new(root);
        let mut found = locations.checked(workflow, &checked, &missing, &reading.diagnostics);
        found.extend(locations.built_in(workflow));
        // Otherwise only a call to a function that the scenario doesn't list fails it.
        if scenario.expect.rejected.is_some() {
            let others = not_carried_out(scenario, reading, workflow, &checked, &locations);
            found.extend(others);
        }
        let is_refused = reading.workflow.is_none() || found.iter().any(Diagnostic::is_error);
        if is_refused && !found.is_empty() {
            let refused = RefusedDocument::new(name.clone(), found);
            described.refused.push(refused);
        }
        let id = Definition::id_of(workflow);
        described.checks.insert(id.clone(), checked);
        described.resources.insert(id, resources);
    }
    described
}

/// Custom operations that neither a mock nor anything built in carries out, which a deployment refuses.
fn not_carried_out(
    scenario: &Scenario,
    reading: &Reading,
    workflow: &Workflow,
    checks: &Checks,
    locations: &Locations<'_>,
) -> Vec<Diagnostic> {
    // The reader refuses functions of the early editions for the same reason.
    let is_reported = |name: &str| {
        let codes = [codes::BAD_OPERATION, codes::FUNCTION_TYPE_UNKNOWN];
        let subject = format!("the function '{name}'");
        reading.diagnostics.iter().any(|found| {
            found.is_error() && codes.contains(&found.code) && found.message.contains(&subject)
        })
    };
    let refused = checks.refused().iter().filter(|problem| {
        let function = problem.of_function(workflow);
        function.is_some_and(|function| {
            types::word(&function.kind) == "custom"
                && types::custom::refused(function).is_none()
                && !scenario.functions.contains_key(&problem.function)
                && !is_reported(&problem.function)
        })
    });
    let hint = "say how it answers, under 'functions' of the scenario";
    let refused = refused.map(|problem| locations.function(problem).with_hint(hint));
    refused.collect()
}
