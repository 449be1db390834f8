//! `swirl dev` as a process, over real HTTP.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test: what fails here fails the test")]

mod api;
mod http;
mod kills;
mod order;
mod process;
