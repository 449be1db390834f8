//! Rehearsals: a definition that need not be deployed runs in virtual time, with answers that its author gives. The run
//! is written down as a scenario, and what ran is that scenario.
//!
//! Both the definition and the answers come from clients. The caller limits time and memory, and sees to it that nothing
//! outside can be reached.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use swirl_api::history::HistoryEntry;
use swirl_api::instance::{Condition, Error};
use swirl_api::rehearsals::{Rehearsal, Rehearsed, RehearsedCall, RehearsedInstance};
use swirl_api::{Finding, Problem};
use swirl_deployment::Refusal;
use swirl_documents::source::{self, Limits};
use swirl_engine::Definition;
use swirl_migrate::yaml;
use swirl_model::workflow::Workflow;
use swirl_model::{CloudEvent, Data, WorkflowError};
use swirl_presentation::{Format, Names, Rewound, Trail, render, render_with};
use swirl_spec::Options;
use swirl_spec::resource::MapResources;
use swirl_virtual_time::World;

use crate::file::{FileError, Scenario};
use crate::mock::is_sysout;
use crate::observed::{Observed, ObservedCall, ObservedInstance, RefusedDocument};
use crate::rows::millis;
use crate::run::{Keeps, read_all, run_cut};
use crate::{Expect, RunError};

/// The limits of a run: how often virtual time may advance, and the entries of history at one moment.
const ADVANCES_MAX: u64 = 30_000;
const WORK_MAX: u64 = 100_000;

/// The limits of an answer: instances, entries of all histories, calls and events of an instance, and bytes of JSON.
const INSTANCES_MAX: usize = 100;
const ENTRIES_MAX: usize = 2_000;
const ITEMS_MAX: usize = 500;
const DATA_BYTES_MAX: usize = 1 << 20;

/// There is no file beside a rehearsal, since there is no such folder.
const PATH: &str = "/dev/null/rehearsal.scenario.yaml";

/// The keys of a scenario that mocks may have.
const KEYS: [&str; 10] = [
    "clock",
    "control",
    "events",
    "functions",
    "name",
    "resources",
    "secrets",
    "start",
    "until",
    "workflows",
];

/// Rehearses a definition. `over`: the run stops as soon as this is true.
///
/// # Errors
/// The definition (`definition-invalid`) or the mocks (`mocks-invalid`) are not valid.
pub fn rehearse(asked: &Rehearsal, over: Arc<AtomicBool>) -> Result<Rehearsed, Problem> {
    let mocks = mocks(asked)?;
    let workflow = read(asked, &mocks)?;
    let document = source::parse(asked.document.as_bytes(), &Limits::default());
    let document = document.map_err(|error| invalid(vec![finding(&error)]))?;
    let version = Definition::id_of(&workflow).version.to_string();
    let mut document = document.to_data();
    if document.get("version").is_some() {
        // A number such as 1.10 would lose its zero.
        document.set("version", Data::string(version.as_str()));
    }
    let parts = Parts {
        asked,
        mocks: &mocks,
        document,
        id: workflow.id.clone(),
    };
    let mut expect = Data::object();
    expect.set("status", Data::string("completed"));
    let text = yaml(&parts.compose(expect));
    let most = Limits::default().bytes_max;
    if text.len() > most {
        return Err(wrong(format!(
            "the definition, its files, the input and the mocks have {} bytes together; at most {most} can be tried",
            text.len()
        )));
    }
    let scenario = parse(&text)?;
    let mut rehearsed = Rehearsed {
        id: Some(workflow.id.clone()),
        version: Some(version),
        passed: millis(0),
        beginning: beginning(&workflow),
        diagram: Some(render(&workflow, Format::Svg)),
        ..Rehearsed::default()
    };
    let limit = |world: &mut World| {
        world.advances_max = ADVANCES_MAX;
        world.limit_work(WORK_MAX);
        world.stop_when(over);
    };
    let (observed, cut) = match run_cut(&scenario, Keeps::Data, limit) {
        Ok(done) => done,
        Err(error) => {
            rehearsed.message = Some(sentence(&error));
            return Ok(rehearsed);
        }
    };
    if let Some(refused) = &observed.rejected {
        return Err(invalid(findings(refused)));
    }
    rehearsed.passed = millis(observed.stopped_ms);
    rehearsed.notes = notes(&observed);
    rehearsed.message = cut.as_ref().map(ToString::to_string);
    if cut.is_none() {
        rehearsed.scenario = parts.scenario(&observed);
        if rehearsed.scenario.is_none() {
            let note =
                "the run can't be written as a scenario that passes: it is probably too long";
            rehearsed.notes.push(note.to_owned());
        }
    }
    let read = read_all(&scenario).unwrap_or_default();
    let workflows: BTreeMap<String, &Workflow> = read
        .iter()
        .filter_map(|(_, reading)| reading.workflow.as_ref())
        .map(|workflow| (Definition::id_of(workflow).to_string(), workflow))
        .collect();
    if let Some(first) = observed.instances.first()
        && let Some(workflow) = workflows.get(&first.definition)
    {
        let rewound = Rewound::new(workflow, &first.history);
        let trail = Trail::rewound(&first.history, &rewound);
        rehearsed.diagram = Some(render_with(workflow, &trail));
    }
    let mut room = Room {
        entries: ENTRIES_MAX,
        bytes: DATA_BYTES_MAX,
    };
    let shown = observed.instances.iter().take(INSTANCES_MAX);
    let shown = shown.map(|one| instance(one, workflows.get(&one.definition).copied(), &mut room));
    rehearsed.instances = shown.collect();
    Ok(rehearsed)
}

