//! Functions that are provided at deployment (docs/language.md#decision-54), because the older editions refer to
//! functions only by name.
//!
//! They are a resource with its own URI: a list of functions as in edition 0.8 (or an object with `functions` and
//! `auth`). So they are stored with the definition that uses them.

use std::collections::HashMap;

use swirl_model::workflow::{FunctionId, FunctionKind, Language};

use super::ctx::{Ctx, Given};
use super::dialect::Dialect;
use crate::codes;
use crate::resource::FUNCTIONS_URI;
use crate::source::{self, Node};

impl Ctx<'_> {
    /// The function with this name, if it was provided. `place`: the location where the document names it, at which
    /// findings about the provided function are shown.
    pub fn given_function(&mut self, place: &Node, name: &str) -> Option<FunctionId> {
        if let Some(known) = self.given().read.get(name) {
            return *known;
        }
        let item = self.given_item(name);
        let found = item.and_then(|item| self.read_given(place, &item, name));
        self.given().read.insert(name.to_owned(), found);
        found
    }

    /// The expression and the kind of a provided function.
    pub fn given_expression(&self, name: &str) -> Option<String> {
        let entry = self.functions.get(name)?;
        (entry.kind == FunctionKind::Expression).then(|| entry.operation.clone())
    }

    fn given(&mut self) -> &mut Given {
        if self.given.is_none() {
            let content = self
                .resources
                .fetch(FUNCTIONS_URI, None)
                .unwrap_or_default();
            let document = match content.is_empty() {
                true => None,
                false => source::parse(&content, &self.options.limits).ok(),
            };
            self.given = Some(Given {
                document,
                content,
                read: HashMap::new(),
            });
        }
        self.given.get_or_insert_default()
    }

    fn given_item(&mut self, name: &str) -> Option<Node> {
        let document = self.given().document.as_ref()?;
        let list = document.get("functions").unwrap_or(document);
        let mut items = list.items()?.iter();
        items
            .find(|item| item.get("name").and_then(Node::as_str) == Some(name))
            .cloned()
    }

    fn read_given(&mut self, place: &Node, item: &Node, name: &str) -> Option<FunctionId> {
        let uri = FUNCTIONS_URI.to_owned();
        if !self.resources_used.iter().any(|(known, _)| *known == uri) {
            let content = self.given().content.clone();
            self.resources_used.push((uri.clone(), content));
        }
        let location = self.location(place);
        let origin = self.origin.replace((uri, location));
        let dialect = std::mem::replace(&mut self.dialect, Dialect::JQ);
        let language = std::mem::replace(&mut self.language, Language::Jq);
        let auth = self.given().document.as_ref();
        let auth = auth.and_then(|document| document.get("auth")).cloned();
        if let Some(auth) = auth.filter(|_| self.workflow.auth.is_empty()) {
            self.auth_definitions(&auth);
        }
        self.function_definition(item);
        (self.origin, self.dialect, self.language) = (origin, dialect, language);
        let found = self.functions.get(name).map(|entry| entry.id);
        if found.is_none() && self.is_clean() {
            let message = format!("the function '{name}' that was given cannot be read");
            self.error(place, codes::UNKNOWN_FUNCTION, message, None);
        }
        found
    }
}
