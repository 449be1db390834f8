//! Error definitions and states' `onErrors` (sections "Workflow Error Handling" and "Error
//! Definition", docs/language.md#decision-24, #decision-25 and #decision-26).

use std::collections::HashSet;

use swirl_model::workflow::{ErrorDef, ErrorId, ErrorSet, Handler, HandlerRetry, Then};

use crate::build::ctx::{Ctx, Obj};
use crate::codes;
use crate::source::Node;

impl Ctx<'_> {
    pub fn errors(&mut self, node: &Node) {
        if let Some(reader) = self.dialect.parts.errors {
            return (reader.definitions)(self, node);
        }
        let read = self.each(node, "errors", |ctx, item| ctx.error_definition(item));
        self.names.errors.unread |= !read;
    }

    fn error_definition(&mut self, node: &Node) {
        let Some(obj) = self.object(node, "an error", &["name", "code", "description"]) else {
            self.names.errors.unread = true;
            return;
        };
        self.description(obj);
        let code = obj.get("code").and_then(|node| self.text(node, "'code'"));
        let Some(name) = self.need_string(obj, "an error", "name") else {
            self.names.errors.unread = true;
            return;
        };
        if self.names.errors.get(&name).is_some() {
            self.duplicate(obj.get("name").unwrap_or(node), "error", &name);
        }
        let id = ErrorId(self.workflow.errors.len() as u32);
        self.names.errors.add(name.clone(), id);
        self.workflow.errors.push(ErrorDef {
            name,
            code,
            problem: None,
        });
    }

    pub fn handlers(&mut self, obj: Obj<'_>) -> Vec<Handler> {
        if let Some(reader) = self.dialect.parts.errors {
            return (reader.of_state)(self, obj);
        }
        let Some(node) = obj.get("onErrors") else {
            return Vec::new();
        };
        let Some(items) = self.list(node, "'onErrors'") else {
            return Vec::new();
        };
        items.iter().filter_map(|item| self.handler(item)).collect()
    }

    fn handler(&mut self, node: &Node) -> Option<Handler> {
        let mut properties = vec!["errorRef", "errorRefs", "transition", "end"];
        properties.extend(self.dialect.parts.handler_retry.then_some("retryRef"));
        let obj = self.object(node, "an error handler", &properties)?;
        let errors = match (obj.get("errorRef"), obj.get("errorRefs")) {
            (Some(_), Some(_)) => {
                self.exclusive(obj, "an error handler", &["errorRef", "errorRefs"]);
                None
            }
            (None, None) => {
                self.missing(obj, "an error handler", &["errorRef", "errorRefs"]);
                None
            }
            (Some(one), None) => self.error_set(std::slice::from_ref(one)),
            (None, Some(list)) => self
                .full_list(list, "'errorRefs'")
                .and_then(|items| self.error_set(items)),
        };
        let next = self.next(obj, "an error handler", true);
        Some(Handler {
            errors: errors?,
            retry: obj
                .get("retryRef")
                .and_then(|node| self.retry_ref(node))
                .map(|policy| HandlerRetry {
                    policy,
                    source: false,
                }),
            then: Then::Next(next?),
            ..Handler::default()
        })
    }

    /// `*` means all errors that no other handler names, whether they are defined or not.
    fn error_set(&mut self, nodes: &[Node]) -> Option<ErrorSet> {
        let mut all = false;
        let mut ids = Vec::with_capacity(nodes.len());
        let mut seen = HashSet::new();
        for node in nodes {
            if let Some(name) = node.as_str().filter(|name| !seen.insert(*name)) {
                let message = format!("the error '{name}' is given here more than once");
                let hint = "name each error once".to_owned();
                self.error(node, codes::DUPLICATE_NAME, message, hint);
            }
            match node.as_str() {
                Some("*") => all = true,
                _ => {
                    let id = self.error_ref(node, "an error's name")?;
                    all |= self.matches_all(id);
                    ids.push(id);
                }
            }
        }
        Some(if all {
            ErrorSet::Any
        } else {
            ErrorSet::These(ids)
        })
    }

    fn matches_all(&self, id: ErrorId) -> bool {
        let error = &self.workflow[id];
        error.code.as_deref().unwrap_or(&error.name) == "*"
    }

    /// `retryableErrors` or `nonRetryableErrors` of an action.
    pub fn error_list(&mut self, node: &Node, name: &str) -> ErrorSet {
        let items = self.list(node, &format!("'{name}'")).unwrap_or_default();
        self.error_set(items).unwrap_or(ErrorSet::These(Vec::new()))
    }
}
