//! Maps a call's arguments to its operation.

use serde_json::{Map, Value};

use super::compile::Sending;
use super::message::{Message, Parts};

/// The address at which a message is awaited.
pub(super) fn awaited(sending: &Sending, arguments: Value) -> Result<String, String> {
    let arguments = match arguments {
        Value::Null => Map::new(),
        Value::Object(members) => members,
        _ => return Err("the arguments must be an object".to_owned()),
    };
    for name in arguments.keys() {
        if !sending.address.parameters().any(|(known, _)| known == name) {
            return Err(no_place(sending, name));
        }
    }
    let protocol = sending.server.protocol;
    sending.address.fill(&arguments, &Value::Null, protocol)
}

pub(super) fn no_place(sending: &Sending, name: &str) -> String {
    format!(
        "the argument `{name}` isn't used: `{}` waits for a message and sends nothing; its \
         arguments are the parameters of the channel",
        sending.id
    )
}

/// The parts of a message, the message that they fit, and the address.
pub(super) fn filled(
    sending: &Sending,
    arguments: Value,
) -> Result<(Parts, &Message, String), String> {
    let parts = match sending.of_task {
        true => Parts::of_task(arguments)?,
        false => Parts::of(arguments, &sending.messages, sending.address.parameters())?,
    };
    let mut refused = None;
    let fits = sending.messages.iter().find(|message| {
        let result = message.check(&parts.payload, &parts.headers);
        let fits = result.is_ok();
        refused = refused.take().or(result.err());
        fits
    });
    let message = fits.ok_or_else(|| {
        let reason = refused.unwrap_or_default();
        match sending.messages.len() {
            1 => reason,
            many => format!("none of the {many} messages fits; the first: {reason}"),
        }
    })?;
    let protocol = sending.server.protocol;
    let address = sending
        .address
        .fill(&parts.parameters, &parts.payload, protocol)?;
    Ok((parts, message, address))
}
