//! What calls have in common (DSL 1.0, "Call", "Endpoint", "External Resource").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{
    Action, ActionKind, AuthId, Call, Function, FunctionId, FunctionKind, ListId, MessageRule,
    Period, ResultRule, StateKind, Template,
};

use super::Reader;
use super::value::DEFINITION;
use crate::build::ctx::Obj;

/// A call that a task describes.
pub(super) struct Called {
    pub kind: FunctionKind,
    /// As [`Function::operation`].
    pub operation: String,
    /// Of the document that describes the operation.
    pub resource_auth: Option<AuthId>,
    pub auth: Option<AuthId>,
    /// What isn't evaluated.
    pub metadata: Data,
    pub arguments: Template,
    /// Of the call itself; the task may have another.
    pub timeout: Option<Period>,
}

impl Reader<'_, '_> {
    /// `with`, which these calls need, and its required properties.
    pub fn with<'n>(
        &mut self,
        task: Obj<'n>,
        call: &str,
        known: &[&str],
        required: &[&str],
    ) -> Option<Obj<'n>> {
        let Some(with) = task.node.get("with") else {
            self.missing(task, &format!("a task with 'call: {call}'"), &["with"]);
            return None;
        };
        self.with_of(with, known, required)
    }

    /// The same, of a `with` that was found.
    pub fn with_of<'n>(
        &mut self,
        with: &'n Node,
        known: &[&str],
        required: &[&str],
    ) -> Option<Obj<'n>> {
        let obj = self.object(with, "'with'", known)?;
        for name in required {
            if !obj.has(name) {
                self.missing(obj, "'with'", &[name]);
            }
        }
        Some(obj)
    }

    /// `authentication`, if it is given. `None` if it is wrong.
    pub fn auth_of(&mut self, obj: Obj<'_>) -> Option<Option<AuthId>> {
        match obj.get("authentication") {
            Some(node) => self.authentication(node).map(Some),
            None => Some(None),
        }
    }

    /// Values by name, with expressions in them; none if the property is absent.
    pub fn named_values(&mut self, obj: Obj<'_>, name: &str) -> Option<Template> {
        match obj.get(name) {
            Some(node) if node.members().is_none() => {
                self.wrong_type(node, &format!("'{name}'"), "an object");
                None
            }
            Some(node) => self.value(node, DEFINITION, true),
            None => Some(Template::Object(Vec::new())),
        }
    }

    /// The state of a task that makes a call.
    pub fn calling(&mut self, task: Obj<'_>, called: Called) -> StateKind {
        StateKind::Operation(self.call_of(task, called, None))
    }

    /// The list with the call of a task. `subscription`: the messages that it takes.
    pub fn call_of(
        &mut self,
        task: Obj<'_>,
        called: Called,
        subscription: Option<Box<MessageRule>>,
    ) -> ListId {
        let place = self.location(task.node).place.pointer;
        let name = task.node.pointer().rsplit('/').next().unwrap_or_default();
        let name = name.replace("~1", "/").replace("~0", "~");
        let function = FunctionId(self.workflow.functions.len() as u32);
        self.workflow.functions.push(Function {
            name: name.as_str().into(),
            kind: called.kind,
            operation: called.operation,
            place: place.clone(),
            resource_auth: called.resource_auth,
            auth: called.auth,
            metadata: called.metadata,
            within: None,
        });
        let action = Action {
            kind: ActionKind::Call(Call {
                function,
                arguments: Some(called.arguments),
                selection_set: None,
                detached: false,
                subscription,
            }),
            pointer: place,
            timeout: called.timeout,
            results: ResultRule {
                whole: true,
                ..ResultRule::default()
            },
            ..Action::default()
        };
        self.only(action)
    }

    /// A list of one action.
    pub fn only(&mut self, action: Action) -> ListId {
        let id = self.add_action(action);
        self.action_list(vec![id], false)
    }

    /// A URI, or an object with one and an authentication.
    pub fn endpoint(&mut self, node: &Node) -> (Option<Template>, Option<AuthId>) {
        if node.as_str().is_some() {
            return (self.web_address(node, "'endpoint'"), None);
        }
        let Some(obj) = self.object(node, "'endpoint'", &["uri", "authentication"]) else {
            return (None, None);
        };
        let uri = match obj.get("uri") {
            Some(node) => self.web_address(node, "'uri'"),
            None => {
                self.missing(obj, "'endpoint'", &["uri"]);
                None
            }
        };
        let auth = obj
            .get("authentication")
            .and_then(|node| self.authentication(node));
        (uri, auth)
    }

    /// The document that describes a service, which is fetched when the workflow is deployed: its address, and the
    /// authentication that it needs.
    pub fn described_by(&mut self, node: &Node) -> Option<(String, Option<AuthId>)> {
        let endpoint = self.resource_endpoint(node)?;
        let (uri, auth) = match endpoint.as_str() {
            Some(_) => (endpoint, None),
            None => {
                let obj = self.object(endpoint, "'endpoint'", &["uri", "authentication"])?;
                let auth = match obj.get("authentication") {
                    Some(node) => Some(self.authentication(node)?),
                    None => None,
                };
                let Some(uri) = obj.get("uri") else {
                    self.missing(obj, "'endpoint'", &["uri"]);
                    return None;
                };
                (uri, auth)
            }
        };
        let text = self.string(uri, "'uri'")?;
        let message = match text.as_str() {
            text if text.contains("${") || text.contains('{') => {
                "the address of a document must be a string without expressions: the document is fetched when the workflow \
                 is deployed"
            }
            text if text.contains('#') => "the address of a document has no '#'",
            "" => "the address of a document is empty",
            text => {
                let address = self.relative(&uri.text_here(text));
                let address = address.as_str().unwrap_or(text).to_owned();
                return Some((address, auth));
            }
        };
        let hint = "write its address, or its path beside this file".to_owned();
        self.error(uri, codes::BAD_URI, message, hint);
        None
    }
}
