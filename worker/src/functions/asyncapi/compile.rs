//! From a document's operation to all that a call needs.

use reqwest::Method;
use serde_json::Value;
use swirl_model::Data;

use super::address::Address;
use super::document::{Document, Found, Version};
use super::message::Message;
use super::server::{self, Protocol, Server};
use crate::functions::rest::Node;

/// A message to be sent, but for its arguments.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) id: String,
    pub(super) server: Server,
    pub(super) address: Address,
    /// The first that fits is sent.
    pub(super) messages: Vec<Message>,
    pub(super) method: Method,
    pub(super) qos: u8,
    pub(super) retain: bool,
    /// Whether the service's reply is the result.
    pub(super) reply: bool,
}

pub(super) fn sending(document: &Document, id: &str, metadata: &Data) -> Result<Sending, String> {
    let found = document.find(id)?;
    let metadata = Value::from(metadata);
    let server = server::choose(document, &found.channel, metadata.get("server"))?;
    let mut sending = Sending {
        id: id.to_owned(),
        address: Address::compile(document, found.address, &found.channel)?,
        messages: messages(document, &found)?,
        method: Method::POST,
        qos: 1,
        retain: false,
        reply: false,
        server,
    };
    bindings(document, &found.operation, &mut sending)?;
    if document.member(&found.operation, "reply")?.is_some() {
        sending.reply = match sending.server.protocol {
            Protocol::Http => false,
            Protocol::Nats { .. } => true,
            Protocol::Mqtt { .. } => {
                return Err(format!(
                    "{}: a `reply` is waited for over NATS and HTTP only",
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
            // What a reference ends in is a name too.
            let referred = node.text("$ref").and_then(|to| to.rsplit('/').next());
            let name = Some(name).filter(|name| !name.is_empty()).or(referred);
            let node = document.resolve(node.clone())?;
            Message::compile(document, name.unwrap_or(&node.at), &node)
        })
        .collect()
}

fn bindings(
    document: &Document,
    operation: &Node<'_>,
    sending: &mut Sending,
) -> Result<(), String> {
    let Some(bindings) = document.trait_member(operation, "bindings")? else {
        return Ok(());
    };
    match sending.server.protocol {
        Protocol::Http => {
            let Some(http) = document.member(&bindings, "http")? else {
                return Ok(());
            };
            if http.get("query").is_some() {
                return Err(format!(
                    "{}: `query` of the HTTP binding isn't carried out; describe the operation in \
                     OpenAPI and use a function of type `rest`",
                    http.at
                ));
            }
            if let Some(method) = http.text("method") {
                sending.method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())
                    .map_err(|_| format!("{}: `{method}` is no HTTP method", http.at))?;
            }
        }
        Protocol::Mqtt { .. } => {
            let Some(mqtt) = document.member(&bindings, "mqtt")? else {
                return Ok(());
            };
            if let Some(qos) = mqtt.get("qos") {
                let found = qos.value.as_u64().filter(|qos| *qos <= 2);
                let found = found.ok_or_else(|| format!("{}: it is 0, 1 or 2", qos.at))?;
                sending.qos = found as u8;
            }
            sending.retain = mqtt.flag("retain").unwrap_or(false);
        }
        Protocol::Nats { .. } => {}
    }
    Ok(())
}
