//! Edition 0.8 of the language, with what was added to it until August 2023.
//!
//! One file a kind of definition. Readers report what is wrong and go on; names become indexes,
//! settings that are inherited (timeouts, retries) are pushed down to where they hold. Nothing is
//! dropped in silence: an unknown property is an error, one without effect a warning.

mod action;
mod auth;
mod call;
mod check;
mod correlation;
mod ctx;
mod error;
mod event;
mod expression;
mod filter;
mod function;
mod graph;
mod identity;
mod lists;
mod names;
mod retry;
mod schema;
mod start;
mod state;
mod states;
mod template;
#[cfg(test)]
mod testing;
mod timeout;
mod transition;
mod workflow;

use crate::edition::Detected;
use crate::reader::{Options, Reading};
use crate::resource::Resources;
use crate::source::Node;

pub(crate) fn read(
    root: &Node,
    detected: Detected,
    resources: &dyn Resources,
    options: &Options,
) -> Reading {
    let mut ctx = ctx::Ctx::new(root.pointer(), resources, options);
    ctx.workflow.edition = detected.edition.word();
    ctx.read_workflow(root);
    let clean = ctx.is_clean();
    Reading {
        workflow: clean.then_some(ctx.workflow),
        edition: Some(detected),
        diagnostics: ctx.diagnostics,
        resources_used: ctx.resources_used,
    }
}
