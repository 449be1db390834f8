//! A small interpreter of the language, written from its specification and the numbered decisions: no queues, no
//! records, no steps. Each construct is a function from data and a time to data and a time. Concurrent work is
//! evaluated sequentially and joined by the times.
//!
//! It uses the canonical workflow and the expression language, but nothing of the engine. It supports only the features
//! of generated cases: no `keepActive`, no workflow timeout, no operator.

mod actions;
mod data;
mod errors;
mod flow;
mod states;
mod tests;
mod world;

pub use world::{Outcome, World};
