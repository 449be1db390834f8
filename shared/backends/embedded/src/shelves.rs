//! Ended instances in the order in which they expire.

use std::collections::BTreeSet;

use swirl_model::instance::{Instance, Status};
use swirl_model::time::Timestamp;

use crate::Options;
use crate::key::Seq;

type Shelf = BTreeSet<(Timestamp, Seq)>;

/// Faulted instances have their own shelves, so that other instances never displace them.
#[derive(Default)]
pub(crate) struct Shelves {
    /// By the time when they ended; the options say how long they are kept.
    ended: Shelf,
    faulted: Shelf,
    /// By the time when they expire, according to their definitions.
    until: Shelf,
    faulted_until: Shelf,
}

impl Shelves {
    fn place(&mut self, seq: Seq, instance: &Instance) -> Option<(&mut Shelf, (Timestamp, Seq))> {
        let state = &instance.state;
        let at = state.ended_at?;
        let own = instance.header.retention.of(state.status.end()?);
        Some(match (own, state.status == Status::Faulted) {
            (None, false) => (&mut self.ended, (at, seq)),
            (None, true) => (&mut self.faulted, (at, seq)),
            (Some(ms), false) => (&mut self.until, (at.plus_ms(ms), seq)),
            (Some(ms), true) => (&mut self.faulted_until, (at.plus_ms(ms), seq)),
        })
    }

    /// Adds the instance if it has ended.
    pub fn add(&mut self, seq: Seq, instance: &Instance) {
        if let Some((shelf, place)) = self.place(seq, instance) {
            shelf.insert(place);
        }
    }

    /// Called before the instance changes.
    pub fn remove(&mut self, seq: Seq, instance: &Instance) {
        if let Some((shelf, place)) = self.place(seq, instance) {
            shelf.remove(&place);
        }
    }

    /// The expired instances, and the oldest ones if there are too many.
    pub fn due(&self, now: Timestamp, options: &Options) -> Vec<Seq> {
        let count = self.ended.len() + self.until.len();
        let surplus = count.saturating_sub(options.keep_ended_max);
        let of_until = surplus.saturating_sub(self.ended.len());
        let too_old = |at: Timestamp, keep_ms: u64| {
            now.0.saturating_sub(at.0) > i64::try_from(keep_ms).unwrap_or(i64::MAX)
        };
        let first = |shelf: &Shelf, surplus: usize, keep_ms: u64| -> Vec<Seq> {
            let places = shelf.iter().enumerate();
            let due =
                places.take_while(|(place, (at, _))| *place < surplus || too_old(*at, keep_ms));
            due.map(|(_, (_, seq))| *seq).collect()
        };
        let mut due = first(&self.ended, surplus, options.keep_ended_ms);
        due.extend(first(&self.until, of_until, 0));
        due.extend(first(&self.faulted, 0, options.keep_faulted_ms));
        due.extend(first(&self.faulted_until, 0, 0));
        due
    }
}
