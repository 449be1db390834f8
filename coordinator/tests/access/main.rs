//! The API over sockets, as clients see it: with and without tokens, over TLS, until it stops.
#![allow(clippy::unwrap_used, reason = "a test")]

mod audit;
mod batches;
mod bodies;
mod busy;
mod console;
mod crowds;
mod deploying;
mod jwt;
mod occupied;
mod origins;
mod provider;
mod refusals;
mod roles;
mod running;
mod sign_in;
mod stopping;
mod tls;
mod viewers;
mod waiting;
