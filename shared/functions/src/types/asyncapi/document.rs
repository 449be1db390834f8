//! Reads an AsyncAPI document, and finds an operation in it.
//!
//! References to other documents can be followed after those are [included](super::bundle).

use serde_json::Value;

use super::bundle::{Refused, bundle};
use crate::problem::{FaultyPart, Unusable};
use crate::types::rest::{DOCUMENT_BYTES_MAX, Error, Node, hint, read, shown_version};

/// The maximum length of a chain of references.
const REF_HOPS_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V2,
    V3,
}

#[derive(Clone)]
pub(super) struct Document {
    pub(super) root: Value,
    pub(super) version: Version,
}

/// An operation and its location.
pub(super) struct FoundOperation<'a> {
    pub(super) operation: Node<'a>,
    pub(super) channel: Node<'a>,
    /// With placeholders `{parameter}`.
    pub(super) address: &'a str,
    /// As the document states it: `publish` for messages that the service receives, `subscribe` for messages that it
    /// sends.
    pub(super) side: Side,
}

/// The direction of an operation, seen from the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// It sends a message.
    Publish,
    /// It waits for one.
    Subscribe,
}

impl Document {
    pub(super) fn parse(content: &str) -> Result<Document, String> {
        if content.len() > DOCUMENT_BYTES_MAX {
            return Err(format!(
                "the document is larger than {DOCUMENT_BYTES_MAX} bytes"
            ));
        }
        let root = read(content.as_bytes()).map_err(|error| match error {
            Error::Syntax { at } => {
                format!("the AsyncAPI document is neither JSON nor YAML{at}")
            }
            other => other.to_string(),
        })?;
        let version = match root.get("asyncapi") {
            Some(Value::String(version)) => version.clone(),
            Some(Value::Number(version)) => version.to_string(),
            _ => return Err("not an AsyncAPI document: it has no `asyncapi` at the top".to_owned()),
        };
        let version = match version.split('.').next() {
            Some("2") => Version::V2,
            Some("3") => Version::V3,
            _ => {
                return Err(format!(
                    "AsyncAPI {} is not supported; use 2.x or 3.x",
                    shown_version(&version)
                ));
            }
        };
        Ok(Document { root, version })
    }

    /// The document, including all documents that the operation with this id refers to.
    ///
    /// # Errors
    /// [`Refused`]: a document is missing or cannot be read.
    pub(super) fn whole<'a>(
        &self,
        uri: &str,
        id: &str,
        get: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Document, Refused> {
        let mut whole = self.clone();
        let of_id = match self.version {
            // The operation is searched in all channels.
            Version::V2 => "/channels".to_owned(),
            Version::V3 => format!("/operations/{}", id.replace('~', "~0").replace('/', "~1")),
        };
        let begin = ["/servers".to_owned(), of_id];
        bundle(&mut whole.root, uri, &begin, get)?;
        Ok(whole)
    }

