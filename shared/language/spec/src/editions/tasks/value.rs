//! Values: properties by their name in this text or another one, and data that contains paths.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::Template;

use super::Reader;
use crate::build::ctx::Obj;
use crate::build::expression::VisibleVars;
use crate::build::paths::is_path;

impl Reader<'_, '_> {
    /// A property by its name here, or by a name that other texts have for it.
    pub fn named<'n>(&mut self, obj: Obj<'n>, here: &str, others: &[&str]) -> Option<&'n Node> {
        let found = others.iter().find_map(|name| Some((*name, obj.get(name)?)));
        match (obj.get(here), found) {
            (None, None) => None,
            (Some(node), None) => Some(node),
            (None, Some((name, node))) => {
                self.other_name(node, name, here);
                Some(node)
            }
            (Some(node), Some((name, _))) => {
                self.exclusive(obj, "this", &[here, name]);
                Some(node)
            }
        }
    }

    /// True or false, which may be written as text (docs/language.md#decision-96).
    pub fn flag(&mut self, obj: Obj<'_>, name: &str, default: bool) -> bool {
        let text = obj.get(name).and_then(Node::as_str).unwrap_or_default();
        let flag = match text.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => return self.boolean(obj, name, default),
        };
        if let Some(node) = obj.get(name) {
            let message = format!("'{name}' is the string '{text}', and is read as {flag}");
            self.warn(node, codes::WRONG_TYPE, message, format!("write {flag}"));
        }
        flag
    }

    /// A value in which each text that is a JSONPath, such as `$.customer.name`, is replaced by the value that it
    /// selects. All other texts are literal.
    pub fn with_paths(&mut self, node: &Node) -> Option<Template> {
        if let Some(text) = node.as_str() {
            if text.contains("{{") {
                return self.template(node, VisibleVars::PLAIN);
            }
            if !is_path(text) {
                return Some(Template::Literal(node.to_data()));
            }
            let location = self.location(node);
            let id = self.compile(&location, text.trim(), VisibleVars::PLAIN);
            return id.map(Template::Expression);
        }
        if let Some(items) = node.items() {
            let parts: Vec<_> = items.iter().map(|item| self.with_paths(item)).collect();
            let parts: Vec<Template> = parts.into_iter().collect::<Option<_>>()?;
            if parts.iter().all(is_literal) {
                return Some(Template::Literal(node.to_data()));
            }
            return Some(Template::Array(parts));
        }
        let Some(members) = node.members() else {
            return Some(Template::Literal(node.to_data()));
        };
        let parts: Vec<_> = members
            .iter()
            .map(|member| Some((member.key().to_owned(), self.with_paths(member.value())?)))
            .collect();
        let parts: Vec<(String, Template)> = parts.into_iter().collect::<Option<_>>()?;
        if parts.iter().all(|(_, value)| is_literal(value)) {
            return Some(Template::Literal(node.to_data()));
        }
        Some(Template::Object(parts))
    }

    /// Data that is used literally. A path in it gets a warning.
    pub fn plain_data(&mut self, node: &Node, what: &str) -> Data {
        if let Some(text) = first_path(node) {
            let message = format!("{what} is static: the path '{text}' in it is plain text");
            let hint = "compute the value in an action or a filter instead".to_owned();
            self.warn(node, codes::EXPRESSION_NOT_EVALUATED, message, hint);
        }
        node.to_data()
    }
}

fn is_literal(template: &Template) -> bool {
    matches!(template, Template::Literal(_))
}

fn first_path(node: &Node) -> Option<&str> {
    let items = node.items().unwrap_or_default().iter();
    let members = node.members().unwrap_or_default().iter();
    node.as_str()
        .filter(|text| text.trim() != "$" && is_path(text))
        .or_else(|| items.into_iter().find_map(first_path))
        .or_else(|| {
            members
                .into_iter()
                .find_map(|member| first_path(member.value()))
        })
}
