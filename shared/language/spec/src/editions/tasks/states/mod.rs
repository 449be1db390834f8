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

use super::Reader;
use crate::build::ctx::Obj;

/// The reader for a kind of state.
pub(super) struct StateReader {
    pub word: &'static str,
    /// Its own properties, in addition to those of all states.
    pub properties: &'static [&'static str],
    /// It has a `transition` or `end` of its own.
    pub has_next: bool,
    /// May have `retry`.
    pub retries: bool,
    pub read: fn(&mut Reader<'_, '_>, Obj<'_>) -> Done,
}

/// The result of reading a state; `None` after a finding that makes the state unusable.
pub(super) type Done = Option<StateKind>;

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
