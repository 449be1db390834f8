//! Functions of the types `asyncapi`, `graphql` and `odata`, called over real connections to servers that the tests
//! run.

// Clippy's exceptions for tests don't cover helper functions of integration tests.
#![allow(clippy::unwrap_used)]

mod amqp;
mod asyncapi;
mod fixture;
mod graphql;
mod inline;
mod kafka;
mod kafka_sasl;
mod listen;
mod nats;
mod odata;
mod tls;
mod ws;