/// The room left in the answer.
struct Room {
    entries: usize,
    bytes: usize,
}

impl Room {
    /// The value, or a text in its place if it is too long.
    fn take(&mut self, data: &Data) -> Value {
        if data.exceeds(self.bytes) {
            return Value::String("(too long to be shown)".to_owned());
        }
        let value = Value::from(data);
        self.bytes -= value.to_string().len().min(self.bytes);
        value
    }
}

/// The mocks as an object.
fn mocks(asked: &Rehearsal) -> Result<Data, Problem> {
    if asked.mocks.trim().is_empty() {
        return Ok(Data::object());
    }
    let node = source::parse(asked.mocks.as_bytes(), &Limits::default());
    let node = node.map_err(|error| wrong(format!("line {}: {}", error.line, error.message)))?;
    let data = node.to_data();
    if data.is_null() {
        // Only comments.
        return Ok(Data::object());
    }
    if !data.is_object() {
        let detail =
            "the mocks must be an object with keys of a scenario, such as 'functions' and 'events'";
        return Err(wrong(detail.to_owned()));
    }
    for name in names(&data) {
        match &*name {
            "expect" => {
                let detail =
                    "'expect' has no effect here: the scenario that is made expects what happened";
                return Err(wrong(detail.to_owned()));
            }
            "input" => {
                let detail = "put the input beside the mocks, not in them";
                return Err(wrong(detail.to_owned()));
            }
            name if !KEYS.contains(&name) => {
                let keys = KEYS.map(|key| format!("'{key}'")).join(", ");
                let detail = format!("the mocks have no key '{name}'; there are {keys}");
                return Err(wrong(detail));
            }
            _ => {}
        }
    }
    let others = data.get("workflows").unwrap_or_else(Data::object);
    let others = others.as_array().into_iter().flat_map(|all| all.iter());
    if others
        .map(|one| Data(one.clone()))
        .any(|one| !one.is_object())
    {
        let detail = "'workflows' has further definitions, written out: there are no files here";
        return Err(wrong(detail.to_owned()));
    }
    Ok(data)
}

