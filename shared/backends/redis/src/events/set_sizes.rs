//! Notes how large the incomplete sets of events are.
//!
//! The sets with the same values are one record. A part of the event records notes how large each of these is: before the
//! record is written if it has sets, and afterwards if it has none. So whatever a crash leaves behind is noted, and is
//! corrected when room is made. Revisions of the record keep late notes away.

use std::sync::Arc;

use swirl_model::time::Timestamp;
use swirl_ports::matching::Set;
use swirl_ports::{KeptGroup, Result};

use super::names::EventKeys;
use super::shard::group_name;
use crate::Redis;
use crate::script::{Lazy, Script};

/// Also runs when a server has no memory left.
static NOTE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("../lua/events/sets.lua")));

/// The size of the incomplete sets with the same values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SetsSize {
    bytes: usize,
    sets: usize,
    workflow: Option<Arc<str>>,
    since: Option<Timestamp>,
}

impl SetsSize {
    pub fn of(sets: &[Set]) -> SetsSize {
        let first = sets.first();
        SetsSize {
            bytes: sets.iter().map(|set| set.bytes).sum(),
            sets: sets.len(),
            workflow: first.map(|set| set.definition.workflow.clone()),
            since: first.and_then(Set::since),
        }
    }

    pub fn is_none(&self) -> bool {
        self.sets == 0
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes more than before.
    pub fn more_than(&self, before: &SetsSize) -> u64 {
        self.bytes.saturating_sub(before.bytes) as u64
    }
}

/// The record whose sets are noted.
pub(super) struct Noted<'a> {
    pub digest: &'a str,
    /// The revision that it is about to get, or has.
    pub rev: u64,
    /// There was no record, so its revisions begin again.
    pub begins: bool,
}

impl Redis {
    /// Notes the size of the sets of a record.
    pub(super) async fn note_sets(&self, record: &Noted<'_>, size: &SetsSize) -> Result<()> {
        let keys = EventKeys::of(self.keys(), record.digest);
        let workflow = size.workflow.clone().map(KeptGroup::Workflow);
        let args = [
            record.digest.to_owned(),
            record.rev.to_string(),
            u8::from(record.begins).to_string(),
            size.bytes.to_string(),
            size.sets.to_string(),
            workflow.as_ref().map_or_else(String::new, group_name),
            size.since.map_or(0, |at| at.0).to_string(),
        ];
        let all = [keys.sets, keys.set_sizes, keys.set_sums];
        self.eval::<i64>(&NOTE, &all, &args).await?;
        Ok(())
    }
}
