//! Runs the conformance kit of DSL 1.0, if `SWIRL_CTK` names the folder of its features: `cargo test -p swirl-scenario
//! kit -- --nocapture`. The kit isn't part of this repository.

use std::path::Path;

use swirl_kit::{Case, Seen, cases, examine_all, folder};

use crate::file::Scenario;
use crate::observed::Observed;
use crate::run::VirtualRunner;
use crate::{RunError, Runner};

/// The services that the kit calls.
const SERVICES: &str = r#"
functions:
  GET https://petstore.swagger.io/v2/pet/findByStatus: {return: [{id: 1, name: Milou, status: available}]}
  GET https://petstore.swagger.io/v2/pet/getPetByName/*: {respond: {status: 404, body: no such pet}}
  GET https://petstore.swagger.io/v2/pet/1: {return: {id: 1, name: Milou, status: available}}
  GET https://petstore.swagger.io/v2/pet/2: {return: {id: 2, name: Rex, status: sold}}
  GET https://httpbin.org/basic-auth/**: {return: {authenticated: true}}
resources:
  https://petstore.swagger.io/v2/swagger.json: |
    swagger: '2.0'
    info: {title: pets, version: '1'}
    host: petstore.swagger.io
    basePath: /v2
    schemes: [https]
    paths:
      /pet/findByStatus:
        get:
          operationId: findPetsByStatus
          parameters:
            - {name: status, in: query, required: true, type: array, items: {type: string}, collectionFormat: multi}
          responses: {'200': {description: found}}
      /pet/{petId}:
        get:
          operationId: getPetById
          parameters: [{name: petId, in: path, required: true, type: integer}]
          responses: {'200': {description: found}}
"#;

fn indented(text: &str, by: &str) -> String {
    let lines = text.lines().map(|line| format!("{by}{line}\n"));
    lines.collect()
}

fn run(case: &Case) -> Result<Observed, RunError> {
    let text = format!(
        "workflows:\n  -\n{}input:\n{}{SERVICES}expect: {{status: completed}}\n",
        indented(&case.definition(), "    "),
        indented(&case.input(), "  ")
    );
    let scenario = Scenario::parse(text.as_bytes(), Path::new("kit.scenario.yaml"));
    VirtualRunner.run(&scenario.map_err(|error| RunError::Failed(error.to_string()))?)
}

fn examine(case: &Case) -> Result<(), String> {
    let seen = run(case).map_err(|error| error.to_string())?;
    if let Some(refused) = &seen.rejected {
        let finding = refused
            .iter()
            .flat_map(|document| &document.findings)
            .next();
        return Err(format!("refused: {finding:?}"));
    }
    let [instance] = seen.instances.as_slice() else {
        return Err(format!("{} instances", seen.instances.len()));
    };
    let error = instance.error.as_ref().map(|error| error.to_problem());
    let names = instance.tasks.iter().map(|(name, _)| name.clone());
    case.check(&Seen {
        status: instance.status.clone(),
        output: instance.output.clone().unwrap_or_default(),
        error: error.unwrap_or_default(),
        tasks: names.collect(),
    })
}

#[test]
fn the_kit_passes() {
    if let Some(folder) = folder() {
        examine_all(Path::new(&folder), examine);
    }
}

#[test]
fn features_are_read() {
    let text = "Feature: F\n  about\n  Scenario: One\n    Given a workflow with definition:\n    \"\"\"yaml\n    do:\n      - a: {}\n    \"\"\"\n    When the workflow is executed\n    # note\n    Then the workflow should complete\n";
    let cases = cases(text);
    assert_eq!(cases.len(), 1);
    assert_eq!(cases[0].steps.len(), 3);
    assert_eq!(cases[0].steps[0].1.as_deref(), Some("do:\n  - a: {}"));
}
