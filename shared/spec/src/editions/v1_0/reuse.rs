//! `use` (DSL 1.0, "Use").

use swirl_documents::codes;
use swirl_documents::source::Node;

use super::{Reader, Reuse};
use crate::build::ctx::did_you_mean;

const PARTS: &[&str] = &[
    "authentications",
    "catalogs",
    "errors",
    "extensions",
    "functions",
    "retries",
    "secrets",
    "timeouts",
];

impl Reader<'_, '_> {
    pub fn reuse(&mut self, node: &Node) {
        let Some(obj) = self.object(node, "'use'", PARTS) else {
            return;
        };
        self.reuse = Reuse {
            authentications: self.named_parts(obj.get("authentications"), "authentications"),
            catalogs: self.named_parts(obj.get("catalogs"), "catalogs"),
            errors: self.named_parts(obj.get("errors"), "errors"),
            functions: self.named_parts(obj.get("functions"), "functions"),
            retries: self.named_parts(obj.get("retries"), "retries"),
            timeouts: self.named_parts(obj.get("timeouts"), "timeouts"),
        };
        if let Some(node) = obj.get("extensions") {
            self.extension_targets(node);
        }
        let Some(node) = obj.get("secrets") else {
            return;
        };
        for item in self.list(node, "'secrets'").unwrap_or_default() {
            let Some(name) = self.string(item, "a secret's name") else {
                continue;
            };
            match self.workflow.secrets.contains(&name) {
                true => self.duplicate(item, "secret", &name),
                false => self.workflow.secrets.push(name.clone()),
            }
            if let Some(secrets) = &mut self.secrets {
                secrets.insert(name);
            }
        }
    }

    fn named_parts(&mut self, node: Option<&Node>, name: &str) -> Vec<(String, Node)> {
        let Some(node) = node else {
            return Vec::new();
        };
        let Some(members) = node.members() else {
            self.wrong_type(node, &format!("'{name}'"), "an object");
            return Vec::new();
        };
        let parts = members.iter();
        parts
            .map(|member| (member.key().to_owned(), member.value().clone()))
            .collect()
    }

    /// The definition in `use` that a name refers to.
    pub fn named(
        &mut self,
        node: &Node,
        name: &str,
        what: &str,
        table: fn(&Reuse) -> &Vec<(String, Node)>,
    ) -> Option<Node> {
        let all = table(&self.reuse);
        if let Some((_, found)) = all.iter().find(|(known, _)| known == name) {
            return Some(found.clone());
        }
        let plural = match what {
            "retry" => "retries".to_owned(),
            what => format!("{what}s"),
        };
        let hint = did_you_mean(name, all.iter().map(|(known, _)| known.as_str()))
            .unwrap_or_else(|| format!("define '{name}' in 'use.{plural}'"));
        let message = format!("'use.{plural}' has no '{name}'");
        self.error(node, codes::UNKNOWN_REFERENCE, message, hint);
        None
    }

    /// Finds the mistakes in definitions that nothing refers to.
    pub fn check_reuse(&mut self) {
        for (_, node) in self.reuse.errors.clone() {
            self.error_definition(&node);
        }
        for (_, node) in self.reuse.retries.clone() {
            self.retry_policy(&node);
        }
        for (_, node) in self.reuse.timeouts.clone() {
            if node.as_str().is_some() {
                self.wrong_type(&node, "'timeout'", "an object");
            } else {
                self.timeout_of(&node);
            }
        }
        for (name, node) in self.reuse.authentications.clone() {
            self.auth_definition(&name, &node);
        }
    }
}
