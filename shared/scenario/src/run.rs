//! Runs a scenario in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use swirl_engine::Definition;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::DefinitionId;
use swirl_model::instance::{Header, InstanceState, Status};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data};
use swirl_ports::{Clock, InstanceQueries, InstanceRecords, Summary};
use swirl_service::{Action, Deployed, Deployment, StartRequest};
use swirl_spec::diagnostic::{Diagnostic, Place};
use swirl_spec::{Options, Reading};
use swirl_world::{Act, Which, World};

use super::answer::{AnswerError, Answers};
use super::described;
use super::file::{Operation, Scenario, Target, WorkflowSource};
use super::mock::{Caller, mock};
use super::observed::{Observed, ObservedCall, ObservedInstance, RefusedDocument};
use super::resources::ScenarioResources;
use super::rows::millis;
use super::{RunError, Runner};

/// The real engine, driver and coordinator, in memory and virtual time.
pub struct VirtualRunner;

impl Runner for VirtualRunner {
    fn run(&self, scenario: &Scenario) -> Result<Observed, RunError> {
        let readings = read_all(scenario)?;
        let refused = readings
            .iter()
            .any(|(_, reading)| reading.workflow.is_none());
        if refused {
            return Ok(Observed {
                rejected: Some(refused_documents(readings)),
                ..Observed::default()
            });
        }
        let unknown = unknown_functions(scenario, &readings);
        let (checks, refused) = described::check(scenario, &readings);
        if !refused.is_empty() {
            return Ok(Observed {
                rejected: Some(refused),
                ..Observed::default()
            });
        }
        let answers = Answers::new(&scenario.functions);
        let trouble: Arc<Mutex<Option<AnswerError>>> = Arc::default();
        let caller = mock(answers, checks, trouble.clone());
        let mut observed = run_with(scenario, readings, caller, Keeps::Lines, || {
            let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
            trouble.take().map_or(Ok(()), |error| Err(error.into()))
        })?;
        observed.idle.extend(unknown);
        Ok(observed)
    }
}

/// The data that the histories of a run contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    Lines,
    /// Also arguments, results and events.
    Data,
}

/// Runs a scenario whose definitions have been read. `caller` answers calls, and `check` runs before the outcome is
/// compared.
///
/// # Errors
/// The run has no result, or `check` failed.
pub fn run_with(
    scenario: &Scenario,
    readings: Vec<(String, Reading)>,
    caller: Caller,
    keeps: Keeps,
    check: impl FnOnce() -> Result<(), RunError>,
) -> Result<Observed, RunError> {
    let world = match keeps {
        Keeps::Lines => World::new,
        Keeps::Data => World::recording,
    };
    let mut world = world(
        scenario.clock,
        Box::new(|record| Err(format!("{} was not deployed", record.id))),
        caller,
        scenario.secrets.clone(),
    );
    let first = match deploy(&mut world, readings)? {
        Ok(first) => first,
        Err(document) => {
            return Ok(Observed {
                rejected: Some(vec![document]),
                ..Observed::default()
            });
        }
    };
    let plan = plan(scenario, &first)?;
    world
        .run(plan, scenario.until)
        .map_err(|error| RunError::Failed(error.to_string()))?;
    check()?;
    observe(scenario, &mut world)
}

/// Reads the scenario's definitions, with their names for messages.
///
/// # Errors
/// A file cannot be read.
pub fn read_all(scenario: &Scenario) -> Result<Vec<(String, Reading)>, RunError> {
    let options = Options {
        provided: scenario.functions.keys().cloned().collect(),
        // Only the scenario's mocks answer here. A function without a mock does no harm as long as nothing calls it.
        custom_types: scenario.expect.rejected.is_some().then(BTreeSet::new),
        now: Some(scenario.clock),
        ..Options::default()
    };
    let mut readings = Vec::new();
    for source in &scenario.workflows {
        let (name, reading) = match source {
            WorkflowSource::Path(path) => {
                let document = std::fs::read(path).map_err(|error| {
                    RunError::Unreadable(format!("{}: cannot be read: {error}", path.display()))
                })?;
                let resources = ScenarioResources::new(&scenario.resources, path);
                let reading = swirl_spec::read(&document, &resources, &options);
                (path.display().to_string(), reading)
            }
            WorkflowSource::Inline(node) => {
                let resources = ScenarioResources::new(&scenario.resources, &scenario.path);
                let reading = swirl_spec::read_node(node, &resources, &options);
                (scenario.path.display().to_string(), reading)
            }
        };
        readings.push((name, reading));
    }
    Ok(readings)
}

