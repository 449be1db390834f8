//! The kinds of states, with one file each.

mod callback;
pub(crate) mod event;
mod foreach;
mod inject;
mod operation;
mod parallel;
mod sleep;
mod switch;

use swirl_model::workflow::{Period, StateKind};

use crate::build::ctx::{Ctx, Obj};

/// The reader for a kind of state.
pub(crate) struct StateReader {
    pub word: &'static str,
    /// Its own properties, in addition to those of all states.
    pub properties: &'static [&'static str],
    /// It has a `transition` or `end` of its own.
    pub has_next: bool,
    pub read: fn(&mut Ctx<'_>, Obj<'_>) -> Option<Done>,
}

/// A state's work, and its `stateExecTimeout`.
pub(super) type Done = (StateKind, Option<Period>);

/// By name.
pub(crate) const KINDS: &[StateReader] = &[
    callback::KIND,
    event::KIND,
    foreach::KIND,
    inject::KIND,
    operation::KIND,
    parallel::KIND,
    sleep::KIND,
    switch::KIND,
];
