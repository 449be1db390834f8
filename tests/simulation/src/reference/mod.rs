//! A small interpreter of the language, written from its text and its numbered decisions: no
//! queues, no records, no steps. Each construct is a function from data and a time to data and a
//! time; concurrent work is evaluated one after another and joined by the times.
//!
//! It uses the canonical workflow and the expression language, and nothing of the engine. It supports
//! only the features of generated cases: no `keepActive`, no workflow timeout, no operator.

mod actions;
mod data;
mod errors;
mod flow;
mod states;
mod tests;
mod world;

pub use world::{Outcome, World};
