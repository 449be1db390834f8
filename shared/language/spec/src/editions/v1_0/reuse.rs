//! `use` (DSL 1.0, "Use").

use swirl_documents::codes;
use swirl_documents::source::Node;

use super::value::DEFINITION;
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
            let found = found.clone();
            // Findings in another document are at the call, so the definition's own place is still to be looked at.
            if self.origin.is_none() {
                self.used.insert(found.pointer().to_owned());
            }
            return Some(found);
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

    /// Finds the mistakes in definitions that nothing refers to. They may be meant for any place of the document, so
    /// they see all its variables.
    pub fn check_reuse(&mut self) {
        let common = ["error", "index", "item"].map(Into::into);
        let all = self.variables.iter().cloned().chain(common).collect();
        let outside = std::mem::replace(&mut self.params, all);
        let (errors, retries) = (
            self.unused(|all| &all.errors),
            self.unused(|all| &all.retries),
        );
        for (_, node) in errors {
            self.error_definition(&node);
        }
        let visible = self.params.len();
        for (_, node) in retries {
            self.retry_policy(&node, visible);
        }
        for (_, node) in self.reuse.timeouts.clone() {
            if node.as_str().is_some() {
                self.wrong_type(&node, "'timeout'", "an object");
            }
        }
        for (_, node) in self.unused(|all| &all.timeouts) {
            if node.as_str().is_none() {
                self.timeout_of(&node, DEFINITION);
            }
        }
        for (name, node) in self.unused(|all| &all.authentications) {
            self.auth_definition(&name, &node);
        }
        self.params = outside;
    }

    fn unused(&self, table: fn(&Reuse) -> &Vec<(String, Node)>) -> Vec<(String, Node)> {
        let all = table(&self.reuse).iter();
        let unused = all.filter(|(_, node)| !self.used.contains(node.pointer()));
        unused.cloned().collect()
    }
}
