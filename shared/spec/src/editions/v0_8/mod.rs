//! Edition 0.8 of the language, with the additions until August 2023.
//!
//! Each kind of definition has a file. Readers report errors and continue; names become indexes, and inherited settings
//! (timeouts, retries) are pushed down to where they apply. Nothing is silently ignored: an unknown property is an
//! error, and one without effect is a warning.

mod action;
mod auth;
mod call;
mod error;
mod event;
mod event_ref;
mod filter;
mod function;
mod identity;
pub(super) mod loose;
pub(super) mod older;
mod start;
mod state;
pub(crate) mod states;
#[cfg(test)]
pub(crate) mod testing;
mod transition;
mod workflow;

pub(crate) use function::{format_of, is_operation_of};
pub(super) use loose::RULES;

use crate::build::ctx::Ctx;
use crate::build::dialect::{Dialect, Parts};
use crate::build::rewrite::Rule;
use crate::source::Node;

pub(super) const DIALECT: Dialect = Dialect {
    parts: Parts {
        earlier_parts: true,
        ..Parts::NONE
    },
    ..Dialect::JQ
};

/// Reads a document of an edition that is a table of differences from this one. Rules first turn its tree into one of
/// 0.8.
pub(super) fn properties() -> Vec<&'static str> {
    workflow::PROPERTIES.to_vec()
}

pub(super) fn read_rewritten(ctx: &mut Ctx<'_>, root: &Node, rules: &'static [Rule]) {
    let mut root = root.clone();
    ctx.rewrite(&mut root, rules);
    ctx.read_workflow(&root);
}

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    read_rewritten(ctx, root, loose::RULES);
}