/// The documents with findings, and their texts so that locations can be shown.
pub(crate) fn refused_documents(readings: Vec<(String, Reading)>) -> Vec<RefusedDocument> {
    let mut documents: Vec<RefusedDocument> = Vec::new();
    for (file, reading) in readings {
        let findings = reading.diagnostics.into_vec();
        match documents.iter_mut().find(|document| document.file == file) {
            Some(document) => document.findings.extend(findings),
            None if findings.is_empty() => {}
            None => documents.push(RefusedDocument::new(file, findings)),
        }
    }
    documents
}

/// Mocks for functions that no definition has. They do no harm, but may be meant for another function.
fn unknown_functions(scenario: &Scenario, readings: &[(String, Reading)]) -> Vec<(String, String)> {
    let workflows = readings
        .iter()
        .filter_map(|(_, reading)| reading.workflow.as_ref());
    let known: BTreeSet<&str> = workflows
        .flat_map(|workflow| &workflow.functions)
        .map(|function| &*function.name)
        .collect();
    let mocks = scenario.functions.keys();
    let unknown = mocks.filter(|name| !known.contains(name.as_str()));
    let described = unknown.map(|name| {
        let hint = match swirl_spec::suggest::did_you_mean(name, known.iter().copied()) {
            Some(best) => format!("; did you mean '{best}'?"),
            None => String::new(),
        };
        let why = format!("no workflow has a function of this name{hint}");
        (format!("functions.{name}"), why)
    });
    described.collect()
}

/// Deploys the definitions, and returns the id of the first.
fn deploy(
    world: &mut World,
    readings: Vec<(String, Reading)>,
) -> Result<Result<DefinitionId, RefusedDocument>, RunError> {
    let mut first = None;
    for (index, (name, reading)) in readings.into_iter().enumerate() {
        let Some(workflow) = reading.workflow else {
            continue;
        };
        first.get_or_insert_with(|| Definition::id_of(&workflow));
        let file = name.clone();
        let deployment = Deployment {
            document: format!("{name}#{index}"),
            name,
            resources: Vec::new(),
            workflow,
        };
        let service = world.service.clone();
        let deployed = world.wait(async move { service.deploy(deployment).await });
        match deployed.map_err(|error| RunError::Failed(error.to_string()))? {
            Deployed::New(_) | Deployed::Unchanged(_) => {}
            Deployed::Conflict(id) => {
                return Err(RunError::Failed(format!("two definitions are both {id}")));
            }
            Deployed::Invalid(problems) => {
                let refused = problems.into_iter().map(|problem| {
                    let place = Place {
                        pointer: problem.pointer,
                        line: 1,
                        column: 1,
                    };
                    Diagnostic::error(swirl_spec::codes::BAD_EXPRESSION, place, problem.message)
                });
                return Ok(Err(RefusedDocument {
                    file,
                    text: String::new(),
                    findings: refused.collect(),
                }));
            }
        }
    }
    first
        .map(Ok)
        .ok_or_else(|| RunError::Failed("there is no workflow".to_owned()))
}

/// The steps of the scenario. At the same instant the order is starts, events, operators' actions. `first` is the
/// workflow for starts that don't name one.
///
/// # Errors
/// The scenario refers to an instance or a workflow that it doesn't have.
pub fn plan(scenario: &Scenario, first: &DefinitionId) -> Result<Vec<(Timestamp, Act)>, RunError> {
    let mut plan = Vec::new();
    if let Some(input) = &scenario.input {
        let request = StartRequest {
            workflow: first.workflow.to_string(),
            version: Some(first.version.to_string()),
            input: input.clone(),
            request: "input".to_owned(),
            ..StartRequest::default()
        };
        plan.push((scenario.clock, Act::Start(request)));
    }
    for (index, start) in scenario.start.iter().enumerate() {
        let request = StartRequest {
            watched: false,
            workflow: start.workflow.clone(),
            version: start.version.clone(),
            input: start.input.clone().unwrap_or_else(Data::object),
            key: start.key.clone(),
            trace: None,
            request: format!("start {index}"),
        };
        plan.push((start.at, Act::Start(request)));
    }
    for (index, (at, event)) in scenario.events.iter().enumerate() {
        plan.push((*at, Act::Event(cloud_event(event, index, *at)?)));
    }
    for (index, control) in scenario.control.iter().enumerate() {
        let which = match &control.target {
            Target::Index(index) => Which::Index(*index),
            Target::Id(id) => Which::Id(id.clone()),
        };
        let action = match control.operation {
            Operation::Cancel => Action::Cancel,
            Operation::Suspend => Action::Suspend,
            Operation::Resume => Action::Resume,
            Operation::Retry => Action::Retry,
        };
        let at = millis(control.at.0 - scenario.clock.0);
        let word = control.operation.as_str();
        let operate = Act::Operate {
            name: format!("control[{index}] ('{word}' at {at})"),
            which,
            action,
        };
        plan.push((control.at, operate));
    }
    Ok(plan)
}

