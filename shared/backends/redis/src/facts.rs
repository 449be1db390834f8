//! The facts about a plan that `lua/write.lua` gets besides fields and values. It documents them.

use redis::Cmd;
use serde::Serialize;

use crate::attributes::{self, IndexChange};
use crate::creation::CreationFacts;
use crate::draft::Draft;
use crate::inbox::Stored;
use crate::timers::TimerChange;
use crate::waits::WaitChange;

#[derive(Debug, PartialEq)]
pub(crate) struct Facts<'a> {
    pub lines: usize,
    pub elements: usize,
    /// How many lines of history are kept.
    pub keep: u64,
    /// The scope's member of the index of ready scopes, if it leaves the index.
    pub leaves: Option<String>,
    pub branch: Option<Branch<'a>>,
    pub more: Option<More<'a>>,
}

impl Facts<'_> {
    /// The counts of the words of a call; `ready` are those for the index of ready scopes.
    pub fn counts(&self, draft: &Draft<'_>, ready: usize) -> Vec<u8> {
        let absent = draft.absent();
        let counts = [
            draft.compared.len() - absent,
            absent,
            draft.read.len(),
            self.elements,
            2 * draft.set.len(),
            draft.gone.len(),
            ready,
        ];
        let mut out = Vec::with_capacity(43);
        for count in counts {
            out.extend((count as u32).to_be_bytes());
        }
        let has = [
            self.leaves.is_some(),
            self.branch.is_some(),
            self.more.is_some(),
        ];
        out.extend(has.map(u8::from));
        out.extend((self.lines as u32).to_be_bytes());
        out.extend(self.keep.to_be_bytes());
        out
    }

    /// Whether `lua/write_others.lua` is needed.
    pub fn changes_others(&self) -> bool {
        let more = self.more.as_ref();
        more.is_some_and(|more| more.others.is_some())
    }

    /// The additional indexes whose keys the call needs, each with the field to set to the position of its key.
    pub fn indexes(&mut self) -> impl Iterator<Item = (&'static str, &mut usize)> {
        let places = self.more.as_mut().map(|more| {
            let (timers, effects) = (more.timers.as_mut(), more.effects.as_mut());
            let (index, waits) = (more.attributes.as_mut(), more.waits.as_mut());
            let others = more.others.as_mut();
            let others = others.map(|others| (&mut others.timers, &mut others.dirty));
            let (others_timers, others_dirty) = others.unzip();
            let key = more.creation.as_mut().and_then(|new| new.key.as_mut());
            [
                timers.map(|timers| ("timers", &mut timers.key)),
                effects.map(|(key, _)| ("outbox", key)),
                index.map(|index| (attributes::INDEX, &mut index.key)),
                waits.map(|waits| ("dirty", &mut waits.dirty)),
                others_timers.map(|key| ("timers", key)),
                others_dirty.map(|key| ("dirty", key)),
                key.map(|(place, _)| ("keys", place)),
            ]
        });
        places.into_iter().flatten().flatten()
    }

    /// The fields to set to the position of the key of consumed events.
    pub fn consumed(&mut self) -> impl Iterator<Item = &mut usize> {
        let places = self.more.as_mut().map(|more| {
            let waits = more.waits.as_mut().filter(|waits| waits.has_consumed());
            let others = more.others.as_mut();
            [
                waits.map(|waits| &mut waits.consumed),
                others.map(|others| &mut others.consumed),
                more.creation.as_mut().and_then(|new| {
                    let consumed = new.consumed.as_mut();
                    consumed.map(|(place, _)| place)
                }),
            ]
        });
        places.into_iter().flatten().flatten()
    }
}

/// The change of a fork by one of its branches.
#[derive(Debug, PartialEq)]
pub(crate) struct Branch<'a> {
    pub fork: &'a str,
    /// The position of its numbers among the fields.
    pub place: usize,
    /// The parent's lease and inbox are read with the rest. If they are needed and weren't, that takes another command.
    pub reads_parent: bool,
    /// `None` if the branch has a record.
    pub index: Option<u32>,
    pub live: i32,
    /// When the fork was made, 0 if that isn't known.
    pub stamp: u64,
    /// Whether it is done, or has failed.
    pub result: Option<bool>,
    pub bytes: usize,
    /// `None` if it has ended.
    pub parent: Option<&'a str>,
    /// The fork is closed, and stays so.
    pub is_closed: bool,
}

impl Branch<'_> {
    /// As `DONE` and `FAILED` in `lua/commits.lua`.
    pub fn result_number(&self) -> u8 {
        match self.result {
            None => 0,
            Some(true) => 1,
            Some(false) => 2,
        }
    }

    /// Adds the words about it to a call.
    pub fn write(&self, call: &mut Cmd, instance: &str, millis: &str) {
        let mut out = Vec::with_capacity(36);
        out.extend((self.place as u32).to_be_bytes());
        out.push(u8::from(self.reads_parent));
        let index = self.index.map_or(-1, |index| index as i32);
        out.extend(index.to_be_bytes());
        out.extend(self.live.to_be_bytes());
        out.extend(self.stamp.to_be_bytes());
        out.push(self.result_number());
        out.extend((self.bytes as u64).to_be_bytes());
        let flags = [self.parent.is_some(), self.is_closed];
        out.extend(flags.map(u8::from));
        call.arg(out);
        if let (Some(parent), Some(_)) = (self.parent, self.result) {
            call.arg(parent);
            call.arg(format!("{instance}/{parent}")).arg(millis);
        }
    }
}

/// The facts that only some commits have.
#[derive(Debug, Default, Serialize, PartialEq)]
pub(crate) struct More<'a> {
    pub instance: &'a str,
    pub namespace: &'a str,
    pub most: usize,
    pub stands_still: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<(String, String, usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<(String, u64, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around: Option<(usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outbox_at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watcher_at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stays: Option<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<(&'static str, Option<i64>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timers: Option<TimerChange<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<(usize, Vec<String>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<IndexChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_inputs: Option<OwnInputs<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub puts: Option<Vec<Put>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<Others<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation: Option<CreationFacts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<i64>,
}

impl More<'_> {
    /// Whether it only says which instance it is about.
    pub fn is_empty(&self) -> bool {
        *self
            == More {
                instance: self.instance,
                namespace: self.namespace,
                most: self.most,
                ..More::default()
            }
    }
}

/// Inputs for the scope itself: the items of its inbox, ids and inputs, the scope.
pub(crate) type OwnInputs<'a> = (Vec<Stored<'a>>, Vec<(String, String)>, &'a str);

/// An input for another scope: scope, id, kind, input.
pub(crate) type Put = (String, String, &'static str, String);

/// The changes of other scopes. `lua/write_others.lua` documents the fields.
#[derive(Debug, Default, Serialize, PartialEq)]
pub(crate) struct Others<'a> {
    pub timers: usize,
    pub dirty: usize,
    pub consumed: usize,
    pub scope: &'a str,
    pub closes: Vec<String>,
    pub is_over: bool,
    pub refreshes: bool,
    pub prunes: Option<&'a str>,
}
