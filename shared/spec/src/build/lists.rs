//! Properties that hold their content or the URI of a document that does (decision 62).

use crate::codes;
use crate::source::{self, Node};

use super::ctx::{Ctx, did_you_mean};

impl Ctx<'_> {
    /// Reads `node`, or the document that it names; findings in that one are shown at `node`.
    /// False: the document could not be had or read.
    pub fn inline_or_resource(
        &mut self,
        node: &Node,
        name: &str,
        read: impl FnOnce(&mut Self, &Node),
    ) -> bool {
        let Some(uri) = node.as_str() else {
            read(self, node);
            return true;
        };
        let Some(document) = self.fetch(node, uri) else {
            return false;
        };
        let spot = self.spot(node);
        let outer = self.origin.replace((uri.to_owned(), spot));
        // The list itself, or an object with the property's name.
        let content = match document.members() {
            Some(members) if members.iter().any(|member| member.key() == name) => {
                for member in members.iter().filter(|member| member.key() != name) {
                    let hint = did_you_mean(member.key(), [name])
                        .unwrap_or_else(|| format!("only '{name}' is read from this document"));
                    let message = format!("the document has '{}' next to '{name}'", member.key());
                    self.warn(member.value(), codes::IGNORED_PROPERTY, message, hint);
                }
                document.get(name).cloned()
            }
            _ => Some(document),
        };
        let content = content.map(|mut content| {
            self.leave_out_absent(&mut content);
            self.rewrite_resource(content, name)
        });
        if let Some(content) = content {
            let content = &content;
            if let (Some(_), true) = (content.as_str(), !content.pointer().is_empty()) {
                let message = format!("'{name}' is the URI of yet another document");
                self.error(
                    content,
                    codes::BAD_RESOURCE,
                    message,
                    "put the content itself there".to_owned(),
                );
            } else {
                read(self, content);
            }
        }
        self.origin = outer;
        true
    }

    /// Of another runtime: read as a file next to the definition (decision 96).
    pub fn warn_classpath(&mut self, node: &Node, uri: &str) {
        if let Some(name) = crate::resource::classpath(uri) {
            let name = name.split('#').next().unwrap_or(name);
            let message = format!("'{uri}' is read from the file '{name}' next to the definition");
            self.loose(node, message, format!("write '{name}'"));
        }
    }

    /// The parsed document at a URI; `None` after a finding.
    pub fn fetch(&mut self, node: &Node, uri: &str) -> Option<Node> {
        self.warn_classpath(node, uri);
        let bytes = match self.resources.fetch(uri, None) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.error(
                    node,
                    codes::RESOURCE_NOT_FOUND,
                    error.to_string(),
                    "a definition is deployed with all that it refers to: check the URI".to_owned(),
                );
                return None;
            }
        };
        if !self.resources_used.iter().any(|(known, _)| known == uri) {
            self.resources_used.push((uri.to_owned(), bytes.clone()));
        }
        match source::parse(&bytes, &self.options.limits) {
            Ok(document) => Some(document),
            Err(diagnostic) => {
                // Nothing of it is quoted: it may be a file or a service that this process can read, and the client
                // that deploys can't.
                let message = format!(
                    "'{uri}' is not valid JSON or YAML: {} (line {}, column {})",
                    diagnostic.code, diagnostic.line, diagnostic.column
                );
                self.error(node, codes::BAD_RESOURCE, message, None);
                None
            }
        }
    }

    /// The items of a list that is inline or a resource.
    pub fn each(
        &mut self,
        node: &Node,
        name: &str,
        mut read: impl FnMut(&mut Self, &Node),
    ) -> bool {
        let mut is_list = true;
        let had = self.inline_or_resource(node, name, |ctx, content| {
            match ctx.list(content, &format!("'{name}'")) {
                Some(items) => items.iter().for_each(|item| read(ctx, item)),
                None => is_list = false,
            }
        });
        had && is_list
    }
}
