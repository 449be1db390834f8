//! The state of reading a document, which the readers of all editions share. The files beside this one add methods.
//!
//! Readers never stop at the first finding: a value that cannot be read becomes `None` or a
//! placeholder, reading continues, and a document with any error yields no workflow at the end.

use std::collections::HashMap;
use std::sync::Arc;

use swirl_model::workflow::{
    EventId, FlowId, FunctionId, Language, Period, Retry, StateId, Workflow,
};

use super::dialect::Dialect;
use super::location::Location;
use super::names::{FunctionEntry, Names, Problems, Table};
use super::pool::Pool;
use super::rewrite::Rule;
use super::written::Written;
use crate::diagnostic::Diagnostics;
use crate::options::Options;
use crate::resource::Resources;
use crate::source::Node;
use crate::suggest;

/// A way from one state to another.
pub(crate) struct Edge {
    pub from: StateId,
    pub to: StateId,
    pub location: Location,
}

/// The facts about a state that are known before it is read.
pub(crate) struct StateHead {
    pub name: String,
    /// Set when it is added.
    pub flow: FlowId,
    pub location: Location,
    pub is_event: bool,
    /// The place of its `usedForCompensation`.
    pub mark: Option<Location>,
    pub used_for_compensation: bool,
    /// The place of its `compensatedBy`.
    pub compensated_by: Option<Location>,
}

/// The flow being read; the flows around it lie below it on the stack.
#[derive(Debug)]
pub(crate) struct FlowScope {
    pub id: FlowId,
    pub names: HashMap<String, StateId>,
    /// Where the starting state is named.
    pub start_location: Option<Location>,
    /// The state of the flow around it that is being read, and whether that one compensates.
    pub(super) outer: (StateId, bool),
}

/// The timeouts that apply unless a value further inside replaces them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timeouts {
    pub state: Option<Period>,
    pub action: Option<Period>,
    pub branch: Option<Period>,
    pub event: Option<Period>,
}

/// The given functions, once they have been asked for.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(super) document: Option<Node>,
    pub(super) content: Vec<u8>,
    pub(super) read: HashMap<String, Option<FunctionId>>,
}

pub(crate) struct Ctx<'a> {
    pub resources: &'a dyn Resources,
    pub options: &'a Options,
    pub dialect: Dialect,
    /// The rules that turn documents of this edition into those that its reader understands.
    pub rules: &'static [Rule],
    /// Texts of the author that the reader uses as internal names: findings quote them as written.
    pub written: Written,
    /// Pointer of the definition itself inside a larger document; findings leave it out.
    pub base: String,
    pub diagnostics: Diagnostics,
    pub(super) failed: bool,
    pub resources_used: Vec<(String, Vec<u8>)>,
    /// Set while a referenced document is read: its URI and the place that refers to it.
    pub origin: Option<(String, Location)>,

    pub workflow: Workflow,
    /// `expressionLang`, otherwise the dialect's.
    pub language: Language,
    pub states: Vec<StateHead>,
    /// The flow being read, on top of those around it.
    pub flows: Vec<FlowScope>,
    pub functions: Table<FunctionEntry>,
    /// The functions that are given at deployment, where something asked for them.
    pub given: Option<Given>,
    pub names: Names,
    /// Errors described by type and status: `onErrors` may refer to them.
    pub problems: Problems,
    pub retries: Table<Retry>,
    pub auto_retries: bool,
    /// `None`: the list could not be read, so that no name can be called unknown.
    pub secrets: Option<Vec<String>>,
    pub timeouts: Timeouts,
    /// All iteration parameters of the document.
    pub all_params: Vec<Arc<str>>,
    pub expressions: Pool,
    /// The text that is compiled now may be meant literally: findings say how such a text is
    /// written.
    pub literal_hint: bool,

    pub edges: Vec<Edge>,
    /// States with their own `end` or one in a condition.
    pub ends: Vec<StateId>,
    /// Any end that terminates, or continues as another instance.
    pub terminates: bool,
    /// The state being read.
    pub state: StateId,
    pub compensating: bool,
    /// Iteration parameters in sight where we read.
    pub params: Vec<Arc<str>>,
    /// The state of the workflow timeout's `runBefore`.
    pub run_before: Option<(StateId, Location)>,
    /// The places of values of correlation rules: by event and rule.
    pub correlation_values: Vec<(EventId, usize, Location)>,
}

/// An object whose properties were compared with those that the language defines.
#[derive(Clone, Copy)]
pub(crate) struct Obj<'n> {
    pub node: &'n Node,
}

impl<'n> Obj<'n> {
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.node.get(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// `a`, `b` or `c`, each in quotes.
pub(crate) fn words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

pub(crate) fn did_you_mean<'s>(
    word: &str,
    candidates: impl IntoIterator<Item = &'s str>,
) -> Option<String> {
    suggest::did_you_mean(word, candidates).map(|best| format!("did you mean '{best}'?"))
}

impl<'a> Ctx<'a> {
    pub fn new(
        dialect: Dialect,
        base: &str,
        resources: &'a dyn Resources,
        options: &'a Options,
    ) -> Ctx<'a> {
        Ctx {
            resources,
            options,
            dialect,
            rules: &[],
            written: Written::default(),
            base: base.to_owned(),
            diagnostics: Diagnostics::default(),
            failed: false,
            resources_used: Vec::new(),
            origin: None,
            workflow: Workflow::default(),
            language: dialect.language,
            states: Vec::new(),
            flows: Vec::new(),
            functions: Table::default(),
            given: None,
            names: Names::default(),
            problems: Problems::default(),
            retries: Table::default(),
            auto_retries: false,
            secrets: Some(Vec::new()),
            timeouts: Timeouts::default(),
            all_params: Vec::new(),
            expressions: Pool::default(),
            literal_hint: false,
            edges: Vec::new(),
            ends: Vec::new(),
            terminates: false,
            state: StateId(0),
            compensating: false,
            params: Vec::new(),
            run_before: None,
            correlation_values: Vec::new(),
        }
    }

    /// `true` unless an error was found so far.
    pub fn is_clean(&self) -> bool {
        !self.failed
    }
}

/// `'a', 'b' and 'c'`.
pub(crate) fn and(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
