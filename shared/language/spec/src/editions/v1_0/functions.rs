//! Calls of functions that are defined as tasks (DSL 1.0, "Call", "Custom Functions", "Catalogs").
//!
//! Each call gets its own copy of the function's tasks, so a circle of functions can't be read, and the copies are
//! counted. To the outside, the tasks of a function are a part of the task that calls it: errors name its place, and
//! mocks answer by its name.

use swirl_documents::codes;
use swirl_documents::source::{self, Node};
use swirl_model::workflow::{Flow, FlowId, State, StateId, StateKind, TaskFunction, Within};

use super::Reader;
use super::catalog::{Cataloged, raw};
use super::tasks::List;
use super::value::DEFINITION;
use crate::build::ctx::{Obj, did_you_mean};
use crate::resource::{DEFAULT_CATALOG, ResourceError, scheme};

/// The deepest nesting of functions.
const DEPTH_MAX: usize = 32;

/// The number of tasks that all calls of functions may add.
const TASKS_MAX: usize = 20_000;

/// Where a function is defined.
enum Definition {
    /// In `use.functions`.
    Own(Node),
    /// In a document of its own.
    Other { uri: String, node: Node },
    /// It can't be had now, which is only a warning here.
    Unavailable,
}

/// The parts of a workflow that are there before a function is read.
struct Before {
    states: usize,
    actions: usize,
    functions: usize,
}

/// Whether a call names the address of a function.
fn is_address(name: &str) -> bool {
    let scheme = scheme(name).map(str::to_ascii_lowercase);
    name.contains("://") || matches!(scheme.as_deref(), Some("file" | "http" | "https"))
}

impl Reader<'_, '_> {
    pub fn function_call(
        &mut self,
        node: &Node,
        name: &str,
        task: Obj<'_>,
        own_name: &str,
    ) -> Option<StateKind> {
        let input = match task.get("with") {
            None => None,
            Some(node) => {
                if node.members().is_none() && !self.is_expression(node, DEFINITION) {
                    self.wrong_type(node, "'with'", "an object");
                    return None;
                }
                Some(self.value(node, DEFINITION, false)?)
            }
        };
        let definition = self.function_definition(node, name)?;
        let before = self.before();
        let body = match &definition {
            Definition::Unavailable => self.tasks(&node.list_here(Vec::new()), "'do'"),
            Definition::Own(function) => {
                let key = format!("#{name}");
                self.inlining.called.push(name.to_owned());
                self.inlined(node, &key, name, function)?
            }
            Definition::Other {
                uri,
                node: function,
            } => {
                let location = self.location(node);
                let outer = self.origin.replace((uri.clone(), location));
                let body = self.inlined(node, uri, name, function);
                self.origin = outer;
                body?
            }
        };
        let place = self.location(task.node).place.pointer;
        let in_document = matches!(definition, Definition::Own(_)) && self.origin.is_none();
        self.belongs_to(&before, &place, own_name, name, in_document);
        Some(StateKind::Function(TaskFunction {
            name: name.into(),
            input,
            body,
        }))
    }

    /// Reads a function as a list of one task. `node` is the call, `key` identifies the function.
    fn inlined(&mut self, node: &Node, key: &str, name: &str, function: &Node) -> Option<FlowId> {
        let open = &self.inlining.open;
        if let Some(at) = open.iter().position(|known| known == key) {
            let mut circle = open[at..].to_vec();
            circle.sort();
            if !self.inlining.circles.contains(&circle) {
                self.inlining.circles.push(circle);
                let message = format!("the function '{name}' calls itself here");
                let hint =
                    "a function can't be its own part: use a loop, or 'run: {workflow: ...}'";
                self.error(node, codes::RECURSIVE_FUNCTION, message, hint.to_owned());
            }
            self.failed = true;
            return None;
        }
        if open.len() >= DEPTH_MAX || self.inlining.tasks > TASKS_MAX {
            let message = match open.len() >= DEPTH_MAX {
                true => format!("more than {DEPTH_MAX} functions call each other here"),
                false => format!("calls of functions add more than {TASKS_MAX} tasks"),
            };
            let hint = "call the parts as workflows of their own, with 'run: {workflow: ...}'";
            self.error(node, codes::TOO_DEEP, message, hint.to_owned());
            return None;
        }
        self.inlining.open.push(key.to_owned());
        let flow = FlowId(self.workflow.flows.len() as u32);
        let id = StateId(self.workflow.states.len() as u32);
        self.workflow.states.push(State::default());
        self.workflow.flows.push(Flow {
            start: id,
            states: vec![id],
            window: None,
        });
        // The function sees no variables of its caller.
        let params = std::mem::take(&mut self.params);
        let lists = std::mem::take(&mut self.lists);
        let is_inner = std::mem::replace(&mut self.is_inner, true);
        let skips = std::mem::take(&mut self.skips);
        let mut list = List::of_one(flow, id);
        let state = self.task(&mut list, 0, name, function);
        self.params = params;
        self.lists = lists;
        self.is_inner = is_inner;
        self.skips = skips;
        self.inlining.open.pop();
        self.inlining.tasks += self.workflow.states.len() - id.0 as usize;
        self.workflow.states[id.0 as usize] = state?;
        Some(flow)
    }

    fn before(&self) -> Before {
        Before {
            states: self.workflow.states.len(),
            actions: self.workflow.actions.len(),
            functions: self.workflow.functions.len(),
        }
    }