fn cloud_event(event: &Data, index: usize, at: Timestamp) -> Result<CloudEvent, RunError> {
    let mut event = event.clone();
    if event.get("id").is_none() {
        event.set("id", Data::string(format!("scenario-event-{index}")));
    }
    if event.get("time").is_none() {
        event.set("time", Data::string(at.to_string()));
    }
    if event.get("specversion").is_none() {
        event.set("specversion", Data::string("1.0"));
    }
    swirl_service::cloudevents::structured(&event)
        .map_err(|error| RunError::Failed(format!("event {index} is not a CloudEvent: {error}")))
}

fn observe(scenario: &Scenario, world: &mut World) -> Result<Observed, RunError> {
    let failed = |error: &dyn std::fmt::Display| RunError::Failed(error.to_string());
    let seen = world.observed();
    if let Some(call) = seen.unknown.first() {
        return Err(RunError::UnlistedFunction(call.function.clone()));
    }
    let mut calls: BTreeMap<String, Vec<ObservedCall>> = BTreeMap::new();
    for call in seen.calls {
        calls
            .entry(call.instance.to_string())
            .or_default()
            .push(ObservedCall {
                function: call.function,
                arguments: call.arguments,
                at_ms: call.at.0 - scenario.clock.0,
            });
    }
    let mut produced: BTreeMap<String, Vec<CloudEvent>> = BTreeMap::new();
    for (instance, event) in seen.produced {
        produced
            .entry(instance.to_string())
            .or_default()
            .push(event);
    }
    let summaries = world.instances().map_err(|error| failed(&error))?;
    let mut instances = Vec::new();
    for summary in summaries {
        let id = summary.header.id.to_string();
        let calls = calls.remove(&id).unwrap_or_default();
        let produced = produced.remove(&id).unwrap_or_default();
        instances.push(instance(world, &summary, calls, produced).map_err(|e| failed(&e))?);
    }
    Ok(Observed {
        instances,
        rejected: None,
        refused_starts: refused_starts(world),
        idle: world
            .idle()
            .iter()
            .map(|vain| (vain.name.clone(), vain.why.clone()))
            .collect(),
        stopped_ms: world.clock.now().0 - scenario.clock.0,
    })
}

fn refused_starts(world: &World) -> Vec<(String, String)> {
    let key = |request: &str| match request.strip_prefix("start ") {
        Some(index) => format!("start[{index}]"),
        None => request.to_owned(),
    };
    let refused = world.refused().iter();
    refused
        .map(|vain| (key(&vain.name), vain.why.clone()))
        .collect()
}

fn instance(
    world: &mut World,
    summary: &Summary,
    calls: Vec<ObservedCall>,
    produced: Vec<CloudEvent>,
) -> Result<ObservedInstance, swirl_ports::Error> {
    let header = &summary.header;
    let store = world.store.clone();
    let id = header.id.clone();
    let found = world.wait(async move { store.instance(&id).await })?;
    let state = found.map(|found| found.state).unwrap_or_default();
    let store = world.store.clone();
    let id = header.id.clone();
    let history = world.wait(async move { store.history(&id).await })?;
    Ok(observed(header, state, history, calls, produced))
}

