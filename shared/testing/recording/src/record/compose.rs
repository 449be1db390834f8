//! The scenario file of a recording.

use std::collections::{BTreeMap, BTreeSet};

use swirl_api::Status;
use swirl_model::Data;
use swirl_model::event::Event;
use swirl_model::time::Timestamp;
use swirl_scenario::millis;

use super::Sources;
use super::export::Recorded;
use super::facts::{Facts, Outcome, RecordedCall};

/// Attributes of produced events that differ between runs.
const OF_THE_RUN: [&str; 5] = ["id", "time", "specversion", "traceparent", "tracestate"];

/// The parts of a scenario.
pub struct Parts<'p> {
    pub instances: &'p [Recorded],
    pub facts: &'p Facts,
    pub sources: &'p Sources,
    /// In the order in which a run needs them.
    pub calls: Vec<&'p RecordedCall>,
    /// Indices of the instances in the order in which a run starts them.
    pub order: Vec<usize>,
}

/// A scenario, and the expectations that were omitted.
pub struct Composed {
    pub scenario: Data,
    pub notes: BTreeSet<String>,
}

impl Parts<'_> {
    pub fn compose(&self) -> Composed {
        let mut notes = BTreeSet::new();
        let mut scenario = Data::object();
        let Some(first) = self.instances.first() else {
            return Composed { scenario, notes };
        };
        let zero = first.header.started_at;
        let mut set = |name: &str, value: Data| scenario.set(name, value);
        let short: String = first.header.id.as_str().chars().take(8).collect();
        let (workflow, status) = (&first.header.definition.workflow, &first.status);
        set(
            "name",
            Data::string(format!("{workflow} {short}, recorded: {status}")),
        );
        set("clock", Data::string(format!("{zero:.3}")));
        if !self.facts.by_event {
            set("input", first.header.input.clone());
        }
        if self.sources.secrets != Data::object() {
            set("secrets", self.sources.secrets.clone());
        }
        let functions = self.functions();
        if functions != Data::object() {
            set("functions", functions);
        }
        let events = self.events(zero);
        if !events.is_empty() {
            set("events", Data::array(events));
        }
        let operated = self.facts.operated.iter().map(|one| {
            let mut control = Data::object();
            control.set("at", offset(zero, one.at));
            control.set(one.word, Data::int(0));
            control
        });
        let operated: Vec<Data> = operated.collect();
        if !operated.is_empty() {
            set("control", Data::array(operated));
        }
        if let Some(until) = self.until(zero) {
            set("until", Data::string(until));
        }
        set("expect", self.expect(&mut notes));
        if !self.sources.resources.is_empty() {
            let mut resources = Data::object();
            for (uri, text) in &self.sources.resources {
                resources.set(uri, Data::string(text.as_str()));
            }
            set("resources", resources);
        }
        set("workflows", Data::array(self.sources.workflows.clone()));
        Composed { scenario, notes }
    }

    /// By function, in the order in which a run needs them.
    fn functions(&self) -> Data {
        let mut by_name: BTreeMap<&str, Vec<Data>> = BTreeMap::new();
        for call in &self.calls {
            by_name
                .entry(&call.function)
                .or_default()
                .push(answer(call));
        }
        let mut functions = Data::object();
        for name in &self.sources.custom {
            by_name.entry(name).or_insert_with(|| vec![uncalled()]);
        }
        for (name, mut answers) in by_name {
            // The last answer repeats by itself.
            while answers.len() > 1 && answers[answers.len() - 1] == answers[answers.len() - 2] {
                answers.pop();
            }
            let answers = match answers.len() {
                1 => answers.remove(0),
                _ => Data::array(answers),
            };
            functions.set(name, answers);
        }
        functions
    }

    fn events(&self, zero: Timestamp) -> Vec<Data> {
        let begins = self.facts.by_event;
        let events = self.facts.events.iter().enumerate();
        let events = events.map(|(index, (at, event))| {
            let at = if begins && index == 0 { zero } else { *at };
            let mut row = Data::object();
            row.set("at", offset(zero, at));
            row.set(
                "event",
                without(event, &["specversion", "traceparent", "tracestate"]),
            );
            row
        });
        events.collect()
    }

    /// Set only if something would continue after the recording.
    fn until(&self, zero: Timestamp) -> Option<String> {
        let goes_on = self
            .instances
            .iter()
            .any(|one| one.status == Status::Running);
        if !goes_on && !self.sources.scheduled {
            return None;
        }
        let last = self.instances.iter().flat_map(|one| &one.history);
        let last = last.map(|entry| entry.at.0).max().unwrap_or(zero.0);
        Some(millis((last - zero.0).max(0) + 1))
    }

    fn expect(&self, notes: &mut BTreeSet<String>) -> Data {
        if let [_] = self.instances {
            return self.wanted(0, notes);
        }
        let instances = self.order.iter().map(|index| {
            let mut wanted = Data::object();
            let workflow = &self.instances[*index].header.definition.workflow;
            wanted.set("workflow", Data::string(&**workflow));
            let of_instance = self.wanted(*index, notes);
            for (name, value) in of_instance
                .as_object()
                .into_iter()
                .flat_map(|all| all.iter())
            {
                if let Some(name) = Data(name.clone()).as_str() {
                    wanted.set(name, Data(value.clone()));
                }
            }
            wanted
        });
        let instances: Vec<Data> = instances.collect();
        let mut expect = Data::object();
        expect.set("subflows", Data::bool(true));
        expect.set("instances", Data::array(instances));
        expect
    }

    fn wanted(&self, index: usize, notes: &mut BTreeSet<String>) -> Data {
        let one = &self.instances[index];
        let mut wanted = Data::object();
        let status = match (one.status.as_str(), one.suspended) {
            ("running", true) => "suspended",
            ("running", false) => "waiting",
            (ended, _) => ended,
        };
        wanted.set("status", Data::string(status));
        if let Some(output) = &one.output {
            match self.names_an_instance(output) {
                false => wanted.set("output", output.clone()),
                true => left_out("the output", notes),
            }
        }
        let has_tasks = self.sources.of_tasks.contains(&one.header.definition);
        let ended = one
            .history
            .iter()
            .rev()
            .find_map(|entry| match &entry.event {
                Event::Ended { error, .. } => error.as_ref(),
                _ => None,
            });
        if let Some(error) = ended.filter(|_| has_tasks) {
            let problem = error.to_problem();
            match self.names_an_instance(&problem) {
                false => wanted.set("error", problem),
                true => left_out("the error", notes),
            }
        } else if let Some(error) = &one.error {
            let mut expected = Data::object();
            expected.set("name", Data::string(error.name.as_str()));
            if let Some(code) = &error.code {
                expected.set("code", Data::string(code.as_str()));
            }
            if let Some(status) = error.status {
                expected.set("status", Data::int(status.into()));
            }
            let message = Data::string(error.message.as_str());
            match self.names_an_instance(&message) {
                false => expected.set("message", message),
                true => left_out("the error's message", notes),
            }
            wanted.set("error", expected);
        }
        // Which tasks begin in turn is certain in one scope only.
        let is_certain = !has_tasks || one.history.iter().all(|entry| entry.scope.is_root());
        if is_certain {
            let root = one.history.iter().filter(|entry| entry.scope.is_root());
            let states = root.filter_map(|entry| match &entry.event {
                Event::StateEntered { name, .. } => Some(Data::string(&**name)),
                _ => None,
            });
            let key = if has_tasks { "tasks" } else { "states" };
            wanted.set(key, Data::array(states.collect()));
        }
        self.wanted_calls(index, &mut wanted, notes);
        self.wanted_events(one, &mut wanted, notes);
        wanted
    }

    fn wanted_calls(&self, index: usize, wanted: &mut Data, notes: &mut BTreeSet<String>) {
        let calls = self
            .facts
            .calls
            .iter()
            .filter(|call| call.instance == index);
        let calls: Vec<&RecordedCall> = calls.collect();
        let in_turn = calls.iter().all(|call| call.scope.is_root());
        let rows = calls.iter().map(|call| {
            let function = Data::string(call.function.as_str());
            let Some(arguments) = &call.arguments else {
                return function;
            };
            if self.names_an_instance(arguments) {
                left_out(&format!("the arguments of '{}'", call.function), notes);
                return function;
            }
            let mut row = Data::object();
            row.set("function", function);
            row.set("arguments", arguments.clone());
            row
        });
        let key = if in_turn { "calls" } else { "callsUnordered" };
        wanted.set(key, Data::array(rows.collect()));
    }

    fn wanted_events(&self, one: &Recorded, wanted: &mut Data, notes: &mut BTreeSet<String>) {
        let produced = one.history.iter().filter_map(|entry| match &entry.event {
            Event::EventProduced { name, .. } => Some((entry, name)),
            _ => None,
        });
        let (mut rows, mut in_turn) = (Vec::new(), true);
        for (entry, name) in produced {
            let Some(event) = entry.data.as_ref().and_then(|data| data.get("event")) else {
                notes.insert(format!(
                    "the events that were produced aren't expected, since the history doesn't hold '{name}'"
                ));
                return;
            };
            in_turn &= entry.scope.is_root();
            let mut row = without(&event, &OF_THE_RUN);
            for name in names(&row) {
                if row
                    .get(&name)
                    .is_some_and(|value| self.names_an_instance(&value))
                {
                    left_out(&format!("'{name}' of a produced event"), notes);
                    row = without(&row, &[&name]);
                }
            }
            rows.push(row);
        }
        let key = if in_turn {
            "produced"
        } else {
            "producedUnordered"
        };
        wanted.set(key, Data::array(rows));
    }

    /// Whether the value contains an instance's id, which differs in each run.
    fn names_an_instance(&self, data: &Data) -> bool {
        let text = data.to_string();
        self.instances
            .iter()
            .any(|one| text.contains(one.header.id.as_str()))
    }
}

