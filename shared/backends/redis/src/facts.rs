//! The facts about a plan that `lua/write.lua` gets as one argument.

use std::borrow::Cow;

use serde::Serialize;

use crate::attributes::{self, IndexChange};
use crate::creation::CreationFacts;
use crate::inbox::Stored;
use crate::timers::TimerChange;
use crate::waits::WaitChange;

/// `lua/write.lua` documents the fields.
#[derive(Debug, Serialize, PartialEq)]
pub(crate) struct Facts<'a> {
    pub fields: usize,
    pub compared: usize,
    pub lines: usize,
    pub elements: usize,
    pub keep: u64,
    pub words: usize,
    pub gone: usize,
    pub leaves: Option<String>,
    pub more: Option<More<'a>>,
    /// The instance, the time if its history is followed and got entries, and when the first recorded data expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noted: Option<(&'a str, Option<i64>, Option<i64>)>,
}

impl Facts<'_> {
    /// Whether `lua/write_others.lua` is needed.
    pub fn changes_others(&self) -> bool {
        let rare = self.more.as_ref().and_then(|more| more.rare.as_ref());
        rare.is_some_and(|rare| rare.rest.is_some())
    }

    /// The additional indexes whose keys the call needs, each with the field to set to the position of its key.
    pub fn indexes(&mut self) -> impl Iterator<Item = (&'static str, &mut usize)> {
        let places = self.more.as_mut().map(|more| {
            let (timers, effects) = (more.timers.as_mut(), more.effects.as_mut());
            let (index, waits) = (more.index.as_mut(), more.waits.as_mut());
            let rest = more.rare.as_mut().and_then(|rare| rare.rest.as_mut());
            let rest = rest.map(|rest| (&mut rest.timers, &mut rest.dirty));
            let (rest_timers, rest_dirty) = rest.unzip();
            let key = more.creation.as_mut().and_then(|new| new.key.as_mut());
            [
                timers.map(|timers| ("timers", &mut timers.key)),
                effects.map(|(key, _)| ("outbox", key)),
                index.map(|index| (attributes::INDEX, &mut index.key)),
                waits.map(|waits| ("dirty", &mut waits.dirty)),
                rest_timers.map(|key| ("timers", key)),
                rest_dirty.map(|key| ("dirty", key)),
                key.map(|(place, _)| ("keys", place)),
            ]
        });
        places.into_iter().flatten().flatten()
    }

    /// The fields to set to the position of the key of consumed events.
    pub fn consumed(&mut self) -> impl Iterator<Item = &mut usize> {
        let places = self.more.as_mut().map(|more| {
            let waits = more.waits.as_mut().filter(|waits| waits.has_consumed());
            let rest = more.rare.as_mut().and_then(|rare| rare.rest.as_mut());
            [
                waits.map(|waits| &mut waits.consumed),
                rest.map(|rest| &mut rest.consumed),
                more.creation.as_mut().and_then(|new| {
                    let consumed = new.consumed.as_mut();
                    consumed.map(|(place, _)| place)
                }),
            ]
        });
        places.into_iter().flatten().flatten()
    }
}

/// The parts that only some commits need.
#[derive(Debug, Serialize, PartialEq)]
pub(crate) struct More<'a> {
    pub instance: &'a str,
    pub namespace: &'a str,
    pub held: Option<(String, String)>,
    pub taken: Option<(String, u64, String)>,
    pub numbered: bool,
    pub gain: Option<i64>,
    pub room: Option<i64>,
    pub most: usize,
    pub waits: Option<WaitChange>,
    pub stays: Option<String>,
    pub branch: Option<Branch<'a>>,
    pub ends: Option<(&'static str, Option<i64>, Option<usize>)>,
    pub timers: Option<TimerChange<'a>>,
    pub effects: Option<(usize, Vec<String>)>,
    pub index: Option<IndexChange>,
    pub rare: Option<Rare<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation: Option<CreationFacts<'a>>,
}

#[derive(Debug, Serialize, PartialEq)]
pub(crate) struct Branch<'a> {
    pub fork: &'a str,
    pub number: &'a str,
    /// -1 if the branch has a record.
    pub index: i64,
    pub stamp: Cow<'a, str>,
    pub live: i32,
    /// `d` if it is done, `f` if it failed.
    pub result: &'static str,
    pub bytes: usize,
    /// The parent's lease, inbox and consumed ids are read with the rest. If they are needed and weren't, that takes
    /// another command.
    pub reads_parent: bool,
    /// `None` if it has ended.
    pub parent: Option<&'a str>,
    /// The fork is closed, and stays so.
    pub is_closed: bool,
}

/// Inputs for the scope itself: the items of its inbox, ids and inputs, the scope.
pub(crate) type OwnInputs<'a> = (Vec<Stored<'a>>, Vec<(String, String)>, &'a str);

/// An input for another scope: scope, id, kind, input.
pub(crate) type Put = (String, String, &'static str, String);

#[derive(Debug, Serialize, PartialEq)]
pub(crate) struct Rare<'a> {
    /// The number of forks around the scope's fork that must be open.
    pub around: usize,
    pub stands_still: bool,
    pub own_inputs: Option<OwnInputs<'a>>,
    pub puts: Option<Vec<Put>>,
    pub rest: Option<Rest<'a>>,
}

impl Rare<'_> {
    pub fn is_empty(&self) -> bool {
        self.around == 0
            && !self.stands_still
            && self.own_inputs.is_none()
            && self.puts.is_none()
            && self.rest.is_none()
    }
}

/// The changes of other scopes. `lua/write_others.lua` documents the fields.
#[derive(Debug, Default, Serialize, PartialEq)]
pub(crate) struct Rest<'a> {
    pub timers: usize,
    pub dirty: usize,
    pub consumed: usize,
    pub scope: &'a str,
    pub closes: Vec<String>,
    pub is_over: bool,
    pub refreshes: bool,
    pub prunes: Option<&'a str>,
}
