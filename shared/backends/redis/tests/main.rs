//! The tests of the store, each with a server of its own.

#![allow(clippy::unwrap_used, reason = "tests")]

mod activity;
mod awaited;
mod contract;
mod event_cost;
mod events;
mod faults;
mod following;
mod fork_bases;
mod format;
mod full;
mod history;
mod join_cost;
mod listing_cost;
mod overdue;
mod plans;
mod processes;
mod retention;
mod wide;
