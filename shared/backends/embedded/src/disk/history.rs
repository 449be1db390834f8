//! Where each history record is on disk. History isn't kept in memory, only its places.

use std::collections::{BTreeMap, VecDeque};

use crate::key::{HISTORY, Seq};

/// The place of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    /// The number of the record's last entry ([`crate::page`]).
    pub number: u64,
    pub offset: u64,
    pub length: u32,
    pub file: u32,
}

/// The records of each instance, in the order of their entries.
#[derive(Default)]
pub(crate) struct History(BTreeMap<Seq, VecDeque<At>>);

/// The instance and number in a history record's key.
pub(super) fn parse(key: &str) -> Option<(Seq, u64)> {
    let (seq, number) = key.strip_prefix(HISTORY)?.split_once('/')?;
    let number_of = |text| u64::from_str_radix(text, 16).ok();
    Some((number_of(seq)?, number_of(number)?))
}

impl History {
    pub fn insert(&mut self, seq: Seq, at: At) {
        let records = self.0.entry(seq).or_default();
        match records.binary_search_by_key(&at.number, |found| found.number) {
            Ok(place) => records[place] = at,
            Err(place) => records.insert(place, at),
        }
    }

    pub fn remove(&mut self, seq: Seq, number: u64) {
        let Some(records) = self.0.get_mut(&seq) else {
            return;
        };
        if let Ok(place) = records.binary_search_by_key(&number, |found| found.number) {
            records.remove(place);
        }
        if records.is_empty() {
            self.0.remove(&seq);
        }
    }

    /// The records from a number on.
    pub fn from(&self, seq: Seq, number: u64) -> impl DoubleEndedIterator<Item = &At> {
        let records = self.0.get(&seq);
        let first = records.map_or(0, |records| {
            records.partition_point(|at| at.number < number)
        });
        records
            .into_iter()
            .flat_map(move |records| records.range(first..))
    }

    pub fn all(&self) -> impl Iterator<Item = (Seq, &At)> {
        let all = self.0.iter();
        all.flat_map(|(seq, records)| records.iter().map(|at| (*seq, at)))
    }

    /// Takes over the places to which the records in these files were copied, unless a record has changed meanwhile.
    pub fn moved(&mut self, copies: &History, from: &[u32]) {
        for (seq, copies) in &copies.0 {
            let Some(records) = self.0.get_mut(seq) else {
                continue;
            };
            for at in records.iter_mut().filter(|at| from.contains(&at.file)) {
                let copy = copies.binary_search_by_key(&at.number, |copy| copy.number);
                if let Ok(copy) = copy {
                    *at = copies[copy];
                }
            }
            records.shrink_to_fit();
        }
    }
}