fn left_out(what: &str, notes: &mut BTreeSet<String>) {
    notes.insert(format!(
        "{what} is not expected: it holds the id of an instance, which is another in each run"
    ));
}

fn offset(zero: Timestamp, at: Timestamp) -> Data {
    Data::string(millis((at.0 - zero.0).max(0)))
}

fn names(data: &Data) -> Vec<String> {
    let members = data.as_object().into_iter().flat_map(|all| all.iter());
    members
        .filter_map(|(name, _)| Data(name.clone()).as_str().map(str::to_owned))
        .collect()
}

fn without(data: &Data, left: &[&str]) -> Data {
    let mut rest = Data::object();
    for name in names(data) {
        if let Some(value) = data.get(&name).filter(|_| !left.contains(&name.as_str())) {
            rest.set(&name, value);
        }
    }
    rest
}

fn answer(call: &RecordedCall) -> Data {
    let mut answer = Data::object();
    match &call.outcome {
        Outcome::Return(data) => answer.set("return", literal(data)),
        Outcome::Error(error) => {
            let mut failure = Data::object();
            if error.problem.is_some() {
                answer.set("error", without(&error.to_problem(), &["instance"]));
                return timed(answer, call);
            }
            if error.name != swirl_model::error::names::FUNCTION_ERROR {
                failure.set("name", Data::string(error.name.as_str()));
            }
            // A status that isn't the code was added when the error was described.
            let status = error.status.map(|status| status.to_string());
            match (&error.code, error.status) {
                (Some(code), Some(number)) if status.as_ref() == Some(code) => {
                    failure.set("status", Data::int(number.into()));
                }
                (Some(code), _) => failure.set("code", Data::string(code.as_str())),
                (None, _) => {}
            }
            failure.set("message", Data::string(error.message.as_str()));
            if let Some(pause_ms) = error.retry_after_ms {
                failure.set("retryAfter", Data::string(millis(pause_ms.into())));
            }
            answer.set("error", failure);
        }
        Outcome::Never => {
            answer.set("never", Data::bool(true));
            return answer;
        }
    }
    timed(answer, call)
}

fn timed(mut answer: Data, call: &RecordedCall) -> Data {
    if call.took_ms > 0 {
        let took = i64::try_from(call.took_ms).unwrap_or(i64::MAX);
        answer.set("after", Data::string(millis(took)));
    }
    answer
}

fn uncalled() -> Data {
    let mut failure = Data::object();
    failure.set(
        "message",
        Data::string("it was not called when this was recorded"),
    );
    let mut answer = Data::object();
    answer.set("error", failure);
    answer
}

/// A value that `return` gives back literally, without expressions.
fn literal(data: &Data) -> Data {
    if let Some(text) = data.as_str() {
        return Data::string(text.replace("${", "$${"));
    }
    if let Some(items) = data.as_array() {
        return Data::array(
            items
                .iter()
                .map(|item| literal(&Data(item.clone())))
                .collect(),
        );
    }
    if data.is_object() {
        let mut object = Data::object();
        for name in names(data) {
            object.set(&name, literal(&data.get(&name).unwrap_or_default()));
        }
        return object;
    }
    data.clone()
}
