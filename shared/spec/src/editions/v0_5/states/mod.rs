//! One file a state kind.

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

/// How a kind of state is read.
pub(super) struct StateReader {
    pub word: &'static str,
    /// Its own properties, besides those that all states have.
    pub properties: &'static [&'static str],
    /// Has its own `transition` or `end`.
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