    /// What a function has added is a part of the task that calls it.
    fn belongs_to(
        &mut self,
        before: &Before,
        place: &str,
        task: &str,
        function: &str,
        in_document: bool,
    ) {
        for state in &mut self.workflow.states[before.states..] {
            if let Some(task) = &mut state.task
                && in_document
                && task.reference.is_none()
            {
                task.reference = Some(std::mem::take(&mut state.pointer));
            }
            state.pointer = place.to_owned();
        }
        for action in &mut self.workflow.actions[before.actions..] {
            action.pointer = place.to_owned();
        }
        let added = self.workflow.functions.iter_mut().enumerate();
        for (index, known) in added.skip(before.functions) {
            if !in_document {
                // All findings in another document are at the call, so places of calls aren't unique there.
                known.place = format!("{place}#{index}");
            }
            let within = known.within.get_or_insert_with(|| {
                Box::new(Within {
                    task: task.into(),
                    place: String::new(),
                    functions: Vec::new(),
                })
            });
            within.task = task.into();
            place.clone_into(&mut within.place);
            if let Some(call) = Cataloged::parse(function) {
                within.functions.push(call.name.into());
            }
            within.functions.push(function.into());
        }
    }

    fn function_definition(&mut self, node: &Node, name: &str) -> Option<Definition> {
        let own = self.reuse.functions.iter();
        if let Some((_, function)) = own.clone().find(|(known, _)| known == name) {
            return Some(Definition::Own(function.clone()));
        }
        if is_address(name) {
            return self.other_document(node, raw(name));
        }
        if let Some(call) = Cataloged::parse(name) {
            let addresses = self.cataloged(node, &call)?;
            return self.other_document(node, addresses);
        }
        if self.is_unreadable("/use/functions") {
            return None;
        }
        let known = own.map(|(known, _)| known.as_str());
        let built_in = ["a2a", "asyncapi", "grpc", "http", "mcp", "openapi"];
        let hint = did_you_mean(name, known.chain(built_in)).unwrap_or_else(|| {
            format!(
                "define '{name}' in 'use.functions', or write 'NAME:VERSION@CATALOG' or its address"
            )
        });
        let message = format!("there is no function '{name}'");
        self.error(node, codes::UNKNOWN_FUNCTION, message, hint);
        None
    }

    /// A function's document, at the first address that has it.
    fn other_document(&mut self, node: &Node, addresses: Vec<String>) -> Option<Definition> {
        let mut first = None;
        for uri in addresses {
            match self.content(&uri) {
                Ok(bytes) => return self.function_at(node, uri, bytes),
                Err(error) => first = first.or(Some(error)),
            }
        }
        let error = first?;
        let hint = match &error {
            ResourceError::Scheme { scheme, .. } if scheme == "swirl" => {
                "the operator names the folder of the default catalog: 'functions.catalog'"
            }
            _ => "a definition is deployed with everything that it refers to: check the address",
        };
        let message = match &error {
            ResourceError::Scheme { uri, scheme } if scheme == "swirl" => {
                let path = uri.strip_prefix(DEFAULT_CATALOG).unwrap_or(uri);
                format!(
                    "there is no default catalog here, which would have '{}'",
                    path.trim_start_matches('/')
                )
            }
            error => error.to_string(),
        };
        if self.may_lack(&error) {
            self.warn(node, codes::RESOURCE_NOT_FOUND, message, hint.to_owned());
            return Some(Definition::Unavailable);
        }
        self.error(node, codes::RESOURCE_NOT_FOUND, message, hint.to_owned());
        None
    }

    fn function_at(&mut self, node: &Node, uri: String, bytes: Vec<u8>) -> Option<Definition> {
        let parsed = source::parse(&bytes, &self.options.limits);
        if !self.resources_used.iter().any(|(known, _)| *known == uri) {
            self.resources_used.push((uri.clone(), bytes));
        }
        let document = match parsed {
            Ok(document) if document.members().is_some() => document,
            Ok(_) => {
                let message = format!("'{uri}' isn't a function: a function is a task");
                self.error(node, codes::BAD_RESOURCE, message, None);
                return None;
            }
            // Nothing of it is quoted, since the deploying client may have no right to read it.
            Err(found) => {
                let (code, line) = (found.code, found.line);
                let message = format!("'{uri}' is not valid JSON or YAML: {code} (line {line})");
                self.error(node, codes::BAD_RESOURCE, message, None);
                return None;
            }
        };
        Some(Definition::Other {
            uri,
            node: document,
        })
    }

    /// Finds the mistakes in functions that nothing calls.
    pub fn check_functions(&mut self) {
        let unused = |reader: &Self| {
            let functions = reader.reuse.functions.iter();
            let called = &reader.inlining.called;
            functions
                .filter(|(name, _)| !called.contains(name))
                .cloned()
                .collect::<Vec<_>>()
        };
        if unused(self).is_empty() {
            return;
        }
        // Nothing of them stays.
        let workflow = self.workflow.clone();
        let pool = self.expressions.clone();
        while let Some((name, function)) = unused(self).into_iter().next() {
            self.inlining.called.push(name.clone());
            self.inlined(&function, &format!("#{name}"), &name, &function);
        }
        self.workflow = workflow;
        self.expressions = pool;
    }
}
