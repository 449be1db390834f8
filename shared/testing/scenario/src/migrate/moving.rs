//! The rewriting of a scenario's content, once its documents are migrated.

use std::collections::{BTreeMap, BTreeSet};

use swirl_migrate::{COMMUNICATION, own_type_of, task_version};
use swirl_model::Data;
use swirl_model::error::OWN_TYPES;
use swirl_model::workflow::{FunctionKind, StateKind, Workflow};

pub(super) fn items(data: &Data) -> impl Iterator<Item = Data> {
    let items: Vec<Data> = data
        .as_array()
        .into_iter()
        .flat_map(|items| items.iter().map(|item| Data(item.clone())))
        .collect();
    items.into_iter()
}

fn members(data: &Data) -> Vec<(String, Data)> {
    let members = data.as_object().into_iter().flat_map(|all| all.iter());
    members
        .map(|(key, value)| (Data(key.clone()).to_text(), Data(value.clone())))
        .collect()
}

/// What the rewriting of a scenario knows.
#[derive(Default)]
pub(super) struct Moving {
    /// New ids by old ones.
    pub ids: BTreeMap<String, String>,
    /// The new ids of workflows with a timeout, which faults their instances now.
    pub timed: BTreeSet<String>,
    pub notes: Vec<String>,
    pub states: Vec<(Option<usize>, Vec<String>)>,
    pub first: String,
    /// Functions that are requests now, whose arguments aren't shown any more.
    requests: BTreeSet<String>,
    /// Their errors have titles besides their names, and only the titles are left.
    titled: bool,
    /// Workflows that only events start.
    by_event: BTreeSet<String>,
    /// Reasons why the scenario has no equal one.
    pub unfit: Vec<String>,
}

impl Moving {
    pub fn learn(&mut self, workflow: &Workflow, old: &str, new: &str) {
        if workflow.timeout.is_some() {
            self.timed.insert(new.to_owned());
        }
        self.titled |= workflow.problems.is_some();
        self.ids.insert(old.to_owned(), new.to_owned());
        let requests = workflow.functions.iter().filter(|function| {
            matches!(&function.kind, FunctionKind::Custom(word) if word == "custom")
                && function.operation.starts_with("rest:")
        });
        self.requests
            .extend(requests.map(|function| function.name.to_string()));
        let start = workflow
            .flows
            .first()
            .and_then(|flow| workflow.states.get(flow.start.0 as usize));
        if start.is_some_and(|state| matches!(state.kind, StateKind::Event(_))) {
            self.by_event.insert(new.to_owned());
        }
    }

    fn is_unfit(&mut self, why: &str) {
        if !self.unfit.iter().any(|known| known == why) {
            self.unfit.push(why.to_owned());
        }
    }

    /// The start of an instance by hand.
    fn check_start(&mut self, id: &str, input: Option<&Data>) {
        if self.by_event.contains(id) {
            self.is_unfit("it starts an instance by hand whose workflow begins with events; as DSL 1.0 only events start it");
        }
        if input.is_some_and(|input| !input.is_object()) {
            self.is_unfit("the input isn't an object; DSL 1.0 allows that");
        }
    }

    fn id(&self, old: &Data) -> Data {
        let old = old.to_text();
        let new = self.ids.get(&old).cloned();
        Data::string(new.unwrap_or(old))
    }

    pub fn scenario(&mut self, old: &Data, workflows: &Data) -> Data {
        let mut new = Data::object();
        for (key, value) in members(old) {
            let value = match key.as_str() {
                "workflows" => workflows.clone(),
                "input" => {
                    let first = self.first.clone();
                    self.check_start(&first, Some(&value));
                    value
                }
                "start" => {
                    let rows = items(&value).map(|row| self.start(&row));
                    Data::array(rows.collect())
                }
                "functions" => {
                    let mut functions = Data::object();
                    for (name, answers) in members(&value) {
                        if answers.to_string().contains("\"retryAfter\"") {
                            self.is_unfit("a service says when to call again ('retryAfter'); retries of DSL 1.0 have no 'maxDelay' that bounds it");
                        }
                        functions.set(&name, answered(&answers));
                    }
                    functions
                }
                "events" => Data::array(items(&value).map(|row| self.event(row)).collect()),
                "expect" => self.expect(&value),
                _ => value,
            };
            new.set(&key, value);
        }
        new
    }

    fn start(&mut self, old: &Data) -> Data {
        let id = old.get("workflow").map(|id| self.id(&id).to_text());
        self.check_start(&id.unwrap_or_default(), old.get("input").as_ref());
        let mut new = Data::object();
        for (key, value) in members(old) {
            let value = match key.as_str() {
                "workflow" => self.id(&value),
                "version" => match task_version(&value.to_text()) {
                    Some(version) => Data::string(version),
                    None => value,
                },
                _ => value,
            };
            new.set(&key, value);
        }
        new
    }

    fn expect(&mut self, old: &Data) -> Data {
        let first = self.first.clone();
        let mut new = self.wanted(old, None, &first);
        if let Some(instances) = old.get("instances") {
            let rows: Vec<Data> = items(&instances)
                .enumerate()
                .map(|(place, row)| {
                    let id = row.get("workflow").map(|id| self.id(&id).to_text());
                    self.wanted(&row, Some(place), &id.unwrap_or_else(|| first.clone()))
                })
                .collect();
            new.set("instances", Data::array(rows));
        }
        new
    }

