//! The tests of the readers.

#![allow(clippy::unwrap_used, reason = "tests")]

mod conformance;
mod drafts;
mod examples;
mod fragments;
mod spring_2020;
mod text;
mod text_later;
mod wrong;