/// Reads the definition by itself, so that findings have its lines.
fn read(asked: &Rehearsal, mocks: &Data) -> Result<Workflow, Problem> {
    let mut resources = MapResources::default();
    for (uri, content) in &asked.resources {
        resources.insert(uri.clone(), content.clone());
    }
    let options = Options {
        provided: mocks.get("functions").iter().flat_map(names).collect(),
        custom_types: None,
        ..Options::default()
    };
    let mut reading = swirl_spec::read(asked.document.as_bytes(), &resources, &options);
    match reading.workflow.take() {
        Some(workflow) => Ok(workflow),
        None => Err(invalid(Refusal::Document(Box::new(reading)).findings())),
    }
}

fn parse(text: &str) -> Result<Scenario, Problem> {
    Scenario::parse(text.as_bytes(), Path::new(PATH)).map_err(|error| match error {
        // Their lines are those of a text that the author doesn't see.
        FileError::Invalid { problems, .. } => {
            let said = problems.into_iter().map(|one| match one.hint {
                Some(hint) => format!("{} ({hint})", one.message),
                None => one.message,
            });
            wrong(said.collect::<Vec<_>>().join("; "))
        }
        error @ FileError::Io { .. } => wrong(error.to_string()),
    })
}

fn wrong(detail: String) -> Problem {
    Problem {
        title: "Unprocessable Entity".to_owned(),
        status: 422,
        code: "mocks-invalid".to_owned(),
        detail,
        ..Problem::default()
    }
}

fn invalid(findings: Vec<Finding>) -> Problem {
    let mut problem = Problem {
        code: "definition-invalid".to_owned(),
        ..wrong("the document is not a valid definition".to_owned())
    };
    problem.more.diagnostics = findings;
    problem
}

/// Findings of the scenario, in whose text the lines are others.
fn findings(refused: &[RefusedDocument]) -> Vec<Finding> {
    let all = refused.iter().flat_map(|document| &document.findings);
    let without_lines = all.map(|found| Finding {
        line: None,
        column: None,
        ..finding(found)
    });
    without_lines.collect()
}

fn finding(found: &swirl_documents::diagnostic::Diagnostic) -> Finding {
    Finding {
        severity: found.severity.as_str().to_owned(),
        code: found.code.as_str().to_owned(),
        message: found.message.clone(),
        path: Some(found.pointer.clone()),
        line: Some(found.line),
        column: Some(found.column),
        hint: found.hint.clone(),
        related: None,
    }
}

fn sentence(error: &RunError) -> String {
    match error {
        RunError::UnlistedFunction(name) => format!(
            "the function '{name}' was called, and the mocks don't say how it answers; list it under 'functions'"
        ),
        other => other.to_string(),
    }
}

fn notes(observed: &Observed) -> Vec<String> {
    let refused = observed.refused_starts.iter();
    let refused = refused.map(|(key, why)| format!("{key}: the start was refused: {why}"));
    let idle = observed.idle.iter();
    let idle = idle.map(|(key, why)| format!("{key}: {why}"));
    refused.chain(idle).take(ITEMS_MAX).collect()
}

fn instance(
    one: &ObservedInstance,
    workflow: Option<&Workflow>,
    room: &mut Room,
) -> RehearsedInstance {
    let mut names = workflow.map(Names::new);
    if let Some(names) = &mut names {
        names.learn(&one.history);
    }
    let shown = one.history.len().min(room.entries);
    room.entries -= shown;
    let entries = one.history[..shown].iter().map(|entry| {
        let mut shown = HistoryEntry::from(entry);
        shown.place = names.as_ref().and_then(|names| names.name_of(&entry.scope));
        let data = entry.data.as_ref();
        match data.is_some_and(|data| data.exceeds(room.bytes)) {
            true => shown.data = None,
            false => {
                let length = data.map_or(0, |data| data.to_string().len());
                room.bytes -= length.min(room.bytes);
            }
        }
        shown
    });
    let entries: Vec<HistoryEntry> = entries.collect();
    let calls = one.calls.iter().take(ITEMS_MAX).map(|call| RehearsedCall {
        function: name_of(call),
        arguments: room.take(&call.arguments),
        at: millis(call.at_ms),
    });
    let calls = calls.collect();
    let produced = one.produced.iter().take(ITEMS_MAX);
    let produced = produced.map(|event| {
        let whole = event.to_data();
        if !whole.exceeds(room.bytes) {
            return room.take(&whole);
        }
        // It stays an event, without its data.
        let without = CloudEvent {
            data: None,
            ..event.clone()
        };
        Value::from(&without.to_data())
    });
    let produced = produced.collect();
    RehearsedInstance {
        id: one.id.clone(),
        workflow: one.workflow.clone(),
        version: one.version.clone(),
        subflow: one.subflow,
        status: Condition::from(&*one.status),
        started_at: one.started_at.into(),
        elapsed: one.elapsed_ms.map(millis),
        output: one.output.as_ref().map(|output| room.take(output)),
        error: one.error.as_ref().map(Error::from),
        calls,
        produced,
        entries,
        entries_left_out: one.history.len() - shown,
    }
}