    fn wanted(&mut self, old: &Data, place: Option<usize>, id: &str) -> Data {
        let mut new = Data::object();
        for (key, value) in members(old) {
            let value = match key.as_str() {
                "workflow" => self.id(&value),
                "states" => {
                    let states = items(&value).map(|name| name.to_text()).collect();
                    self.states.push((place, states));
                    continue;
                }
                "status" if value.to_text() == "terminated" && self.timed.contains(id) => {
                    self.note("an instance that exceeds its workflow's timeout is faulted");
                    Data::string("faulted")
                }
                "status" if value.to_text() == "terminated" => {
                    self.note("a sub-workflow that nothing waits for any more is cancelled");
                    Data::string("cancelled")
                }
                "error" => self.error(&value),
                "calls" | "callsUnordered" => {
                    let calls = items(&value).map(|one| self.call(one));
                    Data::array(calls.collect())
                }
                _ => value,
            };
            new.set(&key, value);
        }
        new
    }

    fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|known| known == text) {
            self.notes.push(text.to_owned());
        }
    }

    /// An event that arrives. DSL 1.0 compares the names of attributes exactly.
    fn event(&mut self, mut row: Data) -> Data {
        let Some(old) = row.get("event") else {
            return row;
        };
        let mut event = Data::object();
        for (name, value) in members(&old) {
            let lower = name.to_ascii_lowercase();
            if lower != name {
                self.note("names of events' attributes are in lower case");
            }
            event.set(&lower, value);
        }
        row.set("event", event);
        row
    }

    fn call(&mut self, old: Data) -> Data {
        if old.as_object().is_none() {
            return old;
        }
        let function = old.get("function").unwrap_or_default().to_text();
        let mut new = Data::object();
        for (key, value) in members(&old) {
            match key.as_str() {
                "function" => new.set("task", value),
                "arguments" if self.requests.contains(&function) => {
                    self.note("arguments of requests are in their address, query and body, and aren't expected any more");
                }
                key => new.set(key, value),
            }
        }
        new
    }

    /// An expected error.
    fn error(&mut self, old: &Data) -> Data {
        let mut old = old.clone();
        if self.titled && old.get("name").is_some() {
            self.note("names of errors aren't expected any more");
            old = without(&old, "name");
        }
        let (mut new, own) = described(&old);
        // Only errors of functions keep their text.
        if own.is_some_and(|word| word != COMMUNICATION) && new.get("detail").is_some() {
            self.note(
                "messages of errors that the runtime raises differ, and aren't expected any more",
            );
            new = without(&new, "detail");
        }
        new
    }
}

fn without(data: &Data, gone: &str) -> Data {
    let mut rest = Data::object();
    for (key, value) in members(data) {
        if key != gone {
            rest.set(&key, value);
        }
    }
    rest
}

/// The answers of a function.
fn answered(old: &Data) -> Data {
    if old.as_array().is_some() {
        return Data::array(items(old).map(|one| answered(&one)).collect());
    }
    let mut new = Data::object();
    for (key, value) in members(old) {
        let value = match key.as_str() {
            "error" => failure(&value),
            _ => value,
        };
        new.set(&key, value);
    }
    new
}

/// The error of a function: one with a status alone stays the status of an answer.
fn failure(old: &Data) -> Data {
    let keys: Vec<String> = members(old).into_iter().map(|(key, _)| key).collect();
    let only = |names: &[&str]| keys.iter().all(|key| names.contains(&key.as_str()));
    if only(&["status", "retryAfter"]) && old.get("status").is_some() {
        return old.clone();
    }
    let (mut new, _) = described(old);
    if new.get("type").is_none() {
        let own = format!("{OWN_TYPES}{}", COMMUNICATION);
        let named = old.get("name").is_some();
        let kind = if named { "about:blank".to_owned() } else { own };
        new.set("type", Data::string(kind));
    }
    if new.get("status").is_none() {
        new.set("status", Data::int(500));
    }
    if let Some(after) = old.get("retryAfter") {
        new.set("retryAfter", after);
    }
    new
}

/// An error as DSL 1.0 describes it, and the word of its own type.
fn described(old: &Data) -> (Data, Option<&'static str>) {
    let mut new = Data::object();
    let text = |key: &str| old.get(key).map(|value| value.to_text());
    let own = text("name").as_deref().and_then(own_type_of);
    let mut status = old.get("status");
    if let Some(word) = own {
        new.set("type", Data::string(format!("{OWN_TYPES}{word}")));
    }
    match text("code") {
        Some(code) if code == "timeout" => {
            new.set("type", Data::string(format!("{OWN_TYPES}timeout")));
        }
        Some(code) => match code.parse::<u16>() {
            Ok(number) if (100..600).contains(&number) => {
                status = status.or_else(|| Some(Data::int(number.into())));
            }
            _ => new.set("type", Data::string(code)),
        },
        None => {}
    }
    if let Some(kind) = old.get("type") {
        new.set("type", kind);
    }
    if let Some(status) = status {
        new.set("status", status);
    }
    if let (None, Some(name)) = (own, old.get("name")) {
        new.set("title", name);
    }
    for (from, to) in [
        ("message", "detail"),
        ("title", "title"),
        ("detail", "detail"),
    ] {
        if let Some(value) = old.get(from) {
            new.set(to, value);
        }
    }
    let word = own.or_else(|| (text("code").as_deref() == Some("timeout")).then_some("timeout"));
    (new, word)
}
