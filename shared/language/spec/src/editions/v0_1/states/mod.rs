//! The kinds of states, with one file each.

mod delay;
mod end;
mod event;
mod operation;
mod parallel;
mod switch;

use swirl_model::workflow::{Next, StateKind};

use super::Reader;
use super::filter::Filter;
use crate::build::ctx::Obj;

/// The reader for a kind of state.
pub(super) struct StateReader {
    pub word: &'static str,
    /// Its own properties, in addition to those of all states.
    pub properties: &'static [&'static str],
    pub read: fn(&mut Reader<'_, '_>, Obj<'_>, Filter<'_>) -> Option<Read>,
}

/// A state's work, and the way out of it.
pub(super) struct Read {
    pub kind: StateKind,
    pub next: Option<Next>,
    /// The state has used its filter's `inputPath` itself.
    pub takes_input: bool,
}

impl Read {
    fn new(kind: StateKind, next: Option<Next>) -> Read {
        Read {
            kind,
            next,
            takes_input: false,
        }
    }
}

/// By name.
pub(super) const KINDS: [StateReader; 6] = [
    delay::KIND,
    end::KIND,
    event::KIND,
    operation::KIND,
    parallel::KIND,
    switch::KIND,
];
