//! Converts a document's tree to a [`Scenario`](super::Scenario), and finds all problems at once.

mod expected;
mod parts;
mod reader;
mod top;

pub(super) use top::scenario;
