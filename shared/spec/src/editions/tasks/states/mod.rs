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

use super::Reader;
use crate::build::ctx::Obj;

/// How a kind of state is read.
pub(super) struct StateReader {
    pub word: &'static str,
    /// Its own properties, besides those that all states have.
    pub properties: &'static [&'static str],
    /// Has its own `transition` or `end`.
    pub has_next: bool,
    /// May have `retry`.
    pub retries: bool,
    pub read: fn(&mut Reader<'_, '_>, Obj<'_>) -> Done,
}

/// The result of the reader of a kind; `None` after a finding that makes the state unusable.
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
