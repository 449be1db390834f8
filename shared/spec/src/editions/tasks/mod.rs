//! The draft with `tasks` (May 2020), and the parts that the release of 0.1 (April 2020) shares with it.
//!
//! The two differ in a few names, in the form of a switch's conditions and in how a parallel state is joined:
//! [`variant::Variant`] says which is read. Names of the other one are read with a warning, as definitions of that
//! spring mix both.

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

use swirl_model::workflow::Language;

use crate::build::ctx::Ctx;
use crate::source::Node;

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    read_as(ctx, &TASKS, root);
}

pub(super) fn properties() -> Vec<&'static str> {
    properties_of(&TASKS)
}

/// Those of the text, and the other text's name for the list of states.
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
    /// The language of expressions that name none.
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