    pub(super) fn root(&self) -> Node<'_> {
        Node {
            value: &self.root,
            at: "#".to_owned(),
            document: None,
        }
    }

    /// Follows references until the target isn't a reference.
    pub(super) fn resolve<'a>(&'a self, mut node: Node<'a>) -> Result<Node<'a>, String> {
        for _ in 0..REF_HOPS_MAX {
            let Some(reference) = node.text("$ref") else {
                return Ok(node);
            };
            let Some(fragment) = reference.strip_prefix('#') else {
                return Err(format!(
                    "{}: the reference `{reference}` leaves the document where it isn't \
                     followed",
                    node.at
                ));
            };
            let pointer = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
            let value = self.root.pointer(&pointer).ok_or_else(|| {
                format!("{}: the reference `{reference}` points to nothing", node.at)
            })?;
            node = Node {
                value,
                at: format!("#{pointer}"),
                document: None,
            };
        }
        Err(format!("{}: too many references in a row", node.at))
    }

    pub(super) fn member<'a>(
        &'a self,
        of: &Node<'a>,
        key: &str,
    ) -> Result<Option<Node<'a>>, String> {
        of.get(key).map(|node| self.resolve(node)).transpose()
    }

    /// A member of an operation or a message, or of one of its traits.
    pub(super) fn trait_member<'a>(
        &'a self,
        of: &Node<'a>,
        key: &str,
    ) -> Result<Option<Node<'a>>, String> {
        if let Some(own) = self.member(of, key)? {
            return Ok(Some(own));
        }
        let traits = of.get("traits").map(|all| all.items()).unwrap_or_default();
        // Later traits take precedence over earlier ones.
        for one in traits.into_iter().rev() {
            if let Some(found) = self.member(&self.resolve(one)?, key)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The operation with this id.
    ///
    /// # Errors
    /// There is no such operation.
    pub(super) fn find(&self, id: &str) -> Result<FoundOperation<'_>, Unusable> {
        match self.version {
            Version::V2 => self.find_2(id),
            Version::V3 => self.find_3(id),
        }
    }

    fn find_2(&self, id: &str) -> Result<FoundOperation<'_>, Unusable> {
        let mut ids = Vec::new();
        let channels = self.member(&self.root(), "channels")?;
        for (address, channel) in channels.map(|all| all.members()).unwrap_or_default() {
            let channel = self.resolve(channel)?;
            for (word, side) in [("publish", Side::Publish), ("subscribe", Side::Subscribe)] {
                let Some(operation) = self.member(&channel, word)? else {
                    continue;
                };
                let Some(own) = operation.text("operationId") else {
                    continue;
                };
                ids.push(own.to_owned());
                if own != id {
                    continue;
                }
                return Ok(FoundOperation {
                    operation,
                    channel,
                    address,
                    side,
                });
            }
        }
        let reason = format!("there is no operation `{id}`; {}", hint(id, &mut ids));
        Err(Unusable::at(FaultyPart::Operation, reason))
    }

    /// The operation by which messages are sent to a channel, or come from it, as tasks of DSL 1.0 name it.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find_channel(
        &self,
        name: &str,
        side: Side,
    ) -> Result<FoundOperation<'_>, Unusable> {
        let unknown = |reason: String| Unusable::at(FaultyPart::Operation, reason);
        if self.version == Version::V3 {
            return Err(unknown(format!(
                "there is no channel operation `{name}`: a document of AsyncAPI 3 has operations, so name one as \
                 `operation`"
            )));
        }
        let channels = self.member(&self.root(), "channels")?;
        let channels = channels.map(|all| all.members()).unwrap_or_default();
        let Some((address, channel)) = channels.iter().find(|(known, _)| *known == name) else {
            let known = channels.iter().map(|(name, _)| (*name).to_owned());
            let hint = hint(name, &mut known.collect::<Vec<_>>());
            return Err(unknown(format!("there is no channel `{name}`; {hint}")));
        };
        let channel = self.resolve(channel.clone())?;
        let (word, does) = match side {
            Side::Publish => ("publish", "takes"),
            Side::Subscribe => ("subscribe", "gives"),
        };
        let operation = self.member(&channel, word)?;
        let operation = operation.ok_or_else(|| {
            unknown(format!(
                "there is no channel `{name}` that {does} messages: it has no `{word}`"
            ))
        })?;
        Ok(FoundOperation {
            operation,
            channel,
            address,
            side,
        })
    }

    fn find_3(&self, id: &str) -> Result<FoundOperation<'_>, Unusable> {
        let operations = self.member(&self.root(), "operations")?;
        let operations = operations.map(|all| all.members()).unwrap_or_default();
        let Some((_, operation)) = operations.iter().find(|(own, _)| *own == id) else {
            let mut ids: Vec<String> = operations
                .iter()
                .map(|(own, _)| (*own).to_owned())
                .collect();
            let reason = format!("there is no operation `{id}`; {}", hint(id, &mut ids));
            return Err(Unusable::at(FaultyPart::Operation, reason));
        };
        let operation = self.resolve(operation.clone())?;
        let channel = self
            .member(&operation, "channel")?
            .ok_or_else(|| format!("{}: an operation needs a `channel`", operation.at))?;
        let address = channel
            .text("address")
            .ok_or_else(|| format!("{}: the channel has no `address`", channel.at))?;
        let side = match operation.text("action") {
            Some("send") => Side::Subscribe,
            _ => Side::Publish,
        };
        Ok(FoundOperation {
            operation,
            channel,
            address,
            side,
        })
    }
}
