//! Runs a scenario in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use swirl_documents::diagnostic::{Diagnostic, SourceLocation};
use swirl_engine::Definition;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::{DefinitionId, ScopeId};
use swirl_model::instance::{Header, InstanceState, Status};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data};
use swirl_ports::{Clock, InstanceQueries, InstanceRecords, Summary};
use swirl_service::{Action, Deployed, Deployment, StartRequest};
use swirl_spec::{Options, Reading};
use swirl_virtual_time::{Act, Which, World, WorldError};

use super::answer::{AnswerError, Answers, is_for_requests};
use super::described;
use super::file::{Operation, Scenario, Target, WorkflowSource};
use super::mock::{Caller, mock};
use super::observed::{Observed, ObservedCall, ObservedInstance, RefusedDocument};
use super::order::in_document_order;
use super::places::places_of;
use super::requests::{Requests, SentRequests, makes_requests, shown_arguments};
use super::resources::ScenarioResources;
use super::rows::millis;
use super::{RunError, Runner};

/// The real engine, driver and coordinator, in memory and virtual time.
pub struct VirtualRunner;

impl Runner for VirtualRunner {
    fn run(&self, scenario: &Scenario) -> Result<Observed, RunError> {
        run_limited(scenario, |_| {})
    }
}

/// `limit` may set limits of the world.
fn run_limited(scenario: &Scenario, limit: impl FnOnce(&mut World)) -> Result<Observed, RunError> {
    whole(run_cut(scenario, Keeps::Lines, limit)?)
}

/// The outcome, and the reason if the run was stopped before its end.
pub type Cut = (Observed, Option<WorldError>);

fn whole((observed, cut): Cut) -> Result<Observed, RunError> {
    match cut {
        None => Ok(observed),
        Some(error) => Err(RunError::Failed(error.to_string())),
    }
}

/// As [`VirtualRunner`], within limits. Of a run that was stopped there is what had happened until then.
///
/// # Errors
/// The run has no result.
pub fn run_cut(
    scenario: &Scenario,
    keeps: Keeps,
    limit: impl FnOnce(&mut World),
) -> Result<Cut, RunError> {
    let readings = read_all(scenario)?;
    let refused = readings
        .iter()
        .any(|(_, reading)| reading.workflow.is_none());
    let unknown = unknown_functions(scenario, &readings);
    let described = described::check(scenario, &readings);
    if refused || !described.refused.is_empty() {
        let rejected = together(refused_documents(readings), described.refused);
        let observed = Observed {
            rejected: Some(rejected),
            ..Observed::default()
        };
        return Ok((observed, None));
    }
    let tested = readings.first();
    let tested = tested.and_then(|(_, reading)| reading.workflow.as_ref());
    let answers = Answers::new(&scenario.functions).testing(tested.map(Definition::id_of));
    let answers = Arc::new(answers);
    let sent = SentRequests::default();
    let workflows = || {
        let workflows = readings.iter();
        workflows.filter_map(|(_, reading)| reading.workflow.as_ref())
    };
    let requests = match workflows().any(makes_requests) {
        true => Requests::new(answers.clone(), sent.clone()),
        false => None,
    };
    if let Some(requests) = &requests {
        for workflow in workflows() {
            let id = Definition::id_of(workflow);
            let resources = described.resources.get(&id);
            let resources = resources.map_or(&[][..], Vec::as_slice);
            requests.prepare(&id, workflow, resources);
        }
    }
    let trouble: Arc<Mutex<Option<AnswerError>>> = Arc::default();
    let caller = mock(answers, requests, described.checks, trouble.clone());
    let mut world = world(scenario, caller, keeps);
    limit(&mut world);
    let ran = run_in(world, scenario, readings, &sent, || {
        let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.take().map_or(Ok(()), |error| Err(error.into()))
    });
    let (mut observed, cut) = ran.map_err(|error| match &error {
        RunError::UnlistedFunction(_) if !unknown.is_empty() => {
            let unknown = unknown.iter().map(|(key, why)| format!("; {key}: {why}"));
            RunError::Failed(format!("{error}{}", unknown.collect::<String>()))
        }
        _ => error,
    })?;
    observed.idle.extend(unknown);
    Ok((observed, cut))
}

