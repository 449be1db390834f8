//! Edition 0.5 (November 2020): JSONPath in `{{ }}`, `start` and `end` in states, retries of whole states.
//!
//! The definitions that it shares with 0.8 are rewritten (`rules`) and read by the reader of 0.8. States differ
//! throughout, so they have readers here.

mod action;
mod error;
mod filter;
mod next;
pub(super) mod rules;
pub(super) mod shapes;
mod start;
mod state;
mod states;
mod workflow;

pub(super) use rules::RULES;

use crate::build::ctx::Ctx;
use crate::build::dialect::Dialect;
use crate::source::Node;

/// With the words of this edition for rewritten parts.
pub(super) const DIALECT: Dialect = Dialect {
    own_names: rules::OWN_NAMES,
    ..Dialect::JSONPATH
};

pub(super) fn properties() -> Vec<&'static str> {
    workflow::PROPERTIES.to_vec()
}

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    let mut root = root.clone();
    ctx.rewrite(&mut root, rules::RULES);
    workflow::read(ctx, &root);
}
