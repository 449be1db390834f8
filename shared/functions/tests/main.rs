//! The tests of calls, with services that they start.

#![allow(clippy::unwrap_used, reason = "tests")]

mod custom;
mod ports;
mod rest;
mod rpc;
mod services;
