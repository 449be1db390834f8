//! Texts that authenticate, and secrets as a whole (DSL 1.0, "Authentication").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::Template;

use super::Reader;
use super::value::DEFINITION;
use crate::build::expression::VisibleVars;

impl Reader<'_, '_> {
    /// A text of a credential.
    pub fn credential(&mut self, node: &Node, name: &str) -> Option<Template> {
        if node.is_number() {
            let message = format!("'{name}' is a number, and is read as a string");
            self.loose(node, message, "put it in quotes".to_owned());
            return Some(Template::Literal(Data::string(node.raw())));
        }
        let what = format!("'{name}'");
        match name {
            // Keys of some services are a user without a password, or the other way round.
            "username" | "password" | "secret" => self.any_text(node, &what)?,
            _ => self.string(node, &what)?,
        };
        self.text_value(node, DEFINITION, true)
    }

    /// The name in `use`. No property of the object may stand beside it.
    pub fn named_alone<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        own: &[&str],
    ) -> Option<&'n Node> {
        let named = node.get("use")?;
        let known = [&["use"], own].concat();
        if let Some(obj) = self.object(node, what, &known) {
            let given: Vec<&str> = known.into_iter().filter(|name| obj.has(name)).collect();
            if given.len() > 1 {
                self.exclusive(obj, what, &given);
            }
        }
        Some(named)
    }

    /// A secret as a whole, by its name. `then`: what is made of it, in jq.
    pub fn secret(&mut self, node: &Node, then: &str) -> Option<Template> {
        let name = self.string(node, "'use'")?;
        let known = self.workflow.secrets.contains(&name);
        if !known && self.is_unreadable("/use/secrets") {
            return None;
        }
        if !known {
            let message = format!("'use.secrets' doesn't list '{name}'");
            let hint = format!("add '{name}' to 'use.secrets'");
            self.error(node, codes::UNKNOWN_SECRET, message, hint);
            return None;
        }
        if !self.workflow.secret_objects.contains(&name) {
            self.workflow.secret_objects.push(name.clone());
        }
        let location = self.location(node);
        let sight = VisibleVars {
            secrets: true,
            names: DEFINITION,
            ..VisibleVars::PLAIN
        };
        let expression = format!("$secrets[{}]{then}", Data::string(name));
        self.compile(&location, &expression, sight)
            .map(Template::Expression)
    }
}
