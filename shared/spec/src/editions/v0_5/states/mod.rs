//! The kinds of states, with one file each.

mod callback;
mod delay;
mod event;
mod foreach;
mod inject;
mod operation;
mod parallel;
mod subflow;
mod switch;

use swirl_model::workflow::StateKind;

use crate::build::ctx::{Ctx, Obj};

/// The reader for a kind of state.
pub(super) struct StateReader {
    pub word: &'static str,
    /// Its own properties, in addition to those of all states.
    pub properties: &'static [&'static str],
    /// It has a `transition` or `end` of its own.
    pub has_next: bool,
    /// The last argument: the workflow begins with this state.
    pub read: fn(&mut Ctx<'_>, Obj<'_>, bool) -> Option<StateKind>,
}

/// By name.
pub(super) const KINDS: [StateReader; 9] = [
    callback::KIND,
    delay::KIND,
    event::KIND,
    foreach::KIND,
    inject::KIND,
    operation::KIND,
    parallel::KIND,
    subflow::KIND,
    switch::KIND,
];
