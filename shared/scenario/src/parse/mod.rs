//! From a document's tree to a [`Scenario`](super::Scenario). All problems are found at once.

mod expected;
mod parts;
mod reader;
mod top;

pub(super) use top::scenario;
