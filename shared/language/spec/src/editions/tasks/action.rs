//! Actions and the functions that they call (sections "Action Definition", "FunctionRef
//! Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{
    Action, ActionId, ActionKind, Call, FunctionKind, Language, ListId, Template,
};

use super::Reader;
use crate::build::ctx::Obj;
use crate::build::expression::VisibleVars;
use crate::build::paths::is_path;

const PROPERTIES: &[&str] = &[
    "name",
    "functionRef",
    "timeout",
    "actionDataFilter",
    "filter",
];

impl Reader<'_, '_> {
    /// `actions` of an operation, or of an entry of events.
    pub fn actions(&mut self, obj: Obj<'_>, what: &str) -> ListId {
        let parallel =
            self.word(obj, "actionMode", &["sequential", "parallel"]) == Some("parallel");
        let items = self.need_list(obj, what, "actions").unwrap_or_default();
        self.unique(items, "name", "action");
        let mut actions = Vec::with_capacity(items.len());
        for item in items {
            actions.extend(self.action(item));
        }
        self.action_list(actions, parallel)
    }

    pub fn action(&mut self, node: &Node) -> Option<ActionId> {
        let obj = self.object(node, "an action", PROPERTIES)?;
        let name = self.opt_name(obj, "name");
        let timeout = self.timeout(obj, "timeout");
        self.has_action_timeout |= timeout.is_some();
        let (from, results) = self.action_filter(obj);
        let kind = match obj.get("functionRef") {
            Some(node) => self.function_ref(node),
            None => {
                self.missing(obj, "an action", &["functionRef"]);
                None
            }
        };
        let action = Action {
            name: name.map(Into::into),
            kind: kind?,
            pointer: self.location(node).place.pointer,
            from,
            results,
            timeout,
            ..Action::default()
        };
        Some(self.add_action(action))
    }

    fn function_ref(&mut self, node: &Node) -> Option<ActionKind> {
        if node.as_str().is_some() {
            return self.call(node, None);
        }
        let known = &["refName", "name", "parameters", "arguments"];
        let obj = self.object(node, "a functionRef", known)?;
        let Some(name) = self.named(obj, "refName", &["name"]) else {
            self.missing(obj, "a functionRef", &["refName"]);
            return None;
        };
        let parameters = self.named(obj, "parameters", &["arguments"]);
        self.call(name, parameters)
    }

    fn call(&mut self, node: &Node, parameters: Option<&Node>) -> Option<ActionKind> {
        let arguments = match parameters {
            None => Some(None),
            Some(node) if node.members().is_none() => {
                self.wrong_type(node, "'parameters'", "an object");
                None
            }
            Some(node) => self.with_paths(node).map(Some),
        };
        let name = self.string(node, "a function's name")?;
        let Some(entry) = self.functions.get(&name) else {
            let location = self.location(node);
            self.unknown_function(&location, &name, None);
            return None;
        };
        let (function, kind, operation) = (entry.id, entry.kind.clone(), entry.operation.clone());
        let location = entry.operation_location.clone();
        let arguments = arguments?;
        if kind == FunctionKind::Expression {
            let sight = VisibleVars {
                args: true,
                ..VisibleVars::PLAIN
            };
            // Functions of this type belong to later editions, and so does their language.
            let outer = std::mem::replace(&mut self.ctx.language, Language::Jq);
            let expression = self.compile(&location, &operation, sight);
            self.ctx.language = outer;
            return Some(ActionKind::Expression {
                function,
                expression: expression?,
                arguments,
                detached: false,
            });
        }
        Some(ActionKind::Call(Call {
            function,
            // Without parameters it gets the state data (docs/language.md#decision-103).
            arguments,
            selection_set: None,
            detached: false,
            subscription: None,
        }))
    }

    /// `data` of a produced event: a text is a path (docs/language.md#decision-80), otherwise it is an object.
    pub fn event_data(&mut self, node: &Node) -> Option<Template> {
        if node.as_str().is_none() {
            if node.members().is_none() {
                self.wrong_type(node, "'data'", "a path or an object");
                return None;
            }
            return self.with_paths(node);
        }
        let text = node.as_str().unwrap_or_default();
        if !is_path(text) && !text.contains("{{") {
            let message =
                format!("'data' that is a string must be a path, and '{text}' is not one");
            let hint = "write '$' for all of the data, or an object {text: ...} for a string";
            self.error(node, codes::BAD_EXPRESSION, message, hint.to_owned());
            return None;
        }
        let id = self.expression(node, "'data'", VisibleVars::PLAIN);
        id.map(Template::Expression)
    }
}
