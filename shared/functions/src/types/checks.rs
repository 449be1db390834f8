//! Checks arguments and answers against the documents that describe services.
//!
//! The problems found here fail a deployment, because they would fail at each call. Only certain problems are reported:
//! an expression is assumed to return a matching value, unless its text shows otherwise.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use swirl_model::Data;
use swirl_model::workflow::{ActionKind, Function, Template, Workflow};

use super::{Compiled, CompiledFunctions, Settings, StaticValue};
use crate::problem::{Problem, Site};

/// The key in a function's `metadata` that switches off the checks of its calls.
const CHECK: &str = "checkArguments";

/// The functions of a definition, with the documents that describe them.
#[derive(Debug)]
pub struct Checks {
    functions: CompiledFunctions,
    /// The places of the functions, by key.
    places: HashMap<String, usize>,
    refused: Vec<Problem>,
}

impl Checks {
    /// The functions of the definition whose documents are available and readable.
    pub fn new(workflow: &Workflow, resources: &[(String, String)], settings: &Settings) -> Checks {
        let functions = CompiledFunctions::new(workflow, resources, settings);
        let names = workflow.functions.iter().enumerate();
        Checks {
            places: names
                .map(|(place, function)| (function.key().to_owned(), place))
                .collect(),
            refused: functions.problems(workflow),
            functions,
        }
    }

    /// The functions, for calls. Their documents are dropped.
    pub fn into_functions(self) -> CompiledFunctions {
        let mut functions = self.functions;
        functions.release_documents();
        functions
    }

    /// The functions that are deployed although nothing says where their services are.
    pub fn unaddressed(&self, workflow: &Workflow) -> Vec<Problem> {
        self.functions.unaddressed(workflow)
    }

    /// The reasons why functions cannot be called at all, including missing documents.
    pub fn refused(&self) -> &[Problem] {
        &self.refused
    }

    /// The reasons why the calls of a definition would fail.
    pub fn calls(&self, workflow: &Workflow) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut seen = HashSet::new();
        for action in &workflow.actions {
            let ActionKind::Call(call) = &action.kind else {
                continue;
            };
            let function = &workflow[call.function];
            let Some(compiled) = self.checked(function) else {
                continue;
            };
            let arguments = match &call.arguments {
                Some(template) => StaticValue::of(template, workflow),
                None => StaticValue::Unknown,
            };
            let auth = function.auth.map(|auth| workflow[auth].scheme);
            let selected = match &call.selection_set {
                None => Some(""),
                Some(Template::Literal(text)) => text.as_str(),
                Some(_) => None,
            };
            let pointer = &action.pointer;
            let misfits = compiled.check(&arguments).into_iter().map(|misfit| {
                let site = Site::Arguments {
                    action: pointer.clone(),
                    within: misfit.at,
                };
                (misfit.message, site)
            });
            let selected = selected.map(|set| compiled.check_selection(set));
            let selected = selected.into_iter().flatten();
            let selected = selected.map(|reason| (reason, Site::Selection(pointer.clone())));
            let named = misfits.chain(selected).map(|(reason, site)| {
                let message = match &action.name {
                    Some(name) => format!("the action `{name}`: {reason}"),
                    None => reason,
                };
                (message, site)
            });
            // A problem with credentials is reported once for all calls together.
            let refused = auth.and_then(|auth| compiled.check_auth(auth, &arguments));
            let refused = refused.map(|reason| (reason, Site::Auth));
            for (message, site) in named.chain(refused) {
                let problem = Problem::of(function, message, site);
                if seen.insert(problem.clone()) {
                    problems.push(problem);
                }
            }
        }
        problems
    }

    fn checked(&self, function: &Function) -> Option<&Compiled> {
        // An option for documents that are themselves wrong.
        let check = function.metadata.get(CHECK);
        // In the language, metadata are texts.
        let on = check.is_none_or(|check| !check.to_text().eq_ignore_ascii_case("false"));
        let place = self.places.get(function.key()).filter(|_| on)?;
        self.functions.get(*place)
    }

    /// The reasons why a call with these arguments would fail.
    pub fn call(&self, function: &Function, arguments: &Data) -> Vec<String> {
        match self.checked(function) {
            Some(compiled) => {
                let misfits = compiled.check(&StaticValue::from(Value::from(arguments)));
                misfits.into_iter().map(|misfit| misfit.message).collect()
            }
            None => Vec::new(),
        }
    }

    /// The reasons why the service of a function would not return this answer.
    pub fn answer(&self, function: &Function, answer: &Data) -> Vec<String> {
        match self.checked(function) {
            Some(compiled) => compiled.check_answer(&StaticValue::from(Value::from(answer))),
            None => Vec::new(),
        }
    }
}
