//! Compares a definition's functions and calls with the documents that describe them. Problems become findings with a
//! location in the definition.

use swirl_documents::codes;
use swirl_documents::diagnostic::{Diagnostic, Diagnostics, Severity, SourceLocation};
use swirl_documents::source::Node;
use swirl_functions::types::{self, Checks};
use swirl_functions::{FaultyPart, Problem, Site};
use swirl_model::workflow::Workflow;

use crate::fetch::Missing;

/// The keys for the arguments of a call, in all editions.
const ARGUMENTS: [&str; 3] = ["arguments", "parameters", "message"];

/// The properties of a task's call that say a part of the operation, most likely first.
fn properties_of(part: FaultyPart) -> &'static [&'static str] {
    match part {
        FaultyPart::Document => &["document", "proto", "agentCard"],
        FaultyPart::Operation => &["operationId", "operation", "channel"],
        FaultyPart::Service => &["service/name"],
        FaultyPart::Method => &["method"],
        FaultyPart::Server => &["server/name", "server", "protocol"],
        FaultyPart::Transport => &["transport"],
        FaultyPart::Protocol => &["protocol", "server/name"],
    }
}

/// Whether a finding is an error in what stands at a pointer, or in a part of a function's operation there.
fn is_about(known: &Diagnostic, pointer: &str) -> bool {
    let Some(rest) = known.pointer.strip_prefix(pointer) else {
        return false;
    };
    let is_within = rest.starts_with('/') && pointer.ends_with("/operation");
    known.is_error() && (rest.is_empty() || is_within)
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
    /// process, which the operator allows. `known` are the findings of the reader, which aren't repeated in other words.
    pub fn checked(
        &self,
        workflow: &Workflow,
        checks: &Checks,
        missing: &[Missing],
        known: &Diagnostics,
    ) -> Vec<Diagnostic> {
        let refused = checks.refused().iter().filter(|problem| {
            let function = problem.of_function(workflow);
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
        let refused = refused
            .map(|problem| self.function(problem))
            .filter(|refused| !known.iter().any(|known| is_about(known, &refused.pointer)));
        let calls = self.calls(&checks.calls(workflow));
        let unaddressed = self.unaddressed(&checks.unaddressed(workflow));
        refused.chain(calls).chain(unaddressed).collect()
    }

    /// Built-in operations of type `custom` that can never run (docs/language.md#decision-99).
    pub fn built_in(&self, workflow: &Workflow) -> Vec<Diagnostic> {
        let functions = workflow.functions.iter();
        let found = functions.filter_map(|function| {
            let message = types::custom::refused(function)?;
            let site = Site::Operation(FaultyPart::default());
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
                "" => {
                    let site = Site::Operation(FaultyPart::Document);
                    self.place_of(&Problem::of(function, String::new(), site))
                }
                task => self.task_place(task, properties_of(FaultyPart::Document)),
            });
            let reason = &missing.reason;
            let message = format!("the document of a function is unavailable: {reason}");
            let place = place.unwrap_or_default();
            Diagnostic::error(codes::FUNCTION_DOCUMENT, place, message)
        });
        found.collect()
    }

    fn place_of(&self, problem: &Problem) -> SourceLocation {
        match &problem.site {
            Site::Operation(part) if !problem.place.is_empty() => {
                self.task_place(&problem.place, properties_of(*part))
            }
            Site::Auth if !problem.place.is_empty() => {
                self.task_place(&problem.place, &["authentication"])
            }
            Site::Operation(_) => self.function_place(problem, "operation"),
            Site::Auth => self.function_place(problem, "authRef"),
            Site::Arguments { action, within } => self.call_place(action, &ARGUMENTS, within),
            Site::Selection(action) => self.call_place(action, &["selectionSet"], ""),
        }
    }

    /// A property of a function. If the functions are a list in another document, this is the reference to that
    /// document.
    fn function_place(&self, problem: &Problem, key: &str) -> SourceLocation {
        let found = self.root.get("functions").map(|list| {
            let name = Some(problem.function.as_str());
            let own = |function: &&Node| function.get("name").and_then(Node::as_str) == name;
            let function = list
                .items()
                .and_then(|all| all.iter().filter(own).nth(problem.nth));
            function.map_or(list, |function| function.get(key).unwrap_or(function))
        });
        self.place(found)
    }

    /// The first of these properties that a task's call has.
    fn task_place(&self, task: &str, parts: &[&str]) -> SourceLocation {
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
    fn call_place(&self, action: &str, keys: &[&str], within: &str) -> SourceLocation {
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

    fn place(&self, node: Option<&Node>) -> SourceLocation {
        let Some(node) = node else {
            return SourceLocation::default();
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
    use swirl_functions::types::Settings;
    use swirl_spec::Options;
    use swirl_spec::resource::MapResources;

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
            nth: 0,
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
            pointer(Site::Operation(FaultyPart::Document)),
            "/functions/0/operation"
        );
        assert_eq!(pointer(Site::Auth), "/functions/0/authRef");
        let selection = Site::Selection("/states/0/actions/0".to_owned());
        assert_eq!(pointer(selection), call);
    }

    fn checked(functions: &str) -> Vec<String> {
        let text = format!(
            "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nfunctions: [{functions}]\nstates: [{{name: A, type: inject, data: {{}}, end: true}}]\n"
        );
        let reading = swirl_spec::read(
            text.as_bytes(),
            &MapResources::default(),
            &Options::default(),
        );
        let (workflow, root) = (reading.partial.unwrap(), reading.root.unwrap());
        let checks = Checks::new(&workflow, &[], &Settings::default());
        let locations = Locations::new(&root);
        let found = locations.checked(&workflow, &checks, &[], &reading.diagnostics);
        found.into_iter().map(|one| one.pointer).collect()
    }

    #[test]
    fn findings_of_the_reader_are_not_repeated() {
        for function in [
            "operation: x.json",
            "type: graphql, operation: x",
            "type: rpc, operation: x#y",
            "type: odata, operation: x",
            "type: asyncapi, operation: x",
            "type: 5, operation: x",
            "type: rest",
        ] {
            let found = checked(&format!("{{name: f, {function}}}"));
            assert!(found.is_empty(), "{function}: {found:?}");
        }
    }

    #[test]
    fn functions_of_one_name_are_told_apart() {
        let first = "{name: f, type: expression, operation: .a}";
        let second = checked(&format!("{first}, {{name: f, operation: 'x.json#y'}}"));
        assert_eq!(second, ["/functions/1/operation"]);
        let custom = checked(&format!("{first}, {{name: f, type: custom, operation: x}}"));
        assert!(custom.is_empty(), "{custom:?}");
    }

    #[test]
    fn pointers_are_relative_to_an_embedded_definition() {
        let text = format!("workflows:\n- {}", DOCUMENT.replace('\n', "\n  "));
        let root = source::parse(text.as_bytes(), &Limits::default()).unwrap();
        let locations = Locations::new(root.at("/workflows/0").unwrap());
        let problem = Problem {
            function: "f".to_owned(),
            nth: 0,
            place: String::new(),
            message: String::new(),
            site: Site::Auth,
        };
        let place = locations.place_of(&problem);
        assert_eq!(
            (place.pointer.as_str(), place.line),
            ("/functions/0/authRef", 4)
        );
    }
}
