//! Arguments against the messages of a document.

use super::compile::Sending;
use super::document::Document;
use super::function::filled;
use crate::functions::Known;
use crate::functions::fits::{Fits, Form, Resolve, nearest};
use crate::functions::rest::Node;

impl Resolve for Document {
    fn follow<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        self.resolve(node).ok()
    }
}

/// What a call would be refused for before anything is sent.
pub(super) fn arguments(document: &Document, sending: &Sending, arguments: &Known) -> Vec<String> {
    let members = match arguments {
        Known::Unknown => return Vec::new(),
        Known::Null => &[][..],
        Known::Object(members) => members,
        other => {
            let kind = other.kind();
            return vec![format!("the arguments must be an object, and are {kind}")];
        }
    };
    let given = |name: &str| members.iter().any(|(known, _)| known == name);
    let mut found: Vec<String> = sending
        .address
        .needed()
        .filter(|name| !given(name))
        .map(|name| {
            let strays = members.iter().map(|(name, _)| name.as_str());
            let hint = match nearest(name, strays.filter(|stray| !has_place(sending, stray))) {
                Some(stray) => format!("; is `{stray}` meant to be it?"),
                None => String::new(),
            };
            format!("the parameter `{name}` of the channel is missing{hint}")
        })
        .collect();
    let in_payload = |name: &str| {
        let mut messages = sending.messages.iter();
        messages.any(|message| message.has_property(name))
    };
    let payload = match arguments.get("payload").filter(|_| !in_payload("payload")) {
        Some(payload) => payload.clone(),
        None => {
            let is_parameter = |name: &str| {
                let mut parameters = sending.address.parameters();
                parameters.any(|(known, is_located)| known == name && !is_located)
            };
            let own = members
                .iter()
                .filter(|(name, _)| in_payload(name) || (name != "headers" && !is_parameter(name)));
            Known::Object(own.cloned().collect())
        }
    };
    let mut first: Option<Vec<String>> = None;
    for message in &sending.messages {
        let at = message.payload_at.as_deref();
        let Some(schema) = at.and_then(|at| document.root.pointer(at)) else {
            first = Some(Vec::new());
            break;
        };
        let node = Node {
            value: schema,
            at: "#".to_owned(),
            document: None,
        };
        // One without a name is called by its place.
        let what = match message.name.starts_with('#') {
            true => "the payload".to_owned(),
            false => format!("the payload of `{}`", message.name),
        };
        let problems = Fits::new(document, Form::Sent).check(node, &payload, &what);
        if problems.is_empty() {
            first = Some(problems);
            break;
        }
        first.get_or_insert(problems);
    }
    found.extend(first.unwrap_or_default());
    // All of it is known: the call's own reading says the rest.
    if let (Some(whole), true) = (arguments.whole(), found.is_empty()) {
        found.extend(filled(sending, whole).err());
    }
    found
}

/// Whether an argument of this name means something.
fn has_place(sending: &Sending, name: &str) -> bool {
    let mut messages = sending.messages.iter();
    let mut parameters = sending.address.parameters();
    matches!(name, "payload" | "headers")
        || messages.any(|message| message.has_property(name))
        || parameters.any(|(known, _)| known == name)
}
