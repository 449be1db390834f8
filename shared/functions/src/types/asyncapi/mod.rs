//! `asyncapi` functions: messages to a service that an AsyncAPI document describes.
//!
//! Language 0.8, "Using Functions for Async API Service Invocations". `operation` is `<URI of an AsyncAPI
//! document>#<operation id>`. The document (2.x and 3.x) is read at deployment: a call only fills in the arguments.
//!
//! # Sending
//!
//! A function sends where the service receives messages: `publish` in AsyncAPI 2, `receive` in AsyncAPI 3. Its
//! arguments are the message's payload. An argument with the name of a channel parameter sets that parameter, and is
//! part of the payload only if the payload's schema has a property with that name. `headers` sets the message's
//! headers, and `payload` the whole payload of any type, unless the payload's schema has properties with these names.
//! Payload and headers are checked against their schemas.
//!
//! # Waiting for messages
//!
//! A function waits for one message where the service sends messages: `subscribe` in AsyncAPI 2, `send` in AsyncAPI 3.
//! The arguments are the channel's parameters. Over HTTP the messages are server-sent events.
//!
//! # The server
//!
//! The first server of the channel, or else of the document, that has a supported protocol. The function's
//! `metadata.server` can name another one, or give a URL.
//!
//! # Results
//!
//! Over HTTP it is the service's answer, as for `rest`. If the operation has a `reply` over NATS or WebSocket, it is
//! the reply; for a wait, it is the payload of the message. Otherwise it is null, as soon as the broker has accepted
//! the message.

mod address;
mod amqp;
mod arguments;
mod bindings;
mod brokers;
mod buffer;
mod bundle;
mod came;
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
mod open;
mod outgoing;
mod pace;
mod receive;
mod redis;
mod send;
mod server;
mod sse;
mod subscriptions;
mod taking;
mod ws;

pub(crate) use brokers::{Asking, Brokers};
pub(crate) use function::{TYPE, missing};
