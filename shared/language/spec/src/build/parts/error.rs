//! Error definitions and states' `onErrors` (sections "Workflow Error Handling" and "Error
//! Definition", docs/language.md#decision-24, #decision-25 and #decision-26).

use swirl_documents::source::Node;
use swirl_model::workflow::{ErrorDef, ErrorId, Handler, HandlerRetry, Then};

use crate::build::ctx::{Ctx, Obj};

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
        let own = self.dialect.parts.handler_retry;
        let retried = self.earlier_part(own, node, "retryRef", "put 'retryRef' into the action");
        properties.extend(retried.then_some("retryRef"));
        let obj = self.object(node, "an error handler", &properties)?;
        let errors = match (obj.get("errorRef"), obj.get("errorRefs")) {
            (Some(one), Some(list)) => {
                self.exclusive(obj, "an error handler", &["errorRef", "errorRefs"]);
                // Errors inside them are reported too.
                self.error_set(std::slice::from_ref(one));
                self.error_set(list.items().unwrap_or_default());
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
                // A policy that allows no retry leaves the handler its transition.
                .filter(|policy| policy.retries_max != Some(0))
                .map(|policy| HandlerRetry {
                    policy,
                    source: false,
                }),
            then: Then::Next(next?),
            ..Handler::default()
        })
    }
}
