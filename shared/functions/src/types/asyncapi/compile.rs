//! Compiles an operation of a document to everything that a call needs.

use serde_json::Value;
use swirl_model::Data;
use url::Url;

use super::address::Address;
use super::bindings::Bindings;
use super::document::{Document, FoundOperation, Side, Version};
use super::message::Message;
use super::server::{self, Protocol, Server};
use crate::problem::Unusable;
use crate::servers::Servers;
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
    /// The arguments are those of a task of DSL 1.0: `payload` and `headers`.
    pub(super) of_task: bool,
}

impl Sending {
    /// Whether the broker keeps a message until it is acknowledged.
    pub(super) fn keeps_messages(&self) -> bool {
        let is_amqp = matches!(self.server.protocol, Protocol::Amqp { .. });
        is_amqp && self.bindings.amqp.exchange.is_empty()
    }
}

/// The key in a function's `metadata` that overrides the operation's direction in the document.
const SIDE: &str = "action";

/// The placeholder for a server when nothing is called. A message may go to it and come from it.
const NOWHERE: &str = "nats://server.invalid";

/// `given`: the operator's address; `servers`: other addresses for origins. Also whether nothing says where the service
/// is.
pub(super) fn sending(
    document: &Document,
    id: &str,
    (metadata, of_task): (&Data, bool),
    given: Option<&Url>,
    servers: &Servers,
) -> Result<(Sending, bool), Unusable> {
    let metadata = Value::from(metadata);
    let side = match metadata.get(SIDE) {
        None | Some(Value::Null) => None,
        Some(Value::String(word)) if word == "publish" => Some(Side::Publish),
        Some(Value::String(word)) if word == "subscribe" => Some(Side::Subscribe),
        Some(_) => return Err(format!("`metadata.{SIDE}` is `publish` or `subscribe`").into()),
    };
    let found = match (side, metadata.get("channel").filter(|_| of_task)) {
        (Some(side), Some(_)) => document.find_channel(id, side)?,
        _ => document.find(id)?,
    };
    let side = side.unwrap_or(found.side);
    let chosen = match given {
        Some(given) => Some(server::at(given.as_str(), "functions.servers")?),
        None => {
            let of_task = of_task.then_some(&metadata);
            let wanted = server::Wanted {
                server: metadata.get("server"),
                protocol: of_task.and_then(|own| own.get("protocol")?.as_str()),
                variables: of_task.and_then(|own| own.get("variables")),
            };
            server::choose(document, &found.channel, &wanted)?
        }
    };
    let is_unknown = chosen.is_none();
    let server = match chosen {
        Some(server) => match servers.redirected(&server.url) {
            Some(url) => server::at(url.as_str(), "functions.servers")?,
            None => server,
        },
        None => server::at(NOWHERE, "")?,
    };
    let mut sending = Sending {
        id: id.to_owned(),
        side,
        address: Address::compile(document, found.address, &found.channel)?,
        messages: messages(document, &found)?,
        bindings: Bindings::read(document, &found, server.protocol)?,
        reply: false,
        of_task,
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
                return Err(Unusable::from(format!(
                    "{}: a `reply` is waited for over NATS, HTTP and WebSocket only",
                    found.operation.at
                )));
            }
        };
    }
    Ok((sending, is_unknown))
}

fn messages(document: &Document, found: &FoundOperation<'_>) -> Result<Vec<Message>, String> {
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
