//! Tools for writing all parts of a document.

use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{Language, Period, Retry, StateId, Workflow};

use super::{Assume, Obstacle, places, retries};

pub(super) struct Writer<'w> {
    pub workflow: &'w Workflow,
    root: &'w Node,
    pub language: Language,
    pub obstacles: Vec<Obstacle>,
    pub notes: Vec<String>,
    /// The state that is being written.
    pub at: Option<StateId>,
    /// The retry policies so far. Their names are numbered in this order.
    pub retries: Vec<Retry>,
    /// Names of the events as written.
    pub events: Vec<String>,
    pub auto_retries: bool,
    pub assume: Assume,
}

impl<'w> Writer<'w> {
    /// `in_jq`: the definition was rewritten in jq, except for paths that have no form in jq.
    pub fn new(workflow: &'w Workflow, root: &'w Node, in_jq: bool, assume: Assume) -> Writer<'w> {
        let mut sources = workflow.expressions.iter().chain(&workflow.paths);
        let language = match sources.any(|source| source.language == Language::JsonPath) {
            true if !in_jq => Language::JsonPath,
            _ => Language::Jq,
        };
        Writer {
            workflow,
            root,
            language,
            obstacles: Vec::new(),
            notes: Vec::new(),
            at: None,
            retries: Vec::new(),
            events: Vec::new(),
            auto_retries: retries::are_automatic(workflow),
            assume,
        }
    }

    /// Records something that edition 0.8 cannot express.
    pub fn cannot(&mut self, message: impl Into<String>) {
        let obstacle = Obstacle::of(self.root, self.workflow, self.at, message.into());
        if !self.obstacles.contains(&obstacle) {
            self.obstacles.push(obstacle);
        }
    }

    /// Whether the state itself says in the document that the workflow starts with it.
    pub fn has_start(&self, id: StateId) -> bool {
        let state = places::find_state(self.root, &self.workflow[id].name);
        state.is_some_and(|node| node.get("start").is_some())
    }

    /// Records an obstacle if the condition holds.
    pub fn cannot_if(&mut self, holds: bool, message: &str) {
        if holds {
            self.cannot(message);
        }
    }

    pub fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|known| known == text) {
            self.notes.push(text.to_owned());
        }
    }

    pub fn period(&mut self, period: Period) -> Data {
        match period {
            Period::Fixed(duration) => Data::string(duration.to_string()),
            Period::Expression(_) => {
                self.cannot("a duration is an expression; in 0.8 durations are fixed");
                Data::NULL
            }
        }
    }
}

/// Sets a member if there is a value.
pub(super) trait SetIf {
    fn set_if(&mut self, key: &str, value: Option<Data>);
    /// Sets it unless it is false.
    fn flag(&mut self, key: &str, value: bool);
    /// Sets it unless it is empty.
    fn list(&mut self, key: &str, items: Vec<Data>);
}

impl SetIf for Data {
    fn set_if(&mut self, key: &str, value: Option<Data>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    fn flag(&mut self, key: &str, value: bool) {
        if value {
            self.set(key, Data::bool(true));
        }
    }

    fn list(&mut self, key: &str, items: Vec<Data>) {
        if !items.is_empty() {
            self.set(key, Data::array(items));
        }
    }
}

/// Whether it has members.
pub(super) fn is_filled(data: &Data) -> bool {
    data.as_object().is_some_and(|members| !members.is_empty())
}

/// Metadata of definitions inside the workflow.
pub(super) fn metadata(of: &Data) -> Option<Data> {
    Some(of.clone()).filter(is_filled)
}
