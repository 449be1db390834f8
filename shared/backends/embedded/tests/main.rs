//! The tests of the embedded store.

#![allow(clippy::unwrap_used, reason = "tests")]

mod contract;
mod crash;
mod ends;
mod limits;
mod restart;
