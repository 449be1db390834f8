//! The workflow definition itself (section "Workflow Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;

use super::Reader;
use crate::build::ctx::Obj;

pub(super) const PROPERTIES: &[&str] = &[
    "id",
    "name",
    "description",
    "version",
    "schemaVersion",
    "specVersion",
    "expressionLanguage",
    "expressionLang",
    "dataInputSchema",
    "dataOutputSchema",
    "events",
    "functions",
    "startsAt",
    "extensions",
    "metadata",
];

impl Reader<'_, '_> {
    pub fn workflow(&mut self, root: &Node) {
        if root.members().is_none() {
            self.wrong_type(root, "a workflow definition", "an object");
            return;
        }
        let root = Obj { node: root };
        self.names_of(root);
        self.version(root);
        let known = super::properties_of(self.variant);
        self.workflow.metadata = self.all_metadata(root, &known);
        self.extensions(root);
        self.workflow.constants = Data::object();
        self.conditions = self.default_language(root);
        if let Some(node) = root.get("events") {
            self.event_definitions(node);
        }
        if let Some(node) = root.get("functions") {
            self.function_definitions(node);
        }
        let node = self.states_node(root, "a workflow definition");
        let name = format!("'{}'", self.variant.states.0);
        let items = node.and_then(|node| self.full_list(node, &name));
        let items = items.unwrap_or_default();
        self.enter_flow();
        let named = root.get("startsAt").filter(|node| node.as_str().is_some());
        let (start, window) = self.states_of(items, named);
        self.leave_flow(start);
        self.workflow.schedule = window;
        let state = self.variant.state;
        self.schemas(root, start, state);
    }

    /// `id` and `name`. Either is sufficient (docs/language.md#decision-3 and #decision-50).
    fn names_of(&mut self, root: Obj<'_>) {
        for name in ["id", "name"] {
            if let Some(node) = root.get(name)
                && let Some(text) = node.as_str().filter(|text| !text.is_empty())
            {
                self.check_id(node, &format!("'{name}'"), text);
            }
        }
        let id = self.opt_name(root, "id");
        let name = self.opt_name(root, "name");
        for (given, other, lacks) in [(&id, &name, "id"), (&name, &id, "name")] {
            if given.is_none() && other.is_some() && !root.has(lacks) {
                let message = format!("the workflow definition has no '{lacks}'");
                let hint = format!("add '{lacks}'");
                self.warn(root.node, codes::MISSING_PROPERTY, message, hint);
            }
        }
        if !root.has("id") && !root.has("name") {
            self.missing(root, "a workflow definition", &["id"]);
        }
        self.workflow.id = id.or_else(|| name.clone()).unwrap_or_default();
        self.workflow.name = name;
        self.workflow.description = self.description(root);
        if let Some(node) = root.get("schemaVersion") {
            self.text(node, "'schemaVersion'");
        }
    }

    /// Extensions have no effect on how a workflow runs.
    fn extensions(&mut self, root: Obj<'_>) {
        if let Some(node) = root.get("extensions") {
            self.list(node, "'extensions'");
            self.workflow.metadata.set("extensions", node.to_data());
        }
    }
}
