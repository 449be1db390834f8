//! Arguments and answers against the documents that describe services.
//!
//! What is found here would fail at a call, so a deployment is refused for it. Only what is certain is
//! told: an expression is taken to give what fits, unless its text says otherwise.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use swirl_model::Data;
use swirl_model::workflow::{ActionKind, Function, Template, Workflow};

use super::{Compiled, Documents, Known, Settings, TYPES, word};
use crate::caller::Problem;

/// The key of a function's `metadata` that leaves its calls alone.
const CHECK: &str = "checkArguments";

/// The functions of a definition, with the documents that describe them.
pub struct Checks {
    functions: HashMap<Arc<str>, Compiled>,
    refused: Vec<Problem>,
}

impl Checks {
    /// Those functions of the definition whose documents are among the resources and can be read.
    pub fn new(workflow: &Workflow, resources: &[(String, String)], settings: &Settings) -> Checks {
        let documents = Documents {
            resources,
            settings,
            for_checks: true,
        };
        let (mut functions, mut refused) = (HashMap::new(), Vec::new());
        for kind in &TYPES {
            let own: Vec<&Function> = workflow
                .functions
                .iter()
                .filter(|function| word(&function.kind) == kind.word)
                .collect();
            for (function, result) in own.iter().zip((kind.compile)(&own, &documents)) {
                match result {
                    Ok(compiled) => {
                        functions.insert(function.name.clone(), compiled);
                    }
                    Err(message) => refused.push(Problem {
                        function: function.name.to_string(),
                        message,
                        pointer: String::new(),
                    }),
                }
            }
        }
        Checks { functions, refused }
    }

    /// Why functions cannot be called at all: those whose documents are missing among them.
    pub fn refused(&self) -> &[Problem] {
        &self.refused
    }

    /// What the calls of a definition would fail for.
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
                Some(template) => Known::of(template, workflow),
                None => Known::Unknown,
            };
            let auth = function.auth.map(|auth| workflow[auth].scheme);
            let selected = match &call.selection_set {
                None => Some(""),
                Some(Template::Literal(text)) => text.as_str(),
                Some(_) => None,
            };
            let mut reasons = compiled.check(&arguments, auth);
            reasons.extend(
                selected
                    .into_iter()
                    .flat_map(|set| compiled.check_selection(set)),
            );
            for reason in reasons {
                let message = match &action.name {
                    Some(name) => format!("the action `{name}`: {reason}"),
                    None => reason,
                };
                if seen.insert((action.pointer.clone(), message.clone())) {
                    problems.push(Problem {
                        function: function.name.to_string(),
                        message,
                        pointer: action.pointer.clone(),
                    });
                }
            }
        }
        problems
    }

    fn checked(&self, function: &Function) -> Option<&Compiled> {
        // For documents that are wrong themselves.
        let check = function.metadata.get(CHECK);
        let on = check.and_then(|check| check.as_bool()) != Some(false);
        self.functions.get(&function.name).filter(|_| on)
    }

    /// What a call with these arguments would fail for.
    pub fn call(&self, function: &Function, arguments: &Data) -> Vec<String> {
        match self.checked(function) {
            Some(compiled) => compiled.check(&Known::from(Value::from(arguments)), None),
            None => Vec::new(),
        }
    }

    /// What the service of a function would not answer.
    pub fn answer(&self, function: &Function, answer: &Data) -> Vec<String> {
        match self.checked(function) {
            Some(compiled) => compiled.check_answer(&Known::from(Value::from(answer))),
            None => Vec::new(),
        }
    }
}

impl std::fmt::Debug for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checks of {} functions", self.functions.len())
    }
}
