//! `asyncapi` functions: messages to a service that an AsyncAPI document describes.
//!
//! Language 0.8, "Using Functions for Async API Service Invocations". `operation` is `<URI of an AsyncAPI
//! document>#<operation id>`. The document (2.x and 3.x) is read at deployment: a call only fills in the arguments.
//!
//! # What is sent
//!
//! A function sends where the service takes messages: `publish` of AsyncAPI 2, `receive` of
//! AsyncAPI 3. Its arguments are the message's payload. One with the name of a channel's parameter
//! goes there, and stays in the payload only if the payload's schema has a property of that name.
//! `headers` are the message's headers, and `payload` is the whole payload, of any kind, unless the
//! payload's schema has properties of these names. Payload and headers are checked against their
//! schemas.
//!
//! # What is waited for
//!
//! One message, where the service sends them: `subscribe` of AsyncAPI 2, `send` of AsyncAPI 3. The
//! arguments are the channel's parameters.
//!
//! # Where to
//!
//! To the first server of the channel, otherwise of the document, with a supported protocol. The
//! function's `metadata.server` names another one, or gives its URL.
//!
//! # Results
//!
//! Over HTTP the service's answer, as for `rest`; where the operation has a `reply` over NATS or WebSocket, the reply;
//! for a wait, the payload of the message; else null, once the broker has taken the message.

mod address;
mod amqp;
mod arguments;
mod bindings;
mod brokers;
mod bundle;
mod check;
mod compile;
mod document;
mod function;
mod gated;
mod incoming;
mod kafka;
mod kept;
mod message;
mod mqtt;
mod mqtt_wait;
mod nats;
mod outgoing;
mod receive;
mod redis;
mod send;
mod server;
mod ws;

pub(crate) use brokers::{Asking, Brokers};
pub(crate) use function::{TYPE, missing};