/// Its function or task; of a request of its own, that.
fn name_of(call: &ObservedCall) -> String {
    match &call.request {
        Some(request) if call.function.is_empty() => format!("{} {}", request.method, request.uri),
        _ => call.function.clone(),
    }
}

/// A beginning for mocks, in YAML.
fn beginning(workflow: &Workflow) -> String {
    let mut answer = Data::object();
    answer.set("return", Data::object());
    let mut functions = Data::object();
    for function in workflow.functions.iter().filter(|one| !is_sysout(one)) {
        let task = function.mock_keys().nth(1).filter(|key| !key.is_empty());
        let name = match function.place.is_empty() {
            true => &*function.name,
            false => task.unwrap_or(&function.name),
        };
        functions.set(name, answer.clone());
    }
    let events = workflow.events.iter().filter(|event| !event.produced);
    let events = events.map(|event| {
        let text = |text: &Option<String>, other: &str| {
            Data::string(text.clone().unwrap_or_else(|| other.to_owned()))
        };
        let mut sent = Data::object();
        sent.set("type", text(&event.kind, "example"));
        sent.set("source", text(&event.source, "/example"));
        for correlation in &event.correlation {
            sent.set(&correlation.attribute, Data::string("..."));
        }
        sent.set("data", Data::object());
        let mut row = Data::object();
        row.set("at", Data::string("PT1S"));
        row.set("event", sent);
        row
    });
    let events: Vec<Data> = events.collect();
    let mut mocks = Data::object();
    if functions != Data::object() {
        mocks.set("functions", functions);
    }
    if !events.is_empty() {
        mocks.set("events", Data::array(events));
    }
    match mocks == Data::object() {
        true => String::new(),
        false => yaml(&mocks),
    }
}

/// The parts of the scenario that is made.
struct Parts<'a> {
    asked: &'a Rehearsal,
    mocks: &'a Data,
    document: Data,
    id: String,
}

impl Parts<'_> {
    fn compose(&self, expect: Data) -> Data {
        let mut scenario = Data::object();
        let name = self.mocks.get("name");
        let status = expect.get("status");
        let status = status.as_ref().and_then(Data::as_str);
        let given = format!("{}: {}", self.id, status.unwrap_or("rehearsed"));
        scenario.set("name", name.unwrap_or_else(|| Data::string(given)));
        if let Some(input) = &self.asked.input {
            scenario.set("input", Data::from(input.clone()));
        }
        let (mut others, mut resources) = (Vec::new(), Data::object());
        for (uri, content) in &self.asked.resources {
            resources.set(uri, Data::string(content.as_str()));
        }
        for name in names(self.mocks) {
            let value = self.mocks.get(&name).unwrap_or_default();
            match &*name {
                "name" => {}
                "workflows" => others = items(&value),
                "resources" => {
                    for uri in names(&value) {
                        resources.set(&uri, value.get(&uri).unwrap_or_default());
                    }
                }
                _ => scenario.set(&name, value),
            }
        }
        scenario.set("expect", expect);
        if resources != Data::object() {
            scenario.set("resources", resources);
        }
        others.insert(0, self.document.clone());
        scenario.set("workflows", Data::array(others));
        scenario
    }

    /// A scenario that expects what was observed, and passes. If not all of it can be expected, the least is.
    fn scenario(&self, observed: &Observed) -> Option<String> {
        for whole in [true, false] {
            let text = yaml(&self.compose(expected(observed, whole)));
            let parsed = parse(&text).ok();
            if parsed.is_some_and(|scenario| passes(&scenario.expect, observed)) {
                return Some(text);
            }
        }
        None
    }
}

