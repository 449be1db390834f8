//! Tools for writing all parts of a document of tasks.

use std::collections::{BTreeMap, HashSet};

use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{ErrorId, StateId, Workflow};

use super::super::{Assume, Obstacle};
use super::jq_text::reads_error;
use super::target::Target;

/// Tasks of a list, with their names.
pub(super) type Tasks = Vec<(String, Data)>;

/// Words that a flow directive has for itself.
const DIRECTIVES: [&str; 3] = ["continue", "exit", "end"];

pub(super) struct Writer<'w> {
    pub workflow: &'w Workflow,
    root: &'w Node,
    pub target: &'w Target,
    pub assume: Assume,
    pub obstacles: Vec<Obstacle>,
    pub notes: Vec<String>,
    /// The state that is being written.
    pub at: Option<StateId>,
    /// The name of the task of each state.
    names: Vec<String>,
    taken: HashSet<String>,
    /// An expression reads the last error, so handlers keep it in `$context`.
    pub keeps_error: bool,
    /// The state data is always an object.
    pub objects: bool,
    /// Actions keep the state data in `$context`, for a handler that continues with it.
    pub tracks: bool,
    /// The errors of the definition that handlers and retries name.
    pub named_errors: Vec<ErrorId>,
}

impl<'w> Writer<'w> {
    pub fn new(
        workflow: &'w Workflow,
        root: &'w Node,
        target: &'w Target,
        assume: Assume,
    ) -> Writer<'w> {
        let (names, taken) = names_of(workflow);
        let mut sources = workflow.expressions.iter();
        let keeps_error = sources.any(|it| reads_error(&it.text));
        Writer {
            workflow,
            root,
            target,
            assume,
            obstacles: Vec::new(),
            notes: Vec::new(),
            at: None,
            names,
            taken,
            keeps_error,
            objects: super::super::jq::is_object(workflow),
            tracks: false,
            named_errors: Vec::new(),
        }
    }

    /// Records something that DSL 1.0 cannot express.
    pub fn cannot(&mut self, message: impl Into<String>) {
        let obstacle = Obstacle::of(self.root, self.workflow, self.at, message.into());
        if !self.obstacles.contains(&obstacle) {
            self.obstacles.push(obstacle);
        }
    }

    /// Records an obstacle if the condition holds.
    pub fn cannot_if(&mut self, holds: bool, message: &str) {
        if holds {
            self.cannot(message);
        }
    }

    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The task of a state.
    pub fn name(&self, id: StateId) -> String {
        self.names.get(id.0 as usize).cloned().unwrap_or_default()
    }

    /// A name that no other task in the way of a `then` has.
    /// The name of the task of the current state.
    pub fn current(&self) -> String {
        self.at.map(|id| self.name(id)).unwrap_or_default()
    }

    pub fn new_name(&mut self, words: &str) -> String {
        free(&mut self.taken, words)
    }
}

/// The names of the states' tasks, and all names that are taken.
fn names_of(workflow: &Workflow) -> (Vec<String>, HashSet<String>) {
    let mut taken: HashSet<String> = DIRECTIVES.map(str::to_owned).into();
    let mut names = Vec::with_capacity(workflow.states.len());
    for state in &workflow.states {
        let mut name = state.name.to_string();
        if name.trim().is_empty() {
            name = "state".to_owned();
        }
        names.push(free(&mut taken, &name));
    }
    (names, taken)
}

/// The states by the names of their tasks.
#[must_use]
pub fn task_names(workflow: &Workflow) -> BTreeMap<String, String> {
    let (names, _) = names_of(workflow);
    let states = workflow.states.iter();
    names
        .into_iter()
        .zip(states.map(|state| state.name.to_string()))
        .collect()
}

fn free(taken: &mut HashSet<String>, words: &str) -> String {
    let mut name = words.to_owned();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{words}-{number}");
        number += 1;
    }
    name
}

/// An expression in its marks.
pub(super) fn marked(text: &str) -> Data {
    let end = if text.contains('#') { "\n" } else { " " };
    Data::string(format!("${{ {text}{end}}}"))
}

pub(super) fn object<const N: usize>(members: [(&str, Data); N]) -> Data {
    let mut data = Data::object();
    for (key, value) in members {
        data.set(key, value);
    }
    data
}

/// A list of tasks, as it stands in a document.
pub(super) fn list(tasks: Tasks) -> Data {
    let tasks = tasks.into_iter().map(|(name, task)| {
        let mut entry = Data::object();
        entry.set(&name, task);
        entry
    });
    Data::array(tasks.collect())
}

/// A task that runs a list.
pub(super) fn do_list(tasks: Tasks) -> Data {
    object([("do", list(tasks))])
}

/// Adds the members of another object.
pub(super) fn append(to: &mut Data, other: &Data) {
    for (key, value) in other
        .as_object()
        .into_iter()
        .flat_map(|members| members.iter())
    {
        to.set(&Data(key.clone()).to_text(), Data(value.clone()));
    }
}

/// Leaves out the directives that only name what follows anyway.
pub(super) fn tidy(tasks: &mut Tasks) {
    let names: Vec<String> = tasks.iter().map(|(name, _)| name.clone()).collect();
    for (place, (_, task)) in tasks.iter_mut().enumerate() {
        let then = task.get("then").map(|then| then.to_text());
        let follows = match names.get(place + 1) {
            Some(next) => then.as_ref() == Some(next),
            None => matches!(then.as_deref(), Some("end" | "exit")),
        };
        if follows {
            remove(task, "then");
        }
    }
}

fn remove(task: &mut Data, gone: &str) {
    let mut rest = Data::object();
    for (key, value) in task
        .as_object()
        .into_iter()
        .flat_map(|members| members.iter())
    {
        let key = Data(key.clone()).to_text();
        if key != gone {
            rest.set(&key, Data(value.clone()));
        }
    }
    *task = rest;
}
