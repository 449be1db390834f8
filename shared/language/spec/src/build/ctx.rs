//! The state of reading a document, which the readers of all editions share. The files next to this one add methods.
//!
//! Readers never stop at the first finding: an unreadable value becomes `None` or a placeholder, and reading continues.
//! A document with any error yields no workflow at the end.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use swirl_documents::diagnostic::Diagnostics;
use swirl_documents::source::{Member, Node};
use swirl_documents::suggest;
use swirl_model::workflow::{
    AuthId, EventId, FlowId, FunctionId, Language, Period, Retry, StateId, Workflow,
};

use super::dialect::Dialect;
use super::location::Location;
use super::names::{FunctionEntry, Names, Problems, Table};
use super::pool::Pool;
use super::rule::Rule;
use super::written::Written;
use crate::options::Options;
use crate::resource::Resources;

/// A transition from one state to another.
pub(crate) struct Edge {
    pub from: StateId,
    pub to: StateId,
    pub location: Location,
}

/// The facts about a state that are known before it is read.
pub(crate) struct StateHead {
    pub name: String,
    /// Set when the state is added.
    pub flow: FlowId,
    pub location: Location,
    pub is_event: bool,
    /// The location of its `usedForCompensation`.
    pub mark: Option<Location>,
    pub used_for_compensation: bool,
    /// The location of its `compensatedBy`.
    pub compensated_by: Option<Location>,
}

/// The flow that is being read. Enclosing flows are below it on the stack.
#[derive(Debug)]
pub(crate) struct FlowScope {
    pub id: FlowId,
    pub names: HashMap<String, StateId>,
    /// The location at which the starting state is named.
    pub start_location: Option<Location>,
    /// The state of the enclosing flow that is being read, and whether that state compensates.
    pub(super) outer: (StateId, bool),
}

/// The timeouts that apply unless an inner value overrides them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timeouts {
    pub state: Option<Period>,
    pub action: Option<Period>,
    pub branch: Option<Period>,
    pub event: Option<Period>,
}

/// The functions provided at deployment, once they have been requested.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// The lists that were found, each with its URI, its tree if it could be read, and its content.
    pub(super) sources: Vec<(&'static str, Option<Node>, Vec<u8>)>,
    pub(super) read: HashMap<String, Option<FunctionId>>,
}

pub(crate) struct Ctx<'a> {
    pub resources: &'a dyn Resources,
    pub options: &'a Options,
    pub dialect: Dialect,
    /// The rules that turn documents of this edition into documents that its reader understands.
    pub rules: &'static [Rule],
    /// Properties of the definition that the reader knows but the edition doesn't have: they are kept as metadata.
    pub kept: Vec<Member>,
    /// Texts of the author that the reader also uses as internal names. Findings quote them as written.
    pub written: Written,
    /// The pointer to the definition inside a larger document. Findings omit it.
    pub base: String,
    pub diagnostics: Diagnostics,
    pub(crate) failed: bool,
    pub resources_used: Vec<(String, Vec<u8>)>,
    /// The credentials with which documents are fetched, by their addresses.
    pub credentials: Vec<(String, AuthId)>,
    /// Documents that are there only for whoever has their credentials.
    pub guarded: Vec<(String, AuthId)>,
    /// Set while a referenced document is read: its URI, and the location that refers to it.
    pub origin: Option<(String, Location)>,

    pub workflow: Workflow,
    /// `expressionLang`, or else the dialect's default.
    pub language: Language,
    pub states: Vec<StateHead>,
    /// The flow being read, on top of those that enclose it.
    pub flows: Vec<FlowScope>,
    pub functions: Table<FunctionEntry>,
    /// The functions provided at deployment, if they were needed.
    pub given: Option<Given>,
    pub names: Names,
    /// Errors described by type and status, which `onErrors` may refer to.
    pub problems: Problems,
    pub retries: Table<Retry>,
    pub auto_retries: bool,
    /// The expressions of functions whose findings have been reported.
    pub function_texts: BTreeSet<String>,
    /// `None`: the list could not be read, so no name can be reported as unknown.
    pub secrets: Option<BTreeSet<String>>,
    pub timeouts: Timeouts,
    /// All iteration parameters in the document.
    pub all_params: Vec<Arc<str>>,
    pub expressions: Pool,
    /// The approximate memory of all regular expressions so far.
    pub pattern_bytes: usize,
    /// The text that is being compiled may be meant literally, so findings say how to write a literal text.
    pub literal_hint: bool,

    pub edges: Vec<Edge>,
    /// States with an `end` of their own or in a condition.
    pub ends: Vec<StateId>,
    /// Flows with a state of an unknown kind, of which nobody can say where it leads.
    pub of_unknown_kind: Vec<FlowId>,
    /// Some end terminates, or continues as another instance.
    pub terminates: bool,
    /// The state being read.
    pub state: StateId,
    pub compensating: bool,
    /// Iteration parameters in scope at the current position.
    pub params: Vec<Arc<str>>,
    /// The state in the workflow timeout's `runBefore`.
    pub run_before: Option<(StateId, Location)>,
    /// The locations of values in correlation rules, by event and rule.
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
            kept: Vec::new(),
            written: Written::default(),
            base: base.to_owned(),
            diagnostics: Diagnostics::default(),
            failed: false,
            resources_used: Vec::new(),
            credentials: Vec::new(),
            guarded: Vec::new(),
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
            function_texts: BTreeSet::new(),
            secrets: Some(BTreeSet::new()),
            timeouts: Timeouts::default(),
            all_params: Vec::new(),
            expressions: Pool::default(),
            pattern_bytes: 0,
            literal_hint: false,
            edges: Vec::new(),
            ends: Vec::new(),
            of_unknown_kind: Vec::new(),
            terminates: false,
            state: StateId(0),
            compensating: false,
            params: Vec::new(),
            run_before: None,
            correlation_values: Vec::new(),
        }
    }

    /// Whether no error was found so far.
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
