//! The tests of calls, with services that they start.

mod custom;
mod ports;
mod rest;
mod rpc;
mod services;
