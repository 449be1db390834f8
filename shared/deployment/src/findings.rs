//! Compares a definition's functions and calls with the documents that describe them. Problems become findings with a
//! location in the definition.

use swirl_documents::codes;
use swirl_documents::diagnostic::{Diagnostic, Place, Severity};
use swirl_documents::source::Node;
use swirl_functions::types::{self, Checks};
use swirl_functions::{Part, Problem, Site};
use swirl_model::workflow::Workflow;

use crate::fetch::Missing;

/// The keys for the arguments of a call, in all editions.
const ARGUMENTS: [&str; 3] = ["arguments", "parameters", "message"];

/// The properties of a task's call that say a part of the operation, most likely first.
fn properties_of(part: Part) -> &'static [&'static str] {
    match part {
        Part::Document => &["document", "proto", "agentCard"],
        Part::Operation => &["operationId", "operation", "channel"],
        Part::Service => &["service/name"],
        Part::Method => &["method"],
        Part::Server => &["server/name", "server", "protocol"],
        Part::Transport => &["transport"],
        Part::Protocol => &["protocol", "server/name"],
    }
}

/// Finds the locations of functions and calls in a definition.
pub struct Locations<'a> {
    root: &'a Node,
}

impl<'a> Locations<'a> {
    /// If the definition is inside another document, pointers are relative to the definition.
    pub fn new(root: &'a Node) -> Locations<'a> {
        Locations { root }
    }

    /// Functions that cannot be called, and calls that their documents don't allow. A `missing` document is not an
    /// error of the definition. Neither is a function of type `custom`, whose connector the operator configures, nor a
    /// process, which the operator allows.
    pub fn checked(
        &self,
        workflow: &Workflow,
        checks: &Checks,
        missing: &[Missing],
    ) -> Vec<Diagnostic> {
        let refused = checks.refused().iter().filter(|problem| {
            let mut functions = workflow.functions.iter();
            let function = functions.find(|known| problem.concerns(known));
            let is_missing = |uri: &str| missing.iter().any(|missing| missing.uri == uri);
            let refers =
                |missing: &Missing| problem.message.contains(&format!("`{}`", missing.uri));
            function.is_some_and(|function| {
                types::word(&function.kind) != "custom"
                    && !types::is_process(function)
                    && !types::document(function).is_some_and(is_missing)
                    && !missing.iter().any(refers)
            })
        });
        let refused = refused.map(|problem| self.function(problem));
        let calls = self.calls(&checks.calls(workflow));
        let unaddressed = self.unaddressed(&checks.unaddressed(workflow));
        refused.chain(calls).chain(unaddressed).collect()
    }

    /// Built-in operations of type `custom` that can never run (docs/language.md#decision-99).
    pub fn built_in(&self, workflow: &Workflow) -> Vec<Diagnostic> {
        let functions = workflow.functions.iter();
        let found = functions.filter_map(|function| {
            let message = types::custom::refused(function)?;
            let site = Site::Operation(Part::default());
            Some(self.function(&Problem::of(function, message, site)))
        });
        found.collect()
    }

    /// Calls that the documents don't allow.
    pub fn calls(&self, problems: &[Problem]) -> Vec<Diagnostic> {
        let found = problems.iter().map(|problem| {
            let place = self.place_of(problem);
            Diagnostic::error(codes::FUNCTION_ARGUMENTS, place, problem.to_string())
        });
        found.collect()
    }

    /// Functions that are deployed although nothing says where their services are.
    pub fn unaddressed(&self, problems: &[Problem]) -> Vec<Diagnostic> {
        let found = problems.iter().map(|problem| {
            let (place, code) = (self.place_of(problem), codes::FUNCTION_WITHOUT_ADDRESS);
            Diagnostic::at(Severity::Warning, code, place, problem.to_string())
        });
        found.collect()
    }

    /// A function that cannot be called.
    pub fn function(&self, problem: &Problem) -> Diagnostic {
        let place = self.place_of(problem);
        Diagnostic::error(codes::FUNCTION_INVALID, place, problem.to_string())
    }

    /// Findings for unavailable documents.
    pub fn missing(&self, workflow: &Workflow, missing: &[Missing]) -> Vec<Diagnostic> {
        let found = missing.iter().map(|missing| {
            let mut functions = workflow.functions.iter();
            let own = functions.find(|known| types::document(known) == Some(&*missing.uri));
            let place = own.map(|function| match function.place.as_str() {
                "" => self.function_place(&function.name, "operation"),
                task => self.task_place(task, properties_of(Part::Document)),
            });
            let reason = &missing.reason;
            let message = format!("the document of a function is unavailable: {reason}");
            let place = place.unwrap_or_default();
            Diagnostic::error(codes::FUNCTION_DOCUMENT, place, message)
        });
        found.collect()
    }

    fn place_of(&self, problem: &Problem) -> Place {
        match &problem.site {
            Site::Operation(part) if !problem.place.is_empty() => {
                self.task_place(&problem.place, properties_of(*part))
            }
            Site::Auth if !problem.place.is_empty() => {
                self.task_place(&problem.place, &["authentication"])
            }
            Site::Operation(_) => self.function_place(&problem.function, "operation"),
            Site::Auth => self.function_place(&problem.function, "authRef"),
            Site::Arguments { action, within } => self.call_place(action, &ARGUMENTS, within),
            Site::Selection(action) => self.call_place(action, &["selectionSet"], ""),
        }
    }

    /// A property of a function. If the functions are a list in another document, this is the reference to that
    /// document.
    fn function_place(&self, name: &str, key: &str) -> Place {
        let found = self.root.get("functions").map(|list| {
            let own = |function: &&Node| function.get("name").and_then(Node::as_str) == Some(name);
            let function = list.items().and_then(|all| all.iter().find(own));
            function.map_or(list, |function| function.get(key).unwrap_or(function))
        });
        self.place(found)
    }

    /// The first of these properties that a task's call has.
    fn task_place(&self, task: &str, parts: &[&str]) -> Place {
        let found = self.root.at(task).map(|task| {
            let with = task.get("with").unwrap_or(task);
            let mut parts = parts.iter();
            parts
                .find_map(|part| with.at(&format!("/{part}")))
                .unwrap_or(with)
        });
        self.place(found)
    }

    /// The innermost existing location out of an action, its reference to a function, a property of that, and a value
    /// in the property.
    fn call_place(&self, action: &str, keys: &[&str], within: &str) -> Place {
        let found = self.root.at(action).map(|action| {
            let reference = action.get("functionRef").or_else(|| action.get("with"));
            let call = reference.unwrap_or(action);
            let Some(value) = keys.iter().find_map(|key| call.get(key)) else {
                return call;
            };
            let mut found = value;
            for part in within.split('/').skip(1) {
                match found.at(&format!("/{part}")) {
                    Some(inner) => found = inner,
                    None => break,
                }
            }
            found
        });
        self.place(found)
    }

    fn place(&self, node: Option<&Node>) -> Place {
        let Some(node) = node else {
            return Place::default();
        };
        let mut place = node.place();
        if let Some(inner) = place.pointer.strip_prefix(self.root.pointer()) {
            place.pointer = inner.to_owned();
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_documents::source::{self, Limits};

    const DOCUMENT: &str = "\
id: w
functions:
- {name: f, operation: 'a.json#b', authRef: x}
states:
- name: A
  actions:
  - functionRef: {refName: f, arguments: {a: {b: [1]}}}
  - functionRef: f
";

    fn pointer(site: Site) -> String {
        let problem = Problem {
            place: String::new(),
            function: "f".to_owned(),
            message: String::new(),
            site,
        };
        let root = source::parse(DOCUMENT.as_bytes(), &Limits::default()).unwrap();
        Locations::new(&root).place_of(&problem).pointer
    }

    #[test]
    fn the_innermost_existing_location_is_used() {
        let arguments = |action: usize, within: &str| {
            pointer(Site::Arguments {
                action: format!("/states/0/actions/{action}"),
                within: within.to_owned(),
            })
        };
        let call = "/states/0/actions/0/functionRef";
        assert_eq!(arguments(0, ""), format!("{call}/arguments"));
        assert_eq!(arguments(0, "/a/b/0"), format!("{call}/arguments/a/b/0"));
        assert_eq!(arguments(0, "/a/c/d"), format!("{call}/arguments/a"));
        assert_eq!(arguments(1, "/a"), "/states/0/actions/1/functionRef");
        assert_eq!(
            pointer(Site::Operation(Part::Document)),
            "/functions/0/operation"
        );
        assert_eq!(pointer(Site::Auth), "/functions/0/authRef");
        let selection = Site::Selection("/states/0/actions/0".to_owned());
        assert_eq!(pointer(selection), call);
    }

    #[test]
    fn pointers_are_relative_to_an_embedded_definition() {
        let text = format!("workflows:\n- {}", DOCUMENT.replace('\n', "\n  "));
        let root = source::parse(text.as_bytes(), &Limits::default()).unwrap();
        let locations = Locations::new(root.at("/workflows/0").unwrap());
        let place = locations.function_place("f", "authRef");
        assert_eq!(
            (place.pointer.as_str(), place.line),
            ("/functions/0/authRef", 4)
        );
    }
}