/// An instance, from its records in the store.
pub fn observed(
    header: &Header,
    state: InstanceState,
    history: Vec<HistoryEntry>,
    calls: Vec<ObservedCall>,
    produced: Vec<CloudEvent>,
) -> ObservedInstance {
    let states = history.iter().filter(|entry| entry.scope.is_root());
    let states = states.filter_map(|entry| match &entry.event {
        Event::StateEntered { name, .. } => Some(name.to_string()),
        _ => None,
    });
    let status = match state.status {
        Status::Running if state.suspended => "suspended",
        Status::Running => "waiting",
        ended => ended.as_str(),
    };
    ObservedInstance {
        states: states.collect(),
        history,
        id: header.id.to_string(),
        definition: header.definition.to_string(),
        workflow: header.definition.workflow.to_string(),
        version: header.version.clone(),
        status: status.to_owned(),
        output: state.output,
        error: state.error,
        calls,
        produced,
        started_at: header.started_at,
        elapsed_ms: state.ended_at.map(|ended| ended.0 - header.started_at.0),
        subflow: header.parent.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<Observed, RunError> {
        let path = std::path::Path::new("x.scenario.yaml");
        VirtualRunner.run(&Scenario::parse(text.as_bytes(), path).unwrap())
    }

    fn failure(text: &str) -> String {
        run(text).unwrap_err().to_string()
    }

    const ONE: &str = "
workflows:
  - id: w
    version: 1.0.0
    specVersion: '0.8'
    functions: [{name: check, operation: 'a.json#f'}]
    states: [{name: A, type: operation, actions: [{functionRef: check}], end: true}]
input: {}
functions: {check: {return: {}}}
expect: {status: completed}
";

    #[test]
    fn a_mock_for_an_unknown_function() {
        assert!(run(ONE).is_ok());
        let more = ONE.replace("{return: {}}}", "{return: {}}, chekc: {return: 1}}");
        let idle = run(&more).unwrap().idle;
        let described = (
            "functions.chekc",
            "no workflow has a function of this name; did you mean 'check'?",
        );
        assert_eq!(idle, [(described.0.to_owned(), described.1.to_owned())]);
        // A refused definition isn't run, so its functions are unknown.
        let refused = ONE
            .replace("end: true", "end: 7")
            .replace("{check: {", "{other: {");
        assert!(run(&refused).unwrap().rejected.is_some());
    }

    #[test]
    fn operators_act_on_instances() {
        let with = |control: &str| ONE.replace("input:", &format!("control: [{control}]\ninput:"));
        let error = failure(&with("{at: PT1S, cancel: 0}, {at: PT5S, retry: 3}"));
        insta::assert_snapshot!(error, @"control[1] ('retry' at PT5S): there is no instance 3: 1 had been started by then, and the first is 0");
        let error = failure(&with("{at: PT5S, resume: nobody}"));
        insta::assert_snapshot!(error, @"control[0] ('resume' at PT5S): there is no instance 'nobody': 1 had been started by then, and the first is 0");
        let idle = run(&with("{at: PT1S, retry: 0}")).unwrap().idle;
        let (key, why) = &idle[0];
        assert_eq!(key, "control[0] ('retry' at PT1S)");
        assert_eq!(why, "it had no effect: the instance was completed");
    }

    #[test]
    fn refused_starts_are_reported() {
        let text = ONE.replace(
            "input: {}",
            "input: [1]\nstart: [{workflow: w}, {workflow: w, input: hi}]",
        );
        let refused = run(&text).unwrap().refused_starts;
        let described: Vec<String> = refused
            .iter()
            .map(|(key, why)| format!("{key}: {why}"))
            .collect();
        insta::assert_snapshot!(described.join("\n"), @r"
        input: InputValidation: the input must be an object, and is array
        start[1]: InputValidation: the input must be an object, and is string
        ");
    }

    #[test]
    fn the_first_definition_is_under_test() {
        let second = "\n  - {id: w, version: 2.0.0, specVersion: '0.8', states: [{name: B, type: inject, data: {}, end: true}]}\ninput:";
        let observed = run(&ONE.replace("\ninput:", second)).unwrap();
        assert_eq!(observed.instances[0].states, ["A"]);
    }

    /// Mocks answer immediately, so nothing ever waits.
    #[test]
    fn loops_of_calls_end() {
        for answer in ["return: {}", "error: {name: Boom}"] {
            let text = format!(
                "
workflows:
  - id: w
    version: 1.0.0
    specVersion: '0.8'
    functions: [{{name: f, operation: 'a.json#f'}}]
    errors: [{{name: Boom}}]
    states:
      - name: A
        type: operation
        actions: [{{functionRef: f}}]
        onErrors: [{{errorRef: Boom, transition: A}}]
        transition: B
      - {{name: B, type: inject, data: {{}}, transition: A}}
input: {{}}
functions: {{f: {{{answer}}}}}
expect: {{status: faulted}}
"
            );
            let error = failure(&text);
            assert!(error.starts_with("virtual time stands still"), "{error}");
        }
    }

    #[test]
    fn loops_of_events_end() {
        let error = failure(
            "
workflows:
  - id: w
    version: 1.0.0
    specVersion: '0.8'
    events:
      - {name: E, type: e, correlation: [{contextAttributeName: k}]}
      - {name: P, type: e, kind: produced}
    states:
      - {name: A, type: event, onEvents: [{eventRefs: [E]}], transition: {nextState: A, produceEvents: [{eventRef: P, contextAttributes: {k: '1'}}]}}
events: [{at: PT0S, event: {type: e, source: s, k: '1'}}]
expect: {instances: []}
",
        );
        assert!(error.starts_with("virtual time stands still"), "{error}");
    }
}
