//! Checks arguments against the messages of a document.

use super::arguments::{awaited, filled, no_place};
use super::compile::Sending;
use super::document::{Document, Side};
use crate::types::fits::{self, Fits, Form, Resolve, ValueLocation, nearest};
use crate::types::misfit::{below, messages};
use crate::types::rest::Node;
use crate::types::{Misfit, StaticValue};

impl Resolve for Document {
    fn follow<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        self.resolve(node).ok()
    }
}

/// The reasons why a call would be refused before anything is sent.
pub(super) fn arguments(
    document: &Document,
    sending: &Sending,
    arguments: &StaticValue,
) -> Vec<Misfit> {
    let members = match arguments {
        StaticValue::Unknown => return Vec::new(),
        StaticValue::Null => &[][..],
        StaticValue::Object(members) => members,
        other => {
            let kind = other.kind();
            let message = format!("the arguments must be an object, but are {kind}");
            return vec![message.into()];
        }
    };
    let given = |name: &str| members.iter().any(|(known, _)| known == name);
    let mut found: Vec<Misfit> = sending
        .address
        .needed(sending.side)
        .filter(|name| !given(name))
        .map(|name| {
            let strays = members.iter().map(|(name, _)| name.as_str());
            let stray = nearest(name, strays.filter(|stray| !has_place(sending, stray)));
            let what = format!("the parameter `{name}` of the channel");
            fits::missing(&what, name, stray).into()
        })
        .collect();
    if sending.side == Side::Subscribe {
        let strays = members.iter().map(|(name, _)| name).filter(|name| {
            !sending
                .address
                .parameters()
                .any(|(known, _)| known == *name)
        });
        found.extend(strays.map(|name| Misfit::new(&below("", name), no_place(sending, name))));
        if let (Some(whole), true) = (arguments.whole(), found.is_empty()) {
            found.extend(awaited(sending, whole).err().map(Misfit::from));
        }
        return found;
    }
    let in_payload = |name: &str| {
        let mut messages = sending.messages.iter();
        messages.any(|message| message.has_property(name))
    };
    let whole = arguments.get("payload");
    let (payload, at) = match whole.filter(|_| sending.of_task || !in_payload("payload")) {
        None if sending.of_task => return found,
        Some(payload) => (payload.clone(), "/payload"),
        None => {
            let is_parameter = |name: &str| {
                let mut parameters = sending.address.parameters();
                parameters.any(|(known, is_located)| known == name && !is_located)
            };
            let own = members.iter().filter(|(name, _)| {
                in_payload(name) || (!apart(sending, name) && !is_parameter(name))
            });
            (StaticValue::Object(own.cloned().collect()), "")
        }
    };
    found.extend(fits(document, sending, &payload, at, Form::Sent));
    // Everything is known, so the call's own parser checks the rest.
    if let (Some(whole), true) = (arguments.whole(), found.is_empty()) {
        found.extend(filled(sending, whole).err().map(Misfit::from));
    }
    found
}

/// The reason why a received payload isn't a message of the operation.
pub(super) fn message(
    document: &Document,
    sending: &Sending,
    payload: &StaticValue,
) -> Vec<String> {
    messages(fits(document, sending, payload, "", Form::Answered))
}

/// The reason why a payload fits none of the messages. The reason for the first message is used.
fn fits(
    document: &Document,
    sending: &Sending,
    payload: &StaticValue,
    at: &str,
    form: Form,
) -> Vec<Misfit> {
    let mut first: Option<Vec<Misfit>> = None;
    for message in &sending.messages {
        let schema = message.payload_at.as_deref();
        let Some(schema) = schema.and_then(|at| document.root.pointer(at)) else {
            return Vec::new();
        };
        let node = Node {
            value: schema,
            at: "#".to_owned(),
            document: None,
        };
        // A message without a name is identified by its position.
        let what = match message.name.starts_with('#') {
            true => "the payload".to_owned(),
            false => format!("the payload of `{}`", message.name),
        };
        let problems =
            Fits::new(document, form).check(node, payload, ValueLocation::new(at, &what));
        if problems.is_empty() {
            return problems;
        }
        first.get_or_insert(problems);
    }
    first.unwrap_or_default()
}

/// Whether an argument with this name is separate from the payload, which it is unless the payload's schema has such a
/// property.
fn apart(sending: &Sending, name: &str) -> bool {
    let mut messages = sending.messages.iter();
    name == "headers" || name == "key" && messages.any(|message| message.has_key)
}

/// Whether an argument with this name has a meaning.
fn has_place(sending: &Sending, name: &str) -> bool {
    let mut messages = sending.messages.iter();
    let mut parameters = sending.address.parameters();
    name == "payload"
        || apart(sending, name)
        || messages.any(|message| message.has_property(name))
        || parameters.any(|(known, _)| known == name)
}
