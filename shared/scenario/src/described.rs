//! Checks against the documents that describe functions: definitions are checked when a scenario deploys them, mocked
//! calls and answers while it runs.

use std::collections::BTreeMap;
use std::path::Path;

use swirl_deployment::{Locations, fetch};
use swirl_engine::Definition;
use swirl_functions::Problem;
use swirl_functions::types::{Checks, Settings};
use swirl_model::Data;
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::Workflow;
use swirl_spec::Reading;

use super::file::{Scenario, WorkflowSource};
use super::observed::RefusedDocument;
use super::resources::ScenarioResources;

/// Checks against the documents that the scenario contains or that are files next to it. Nothing is fetched, and
/// functions whose documents are missing aren't checked. Also returns the refused definitions.
pub fn check(
    scenario: &Scenario,
    readings: &[(String, Reading)],
) -> (BTreeMap<DefinitionId, Checks>, Vec<RefusedDocument>) {
    let settings = Settings::default();
    let (mut checks, mut refused) = (BTreeMap::new(), Vec::new());
    for ((name, reading), source) in readings.iter().zip(&scenario.workflows) {
        let Some(workflow) = &reading.workflow else {
            continue;
        };
        let from = ScenarioResources::new(&scenario.resources, Path::new(name));
        let mut resources = Vec::new();
        let missing = fetch::find(workflow, &from, &mut resources);
        let mut checked = Checks::new(workflow, &resources, &settings);
        if !checked.refused().is_empty() {
            let served = served(workflow, checked.refused());
            checked = Checks::new(&served, &resources, &settings);
        }
        let root = match source {
            WorkflowSource::Inline(node) => Some(node),
            WorkflowSource::Path(_) => reading.root.as_ref(),
        };
        let Some(root) = root else { continue };
        let locations = Locations::new(root);
        let mut found = locations.checked(workflow, &checked, &missing);
        found.extend(locations.built_in(workflow));
        if !found.is_empty() {
            refused.push(RefusedDocument::new(name.clone(), found));
        }
        checks.insert(Definition::id_of(workflow), checked);
    }
    (checks, refused)
}

/// Adds a server to functions without one. Nothing is called here, so a document need not contain its service's
/// address.
fn served(workflow: &Workflow, refused: &[Problem]) -> Workflow {
    let mut served = workflow.clone();
    for function in &mut served.functions {
        let is_refused = refused
            .iter()
            .any(|problem| *problem.function == *function.name);
        if is_refused && function.metadata.get("server").is_none() {
            function
                .metadata
                .set("server", Data::string("http://localhost"));
        }
    }
    served
}
