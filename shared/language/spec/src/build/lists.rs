//! Properties that contain either their content or the URI of a document with the content
//! (docs/language.md#decision-62).

use swirl_documents::codes;
use swirl_documents::source::{self, Node};

use crate::resource::{ResourceError, decode};

use super::ctx::{Ctx, did_you_mean};

impl Ctx<'_> {
    /// Reads `node`, or the document that it refers to; findings in that document are shown at `node`. Returns false if
    /// the document could not be fetched or read.
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
        let location = self.location(node);
        let outer = self.origin.replace((uri.to_owned(), location));
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

    /// The form of another runtime, read as a file next to the definition (docs/language.md#decision-96).
    pub fn warn_classpath(&mut self, node: &Node, uri: &str) {
        if let Some(name) = crate::resource::classpath(uri) {
            let name = name.split('#').next().unwrap_or(name);
            let message = format!("'{uri}' is read from the file '{name}' next to the definition");
            self.loose(node, message, format!("write '{name}'"));
        }
    }

    /// The content of a document. One that isn't there may only need its credentials.
    pub fn content(&mut self, uri: &str) -> Result<Vec<u8>, ResourceError> {
        let found = self.resources.fetch(uri, None);
        if found.is_err() {
            let guarded = self.credentials.iter().filter(|(known, _)| known == uri);
            self.guarded.extend(guarded.cloned());
        }
        found
    }

    /// Whether a document on the web that can't be had is only a warning here.
    pub fn may_lack(&self, error: &ResourceError) -> bool {
        let is_remote = matches!(
            error,
            ResourceError::Failed { .. } | ResourceError::Scheme { .. }
        );
        is_remote && self.options.may_lack_documents
    }

    /// The text at a URI. `None` after a finding.
    pub fn fetch_text(&mut self, node: &Node, uri: &str) -> Option<String> {
        self.warn_classpath(node, uri);
        let bytes = match self.content(uri) {
            Ok(bytes) => bytes,
            Err(error) if self.may_lack(&error) => {
                self.warn(node, codes::RESOURCE_NOT_FOUND, error.to_string(), None);
                return Some(String::new());
            }
            Err(error) => {
                let hint =
                    "a definition is deployed with everything that it refers to: check the URI"
                        .to_owned();
                self.error(node, codes::RESOURCE_NOT_FOUND, error.to_string(), hint);
                return None;
            }
        };
        if !self.resources_used.iter().any(|(known, _)| known == uri) {
            self.resources_used.push((uri.to_owned(), bytes.clone()));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(_) => {
                let message = format!("'{uri}' is not valid UTF-8 text");
                self.error(node, codes::BAD_RESOURCE, message, None);
                None
            }
        }
    }

    /// The content at a URI: a document, or the part of it that a fragment denotes. `None` after a finding.
    pub fn fetch(&mut self, node: &Node, uri: &str) -> Option<Node> {
        let (document, pointer) = self.fetch_document(node, uri)?;
        document.at(&pointer).cloned()
    }

    /// The parsed document at a URI, and its fragment as a JSON pointer to an existing part. `None` after a finding.
    pub fn fetch_document(&mut self, node: &Node, uri: &str) -> Option<(Node, String)> {
        self.warn_classpath(node, uri);
        let hint = "a definition is deployed with everything that it refers to: check the URI";
        self.document(node, uri, hint.to_owned(), false)?
    }

    /// The same without a warning of the form of the URI. `hint`: for one that isn't there. `Some(None)`: it is on the web,
    /// and a document that is missing there is only worth a note (`may_lack`).
    #[allow(clippy::option_option)]
    pub fn document(
        &mut self,
        node: &Node,
        uri: &str,
        hint: String,
        may_lack: bool,
    ) -> Option<Option<(Node, String)>> {
        let (address, fragment) = uri.split_once('#').unwrap_or((uri, ""));
        let found = match self.content(address) {
            // The caller may have provided just this part.
            Err(ResourceError::NotFound { .. }) if !fragment.is_empty() => {
                let part = self.content(uri);
                part.map(|bytes| (uri, bytes, Some(String::new())))
            }
            found => found.map(|bytes| (address, bytes, decode(fragment))),
        };
        let (address, bytes, pointer) = match found {
            Ok(found) => found,
            Err(error) if may_lack && self.may_lack(&error) => {
                self.note(node, codes::RESOURCE_NOT_FOUND, error.to_string());
                return Some(None);
            }
            Err(error) => {
                self.error(node, codes::RESOURCE_NOT_FOUND, error.to_string(), hint);
                return None;
            }
        };
        if !self
            .resources_used
            .iter()
            .any(|(known, _)| known == address)
        {
            self.resources_used
                .push((address.to_owned(), bytes.clone()));
        }
        // Nothing of the document is quoted from here on: it may be a file or service that this process can read but
        // the deploying client can't.
        let document = match source::parse(&bytes, &self.options.limits) {
            Ok(document) => document,
            Err(diagnostic) => {
                let message = format!(
                    "'{address}' is not valid JSON or YAML: {} (line {}, column {})",
                    diagnostic.code, diagnostic.line, diagnostic.column
                );
                self.error(node, codes::BAD_RESOURCE, message, None);
                return None;
            }
        };
        let pointer = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let Some(pointer) = pointer else {
            let message = format!("'#{fragment}' is not a JSON pointer into '{address}'");
            let hint = "write the path to the part, such as '#/definitions/order'".to_owned();
            self.error(node, codes::BAD_RESOURCE, message, hint);
            return None;
        };
        if document.at(&pointer).is_none() {
            let message = format!("'{address}' has nothing at '{pointer}'");
            let hint = "check the path behind the '#'".to_owned();
            self.error(node, codes::RESOURCE_NOT_FOUND, message, hint);
            return None;
        }
        Some(Some((document, pointer)))
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
