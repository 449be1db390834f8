//! The API as clients reach it: over sockets, with and without tokens, over TLS, until it stops.
#![allow(clippy::unwrap_used, reason = "a test")]

mod crowds;
mod jwt;
mod provider;
mod refusals;
mod roles;
mod running;
mod stopping;
mod tls;
