//! `run` (DSL 1.0, "Run", "Workflow Process"). Other processes: `process.rs`.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{
    Action, ActionKind, OnParentEnd, ResultRule, StateKind, Subflow, Template, Version,
};

use super::Reader;
use super::process::Process;
use super::value::DEFINITION;
use crate::build::ctx::Obj;

const PROCESSES: [&str; 4] = ["container", "script", "shell", "workflow"];

impl Reader<'_, '_> {
    pub fn run(&mut self, node: &Node, task: &str) -> Option<StateKind> {
        let known = [&PROCESSES[..], &["await", "return"]].concat();
        let obj = self.object(node, "'run'", &known)?;
        let given: Vec<&str> = PROCESSES.into_iter().filter(|name| obj.has(name)).collect();
        let process = match given.as_slice() {
            [name] => *name,
            [] => {
                self.missing(obj, "'run'", &PROCESSES);
                return None;
            }
            several => {
                self.exclusive(obj, "'run'", several);
                return None;
            }
        };
        let awaited = self.truth(obj, "await", true);
        let words = ["stdout", "stderr", "code", "all", "none"];
        let gives = self.word(obj, "return", &words);
        let pointer = self.location(node).place.pointer;
        let pointer = pointer.strip_suffix("/run").unwrap_or(&pointer).to_owned();
        let part = obj.get(process)?;
        if process != "workflow" {
            let process = Process {
                word: process,
                gives,
                awaited,
            };
            return self.process(&process, part, task, pointer);
        }
        let subflow = self.subflow(part, !awaited)?;
        let action = Action {
            kind: ActionKind::Subflow(subflow),
            pointer,
            results: ResultRule {
                ignore: !awaited,
                whole: true,
                // Without a result, the output is null.
                results: match gives {
                    Some("none") => self.null(),
                    _ => None,
                },
                ..ResultRule::default()
            },
            ..Action::default()
        };
        Some(StateKind::Operation(self.only(action)))
    }

    fn null(&mut self) -> Option<swirl_model::workflow::ExprId> {
        let location = crate::build::location::Location::default();
        self.compile(
            &location,
            "null",
            crate::build::expression::VisibleVars::PLAIN,
        )
    }

    fn subflow(&mut self, node: &Node, detached: bool) -> Option<Subflow> {
        let known = &["namespace", "name", "version", "input"];
        let obj = self.object(node, "'workflow'", known)?;
        let text = |reader: &mut Self, obj: Obj<'_>, name: &str| {
            let text = reader.need_string(obj, "'workflow'", name)?;
            let is_named = name == "version" || !text.contains("${");
            if !is_named && let Some(node) = obj.get(name) {
                let message = format!("'{name}' is an expression, and must name one workflow");
                let hint = "write the name itself; a 'switch' chooses between workflows".to_owned();
                reader.error(node, codes::BAD_NAME, message, hint);
            }
            Some(text).filter(|_| is_named)
        };
        let namespace = text(self, obj, "namespace");
        let name = text(self, obj, "name");
        let version = text(self, obj, "version");
        if let (Some(version), Some(node)) = (&version, obj.get("version"))
            && version != Version::LATEST
        {
            self.semantic(node, version);
        }
        let input = match obj.get("input") {
            Some(node) => Some(self.value(node, DEFINITION, false)?),
            None => Some(Template::Literal(Data::object())),
        };
        let version = version?;
        Some(Subflow {
            workflow: format!("{}.{}", namespace?, name?),
            version: (version != Version::LATEST).then_some(version),
            input,
            detached,
            on_parent_end: OnParentEnd::Continue,
        })
    }
}
