//! Functions of the types `asyncapi`, `graphql` and `odata`, called over real connections to
//! servers of the tests' own.

// Clippy's leave for tests doesn't reach the helpers of an integration test.
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