/// The data that the histories of a run contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    Lines,
    /// Also arguments, results and events.
    Data,
}

/// Runs a scenario whose definitions have been read. `caller` answers calls, `sent` has their requests, and `check` runs before the outcome is
/// compared.
///
/// # Errors
/// The run has no result, or `check` failed.
pub fn run_with(
    scenario: &Scenario,
    readings: Vec<(String, Reading)>,
    caller: Caller,
    sent: &SentRequests,
    keeps: Keeps,
    check: impl FnOnce() -> Result<(), RunError>,
) -> Result<Observed, RunError> {
    let world = world(scenario, caller, keeps);
    whole(run_in(world, scenario, readings, sent, check)?)
}

fn world(scenario: &Scenario, caller: Caller, keeps: Keeps) -> World {
    let world = match keeps {
        Keeps::Lines => World::new,
        Keeps::Data => World::recording,
    };
    world(
        scenario.clock,
        Box::new(|record| Err(format!("{} was not deployed", record.id))),
        caller,
        scenario.secrets.clone(),
    )
}

fn run_in(
    mut world: World,
    scenario: &Scenario,
    readings: Vec<(String, Reading)>,
    sent: &SentRequests,
    check: impl FnOnce() -> Result<(), RunError>,
) -> Result<Cut, RunError> {
    let places = places_of(&readings);
    let first = match deploy(&mut world, readings)? {
        Ok(first) => first,
        Err(document) => {
            let observed = Observed {
                rejected: Some(vec![document]),
                ..Observed::default()
            };
            return Ok((observed, None));
        }
    };
    let plan = plan(scenario, &first)?;
    let cut = match world.run(plan, scenario.until) {
        Ok(_) => None,
        // Whatever was under way waits for good.
        Err(
            error @ (WorldError::Endless(_) | WorldError::TooLong { .. } | WorldError::Stopped(_)),
        ) => Some(error),
        Err(error) => return Err(RunError::Failed(error.to_string())),
    };
    check()?;
    let mut observed = observe(scenario, &mut world, sent)?;
    for instance in &mut observed.instances {
        instance.take_tasks(&places);
    }
    Ok((observed, cut))
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
                let document = swirl_documents::files::read(
                    path,
                    swirl_documents::files::BYTES_MAX,
                )
                .map_err(|error| {
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
pub fn refused_documents(readings: Vec<(String, Reading)>) -> Vec<RefusedDocument> {
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

/// All findings of each document.
fn together(mut all: Vec<RefusedDocument>, more: Vec<RefusedDocument>) -> Vec<RefusedDocument> {
    for document in more {
        match all.iter_mut().find(|known| known.file == document.file) {
            Some(known) => known.findings.extend(document.findings),
            None => all.push(document),
        }
    }
    all
}

/// Mocks for functions that no definition has. They do no harm, but may be meant for another function.
fn unknown_functions(scenario: &Scenario, readings: &[(String, Reading)]) -> Vec<(String, String)> {
    let workflows = readings
        .iter()
        .filter_map(|(_, reading)| reading.workflow.as_ref());
    let known: BTreeSet<&str> = workflows
        .enumerate()
        .flat_map(|(index, workflow)| workflow.functions.iter().map(move |it| (index, it)))
        .flat_map(|(index, function)| match function.place.is_empty() {
            true => vec![&*function.name],
            // Places are those of the workflow under test.
            false => function.mock_keys().skip(index.min(1)).collect(),
        })
        .collect();
    let mut workflows = readings
        .iter()
        .filter_map(|(_, reading)| reading.workflow.as_ref());
    let requests = workflows.any(makes_requests);
    let mocks = scenario.functions.keys();
    let answers = |name: &str| known.contains(name) || (requests && is_for_requests(name));
    let unknown = mocks.filter(|name| !answers(name));
    let described = unknown.map(|name| {
        let in_capitals =
            |(method, rest): (&str, &str)| format!("{} {rest}", method.to_ascii_uppercase());
        let upper = name.split_once(' ').map(in_capitals);
        let hint = match swirl_documents::suggest::did_you_mean(name, known.iter().copied()) {
            Some(best) => format!("; did you mean '{best}'?"),
            None => match upper.filter(|upper| requests && is_for_requests(upper)) {
                Some(upper) => format!("; for a request, write '{upper}'"),
                None => String::new(),
            },
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
                return Err(RunError::Failed(format!(
                    "two definitions have the id {id}"
                )));
            }
            Deployed::Invalid(problems) => {
                let refused = problems.into_iter().map(|problem| {
                    let place = SourceLocation {
                        pointer: problem.pointer,
                        line: 1,
                        column: 1,
                    };
                    Diagnostic::error(
                        swirl_documents::codes::BAD_EXPRESSION,
                        place,
                        problem.message,
                    )
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
            Target::Id(id) => Which::Name(id.clone()),
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

fn observe(
    scenario: &Scenario,
    world: &mut World,
    sent: &SentRequests,
) -> Result<Observed, RunError> {
    let failed = |error: &dyn std::fmt::Display| RunError::Failed(error.to_string());
    let mut seen = world.observed();
    if let Some(call) = seen.unknown.first() {
        return Err(RunError::UnlistedFunction(call.function.clone()));
    }
    let mut calls: BTreeMap<String, Vec<ObservedCall>> = BTreeMap::new();
    seen.calls
        .sort_by(|one, other| one.scope.instance.cmp(&other.scope.instance));
    for of_one in seen
        .calls
        .chunk_by_mut(|one, other| one.scope.instance == other.scope.instance)
    {
        in_document_order(of_one, |call| (call.at, &call.scope.scope));
        let mut requests: Vec<(Timestamp, &ScopeId, ObservedCall)> = of_one
            .iter()
            .flat_map(|call| {
                seen_calls(call, scenario.clock, sent)
                    .into_iter()
                    .map(|(at, request)| (at, &call.scope.scope, request))
            })
            .collect();
        requests.sort_by_key(|(at, ..)| *at);
        in_document_order(&mut requests, |(at, scope, _)| (*at, scope));
        if let Some(call) = of_one.first() {
            let requests = requests.into_iter().map(|(.., request)| request);
            calls.insert(call.scope.instance.to_string(), requests.collect());
        }
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

/// A call, or its requests, with their times.
fn seen_calls(
    call: &swirl_virtual_time::Call,
    clock: Timestamp,
    sent: &SentRequests,
) -> Vec<(Timestamp, ObservedCall)> {
    let is_task = !call.of.place.is_empty();
    let place = is_task.then(|| call.of.task_place().to_owned());
    let seen = ObservedCall {
        function: match is_task {
            true => call.of.task().to_string(),
            false => call.function.clone(),
        },
        arguments: shown_arguments(&call.of, &call.arguments, &call.key),
        at_ms: call.at.0 - clock.0,
        place,
        request: None,
    };
    let Some(requests) = sent.take(&call.key, call.at) else {
        return vec![(call.at, seen)];
    };
    let observed = requests.into_iter().map(|sent| {
        let at = Timestamp(call.at.0.saturating_add_unsigned(sent.after_ms));
        let request = ObservedCall {
            at_ms: at.0 - clock.0,
            request: Some(sent.request),
            ..match sent.of_task {
                true => seen.clone(),
                false => ObservedCall {
                    function: String::new(),
                    arguments: Data::NULL,
                    place: None,
                    ..seen.clone()
                },
            }
        };
        (at, request)
    });
    observed.collect()
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
        is_of_tasks: false,
        tasks: Vec::new(),
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
        scheduled_at: header.scheduled_at,
        elapsed_ms: state.ended_at.map(|ended| ended.0 - header.started_at.0),
        subflow: header.parent.is_some(),
    }
}

#[cfg(test)]
mod tests;
