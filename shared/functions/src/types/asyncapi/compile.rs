//! Compiles an operation of a document to everything that a call needs.

use serde_json::Value;
use swirl_model::Data;

use super::address::Address;
use super::bindings::Bindings;
use super::document::{Document, Found, Side, Version};
use super::message::Message;
use super::server::{self, Protocol, Server};
use crate::types::rest::Node;

/// An operation without its arguments.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) id: String,
    pub(super) side: Side,
    pub(super) server: Server,
    pub(super) address: Address,
    /// The first that fits is the one that is sent, or that was received.
    pub(super) messages: Vec<Message>,
    pub(super) bindings: Bindings,
    /// Whether the result is the service's reply.
    pub(super) reply: bool,
}

/// The key in a function's `metadata` that overrides the operation's direction in the document.
const SIDE: &str = "action";

pub(super) fn sending(document: &Document, id: &str, metadata: &Data) -> Result<Sending, String> {
    let found = document.find(id)?;
    let metadata = Value::from(metadata);
    let side = match metadata.get(SIDE) {
        None | Some(Value::Null) => found.side,
        Some(Value::String(word)) if word == "publish" => Side::Publish,
        Some(Value::String(word)) if word == "subscribe" => Side::Subscribe,
        Some(_) => return Err(format!("`metadata.{SIDE}` is `publish` or `subscribe`")),
    };
    let server = server::choose(document, &found.channel, metadata.get("server"))?;
    if side == Side::Subscribe && server.protocol == Protocol::Http {
        return Err(format!(
            "`{id}` is an operation that the service sends messages by, and over HTTP nothing can \
             wait for one; name an operation that it takes messages by, or wait for an event"
        ));
    }
    let mut sending = Sending {
        id: id.to_owned(),
        side,
        address: Address::compile(document, found.address, &found.channel)?,
        messages: messages(document, &found)?,
        bindings: Bindings::read(document, &found, server.protocol)?,
        reply: false,
        server,
    };
    if side == Side::Publish && document.member(&found.operation, "reply")?.is_some() {
        sending.reply = match sending.server.protocol {
            Protocol::Http => false,
            Protocol::Nats { .. } | Protocol::Ws => true,
            Protocol::Amqp { .. }
            | Protocol::Kafka { .. }
            | Protocol::Mqtt { .. }
            | Protocol::Redis { .. } => {
                return Err(format!(
                    "{}: a `reply` is waited for over NATS, HTTP and WebSocket only",
                    found.operation.at
                ));
            }
        };
    }
    Ok(sending)
}

fn messages(document: &Document, found: &Found<'_>) -> Result<Vec<Message>, String> {
    let mut nodes: Vec<(&str, Node<'_>)> = Vec::new();
    match document.version {
        Version::V2 => {
            if let Some(message) = document.trait_member(&found.operation, "message")? {
                match message.get("oneOf") {
                    Some(all) => nodes.extend(all.items().into_iter().map(|one| ("", one))),
                    None => nodes.push(("", message)),
                }
            }
        }
        Version::V3 => {
            let own = found.operation.get("messages").map(|all| all.items());
            match own.filter(|own| !own.is_empty()) {
                Some(own) => nodes.extend(own.into_iter().map(|one| ("", one))),
                None => {
                    let all = document.member(&found.channel, "messages")?;
                    nodes.extend(all.map(|all| all.members()).unwrap_or_default());
                }
            }
        }
    }
    if nodes.is_empty() {
        return Ok(vec![Message::any(document)?]);
    }
    nodes
        .into_iter()
        .map(|(name, node)| {
            // The last part of a reference can also serve as a name.
            let referred = node.text("$ref").and_then(|to| to.rsplit('/').next());
            let name = Some(name).filter(|name| !name.is_empty()).or(referred);
            let node = document.resolve(node.clone())?;
            Message::compile(document, name.unwrap_or(&node.at), &node)
        })
        .collect()
}