fn passes(expect: &Expect, observed: &Observed) -> bool {
    expect.check(observed).is_empty()
}

/// `whole`: with everything that is known; otherwise only the status.
fn expected(observed: &Observed, whole: bool) -> Data {
    if let [one] = &observed.instances[..] {
        return wanted(one, whole);
    }
    let instances = observed.instances.iter().map(|one| {
        let mut row = Data::object();
        row.set("workflow", Data::string(one.workflow.as_str()));
        let all = wanted(one, whole);
        for name in names(&all) {
            row.set(&name, all.get(&name).unwrap_or_default());
        }
        row
    });
    let mut expect = Data::object();
    expect.set("instances", Data::array(instances.collect()));
    expect.set("subflows", Data::bool(true));
    expect
}

fn wanted(one: &ObservedInstance, whole: bool) -> Data {
    let mut wanted = Data::object();
    let status = match one.status.as_str() {
        "running" => "waiting",
        status => status,
    };
    wanted.set("status", Data::string(status));
    if !whole {
        return wanted;
    }
    if let Some(output) = &one.output {
        wanted.set("output", output.clone());
    }
    if let Some(error) = &one.error {
        wanted.set("error", wanted_error(error, one.is_of_tasks));
    }
    // In which turn branches do something is certain in each run, but not what the author means.
    let in_turn = one.history.iter().all(|entry| entry.scope.is_root());
    if in_turn {
        let (key, texts): (_, Vec<&String>) = match one.is_of_tasks {
            true => ("tasks", one.tasks.iter().map(|(name, _)| name).collect()),
            false => ("states", one.states.iter().collect()),
        };
        let texts = texts.into_iter().map(|text| Data::string(text.as_str()));
        wanted.set(key, Data::array(texts.collect()));
    }
    let calls = one.calls.iter().filter(|call| !call.function.is_empty());
    let calls = calls.map(|call| {
        let mut row = Data::object();
        let key = match call.place {
            Some(_) => "task",
            None => "function",
        };
        row.set(key, Data::string(call.function.as_str()));
        if call.request.is_none() {
            row.set("arguments", call.arguments.clone());
        }
        row
    });
    // Of a task that also makes requests of its own, these are rows, too.
    if one.calls.iter().all(|call| !call.function.is_empty()) {
        let key = if in_turn { "calls" } else { "callsUnordered" };
        wanted.set(key, Data::array(calls.collect()));
    }
    wanted
}

fn wanted_error(error: &WorkflowError, is_of_tasks: bool) -> Data {
    if is_of_tasks {
        return error.to_problem();
    }
    let mut wanted = Data::object();
    wanted.set("name", Data::string(error.name.as_str()));
    if let Some(code) = &error.code {
        wanted.set("code", Data::string(code.as_str()));
    }
    if let Some(status) = error.status {
        wanted.set("status", Data::int(status.into()));
    }
    wanted.set("message", Data::string(error.message.as_str()));
    wanted
}

fn names(data: &Data) -> Vec<String> {
    let members = data.as_object().into_iter().flat_map(|all| all.iter());
    let names = members.filter_map(|(name, _)| Data(name.clone()).as_str().map(str::to_owned));
    names.collect()
}

fn items(data: &Data) -> Vec<Data> {
    let items = data.as_array().into_iter().flat_map(|all| all.iter());
    items.map(|one| Data(one.clone())).collect()
}

#[cfg(test)]
mod tests;
