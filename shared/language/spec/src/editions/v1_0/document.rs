//! The workflow itself (DSL 1.0, "Workflow", "Document", "Evaluate").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_documents::suggest;
use swirl_model::Data;
use swirl_model::error::OWN_TYPES;
use swirl_model::workflow::{
    Flow, Next, State, StateId, Task, TaskWorkflow, Version, Workflow, WorkflowTimeout,
};

use super::Reader;
use super::value::{WORKFLOW_INPUT, WORKFLOW_OUTPUT};
use crate::build::ctx::Obj;
use crate::build::expression::VisibleVars;
use crate::build::location::Location;

pub(super) const PROPERTIES: &[&str] = &[
    "document", "input", "use", "do", "timeout", "output", "schedule", "evaluate",
];

const DOCUMENT: &[&str] = &[
    "dsl",
    "namespace",
    "name",
    "version",
    "title",
    "summary",
    "tags",
    "metadata",
];

impl Reader<'_, '_> {
    pub fn workflow(&mut self, node: &Node) {
        let Some(root) = self.object(node, "a workflow", PROPERTIES) else {
            return;
        };
        self.workflow.problems = Some(OWN_TYPES);
        let mut tasks = TaskWorkflow {
            document: node.to_data(),
            ..TaskWorkflow::default()
        };
        match root.get("document") {
            Some(node) => self.document(node, &mut tasks),
            None => self.missing(root, "a workflow", &["document"]),
        }
        self.workflow.constants = Data::object();
        if let Some(node) = root.get("evaluate") {
            self.evaluate(node);
        }
        if let Some(node) = root.get("use") {
            self.reuse(node);
        }
        if let Some(node) = root.get("input") {
            let input = self.input(node, WORKFLOW_INPUT);
            tasks.from = input.from;
            self.workflow.input_schema = input.schema;
        }
        if let Some(node) = root.get("output") {
            let output = self.output(node, WORKFLOW_OUTPUT);
            tasks.output = output.value;
            self.workflow.output_schema = output.schema;
        }
        if let Some(node) = root.get("timeout") {
            // There is no task and no context before the first one begins.
            let duration = self.timeout_of(node, WORKFLOW_INPUT);
            self.workflow.timeout = duration.map(|duration| WorkflowTimeout {
                duration,
                interrupt: true,
                run_before: None,
            });
        }
        if let Some(node) = root.get("schedule") {
            tasks.starts = self.schedule(node);
        }
        self.workflow.tasks = Some(Box::new(tasks));
        match root.get("do") {
            Some(node) => {
                self.tasks(node, "'do'");
                self.at_least_one();
                self.extensions(root);
            }
            None => self.missing(root, "a workflow", &["do"]),
        }
        if let Some(node) = root.get("document") {
            self.own_metadata(node);
        }
        self.check_catalogs();
        self.check_functions();
        self.check_reuse();
    }

    /// A workflow has a first state. One without tasks gives its input.
    fn at_least_one(&mut self) {
        if !self.workflow[Workflow::ROOT].states.is_empty() {
            return;
        }
        let location = Location::default();
        let condition = self.compile(&location, "false", VisibleVars::PLAIN);
        let id = StateId(self.workflow.states.len() as u32);
        self.workflow.states.push(State {
            next: Some(Next::Leave),
            task: Some(Box::new(Task {
                condition,
                ..Task::default()
            })),
            ..State::default()
        });
        self.workflow.flows[0] = Flow {
            start: id,
            states: vec![id],
            window: None,
        };
    }

    fn document(&mut self, node: &Node, tasks: &mut TaskWorkflow) {
        let Some(members) = node.members() else {
            return self.wrong_type(node, "'document'", "an object");
        };
        let obj = Obj { node };
        if !obj.has("dsl") {
            self.missing(obj, "'document'", &["dsl"]);
        }
        for name in ["namespace", "name"] {
            let Some(text) = self.need_string(obj, "'document'", name) else {
                continue;
            };
            if let Some(node) = obj.get(name) {
                self.label(node, name, &text);
            }
            match name {
                "name" => tasks.name = text,
                _ => tasks.namespace = text,
            }
        }
        self.workflow.id = format!("{}.{}", tasks.namespace, tasks.name);
        self.workflow.name = Some(tasks.name.clone());
        match obj.get("version") {
            None => self.missing(obj, "'document'", &["version"]),
            Some(node) => {
                if let Some(text) = self.string(node, "'version'") {
                    self.semantic(node, &text);
                    self.workflow.version = Version::Literal(text);
                }
            }
        }
        let mut text = |name: &str| {
            let node = obj.get(name)?;
            let text = self.any_text(node, &format!("'{name}'"));
            text.filter(|text| !text.is_empty())
        };
        (tasks.title, self.workflow.description) = (text("title"), text("summary"));
        for name in ["tags", "metadata"] {
            if let Some(node) = obj.get(name)
                && node.members().is_none()
            {
                self.wrong_type(node, &format!("'{name}'"), "an object");
            }
        }
        let mut metadata = obj.get("metadata").map_or_else(Data::object, Node::to_data);
        if !metadata.is_object() {
            metadata = Data::object();
        }
        if let Some(tags) = obj.get("tags") {
            metadata.set("tags", tags.to_data());
        }
        // Other runtimes put their own properties here.
        for member in members {
            let key = member.key();
            if DOCUMENT.contains(&key) {
                continue;
            }
            let near = suggest::did_you_mean(key, DOCUMENT.iter().copied());
            let hint = match near {
                Some(near) => format!("did you mean '{near}'? else put it into 'metadata'"),
                None => "put it into 'metadata'".to_owned(),
            };
            let message = format!("'document' has no property '{key}': it is kept as metadata");
            let place = self.place(member.key_place());
            self.warn_at(&place, codes::ADDITIONAL_PROPERTY, message, hint);
            if metadata.get(key).is_none() {
                metadata.set(key, member.value().to_data());
            }
        }
        self.workflow.metadata = metadata;
    }

    /// Refuses a version that isn't a semantic one.
    pub fn semantic(&mut self, node: &Node, text: &str) {
        if semver::Version::parse(text).is_err() {
            let message = format!("'version' cannot be '{text}': it is a semantic version");
            let hint = "write for example '1.0.0'".to_owned();
            self.error(node, codes::VERSION_NOT_SEMVER, message, hint);
        }
    }

    /// A namespace or a name: letters, digits and dashes.
    fn label(&mut self, node: &Node, name: &str, text: &str) {
        if !is_label(text) {
            let message = format!("'{name}' cannot be '{text}'");
            let hint =
                "use at most 63 letters of ASCII, digits and dashes, without a dash at either end"
                    .to_owned();
            self.error(node, codes::BAD_NAME, message, hint);
        }
    }

    fn evaluate(&mut self, node: &Node) {
        let Some(obj) = self.object(node, "'evaluate'", &["language", "mode"]) else {
            return;
        };
        if let Some(node) = obj.get("language")
            && let Some(text) = self.string(node, "'language'")
            && text != "jq"
        {
            let message = format!("expressions in '{text}' can't be evaluated");
            let hint = "write them in jq, the default".to_owned();
            self.error(node, codes::EXPRESSION_LANGUAGE, message, hint);
        }
        self.loose = self.word(obj, "mode", &["strict", "loose"]) == Some("loose");
    }
}

/// Whether a text can be a namespace or a name (RFC 1123).
pub(super) fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}
