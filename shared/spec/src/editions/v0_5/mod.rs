//! Edition 0.5 (November 2020): JSONPath in `{{ }}`, `start` and `end` in states, retries of whole states.
//!
//! The definitions that it shares with 0.8 are rewritten (`rules`) and read by the reader of 0.8. States differ
//! throughout, so they have readers here.

mod action;
mod error;
mod filter;
mod next;
mod rules;
mod start;
mod state;
mod states;
mod workflow;

pub(super) use rules::RULES;
pub(super) use workflow::read;

use crate::build::dialect::Dialect;

/// With the words of this edition for rewritten parts.
pub(super) const DIALECT: Dialect = Dialect {
    own_names: rules::OWN_NAMES,
    ..Dialect::JSONPATH
};

pub(super) fn properties() -> Vec<&'static str> {
    workflow::PROPERTIES.to_vec()
}
