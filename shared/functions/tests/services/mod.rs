//! Functions of the types `a2a`, `asyncapi`, `graphql`, `http-call`, `mcp` and `odata`, called over real connections to servers that the tests
//! run.

// Clippy's exceptions for tests don't cover helper functions of integration tests.

mod agents;
mod amqp;
mod asyncapi;
mod credentials;
mod fixture;
mod graphql;
mod inline;
mod kafka;
mod kafka_sasl;
mod listen;
mod nats;
mod odata;
mod servers;
mod silent;
mod sse;
mod subscribe;
mod tls;
mod ws;
