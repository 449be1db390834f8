//! The draft with `tasks` (May 2020), and the parts that it shares with the release of 0.1 (April 2020).
//!
//! The two differ in a few names, in the form of switch conditions, and in how a parallel state is joined:
//! [`variant::Variant`] determines which is read. Names of the other text are accepted with a warning, because
//! definitions from that spring mix both.

mod action;
mod event;
mod expression;
mod filter;
mod flow;
mod function;
mod interval;
mod recovery;
mod state;
mod states;
#[cfg(test)]
mod testing;
mod transition;
mod value;
pub(super) mod variant;
mod workflow;

use std::ops::{Deref, DerefMut};

use variant::{TASKS, Variant};

use swirl_documents::source::Node;
use swirl_model::workflow::Language;

use crate::build::ctx::Ctx;

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    read_as(ctx, &TASKS, root);
}

pub(super) fn properties() -> Vec<&'static str> {
    properties_of(&TASKS)
}

/// The properties of the text, and the other text's name for the list of states.
pub(super) fn properties_of(variant: &'static Variant) -> Vec<&'static str> {
    let (states, other) = variant.states;
    [workflow::PROPERTIES, &[states, other]].concat()
}

pub(super) fn read_as(ctx: &mut Ctx<'_>, variant: &'static Variant, root: &Node) {
    let mut reader = Reader {
        ctx,
        variant,
        conditions: expression::DEFAULT,
        has_action_timeout: false,
    };
    reader.workflow(root);
}

/// The context, and which of the two texts the document follows.
struct Reader<'c, 'a> {
    ctx: &'c mut Ctx<'a>,
    variant: &'static Variant,
    /// The language of expressions that don't state one.
    conditions: Language,
    /// An action of the state being read has a timeout.
    has_action_timeout: bool,
}

impl<'a> Deref for Reader<'_, 'a> {
    type Target = Ctx<'a>;

    fn deref(&self) -> &Ctx<'a> {
        self.ctx
    }
}

impl<'a> DerefMut for Reader<'_, 'a> {
    fn deref_mut(&mut self) -> &mut Ctx<'a> {
        self.ctx
    }
}
