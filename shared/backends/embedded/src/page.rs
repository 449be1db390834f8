//! History. The entries that one commit adds form one record, named by the number of its last entry. If there are too
//! many entries, the oldest are dropped; a record is removed with its last entry.

use std::ops::Range;

use swirl_model::data::json_bytes;
use swirl_model::event::HistoryEntry;
use swirl_model::time::Timestamp;
use swirl_ports::{Error, HISTORY_BYTES_MAX, HistoryPart};

use crate::journal::Keys;
use crate::key::{HISTORY, Key, Seq, Write, from_json};
use crate::state::State;

/// The history entries of a commit.
pub(crate) enum Page {
    /// For a store in memory.
    Entries(Vec<HistoryEntry>),
    /// Entries encoded as their record. The record is made before the lock is taken, since it is the largest one of a
    /// commit.
    Record {
        entries: u64,
        json: Vec<u8>,
        /// The time at which the first recorded data of the entries is removed.
        due: Option<Timestamp>,
    },
}

impl Page {
    pub fn new(entries: Vec<HistoryEntry>, durable: bool) -> Result<Page, Error> {
        if !durable {
            return Ok(Page::Entries(entries));
        }
        let json = serde_json::to_vec(&entries).map_err(|error| Error::Damaged {
            what: "history".to_owned(),
            reason: format!("it cannot be written as JSON: {error}"),
        })?;
        let due = first_due(&entries);
        let entries = entries.len() as u64;
        Ok(Page::Record { entries, json, due })
    }

    fn len(&self) -> u64 {
        match self {
            Page::Entries(entries) => entries.len() as u64,
            Page::Record { entries, .. } => *entries,
        }
    }

    fn due(&self) -> Option<Timestamp> {
        match self {
            Page::Entries(entries) => first_due(entries),
            Page::Record { due, .. } => *due,
        }
    }
}

impl State {
    pub fn append(&mut self, seq: Seq, page: Page) {
        let (max, due) = (self.options.history_max.max(1), page.due());
        let Some(inst) = self.instances.get_mut(&seq).filter(|_| page.len() > 0) else {
            return;
        };
        inst.history_next += page.len();
        let first = inst.history_next.saturating_sub(max);
        let gone = inst.history_first..first.max(inst.history_first);
        inst.history_first = gone.end;
        match page {
            Page::Entries(entries) => {
                inst.history.extend(entries);
                inst.history.drain(..(gone.end - gone.start) as usize);
            }
            Page::Record { json, .. } => {
                let last = inst.history_next - 1;
                let write = |number, value| Write {
                    key: Key::History(seq, number).text(),
                    value,
                };
                self.writes.push(write(last, Some(json)));
                self.writes.extend(gone.map(|number| write(number, None)));
            }
        }
        if let Some(due) = due {
            self.record_until(seq, due);
        }
        self.touch(Key::State(seq));
    }
}

/// The time at which the first recorded data of these entries is removed.
pub(crate) fn first_due<'a>(
    history: impl IntoIterator<Item = &'a HistoryEntry>,
) -> Option<Timestamp> {
    let with_data = history.into_iter().filter(|entry| entry.data.is_some());
    with_data.filter_map(|entry| entry.data_until).min()
}

/// The number of a record's last entry, from its key.
pub(crate) fn number(key: &str) -> Option<u64> {
    let (_, number) = key.strip_prefix(HISTORY)?.split_once('/')?;
    u64::from_str_radix(number, 16).ok()
}

/// All records of an instance.
pub(crate) fn all(seq: Seq) -> Keys {
    Keys {
        seq,
        from: 0,
        backwards: false,
        is_enough: Box::new(|_, _| false),
    }
}

/// The records that contain these entries, up to the size limit. For `HistoryPart::Last`, they are read backwards.
pub(crate) fn keys(seq: Seq, wanted: &Range<u64>, part: HistoryPart) -> Keys {
    let (start, last) = (wanted.start, wanted.end.saturating_sub(1));
    let backwards = matches!(part, HistoryPart::Last(_));
    let mut bytes = 0;
    Keys {
        seq,
        from: start,
        backwards,
        is_enough: Box::new(move |key, value| {
            bytes += value.len();
            let is_end = number(key).is_none_or(|number| match backwards {
                true => number <= start,
                false => number >= last,
            });
            is_end || bytes >= HISTORY_BYTES_MAX
        }),
    }
}

/// The entries that fit into the size limit. For `HistoryPart::Last`, the last entries take precedence.
pub(crate) fn within(mut entries: Vec<HistoryEntry>, part: HistoryPart) -> Vec<HistoryEntry> {
    let backwards = matches!(part, HistoryPart::Last(_));
    if backwards {
        entries.reverse();
    }
    let mut bytes = 0;
    let fits = entries.iter().take_while(|entry| {
        let fits = bytes < HISTORY_BYTES_MAX;
        bytes += json_bytes(entry);
        fits
    });
    let count = fits.count();
    entries.truncate(count);
    if backwards {
        entries.reverse();
    }
    entries
}

/// The entries of the records that were read, from the number `first` on.
pub(crate) fn entries(
    records: Vec<(String, Vec<u8>)>,
    first: u64,
) -> Result<Vec<HistoryEntry>, Error> {
    let mut entries = Vec::new();
    for (key, value) in records {
        let last = number(&key).ok_or_else(|| Error::Damaged {
            what: key.clone(),
            reason: "its key has no number".to_owned(),
        })?;
        let mut page: Vec<HistoryEntry> = from_json(&key, &value)?;
        let stale = (first + page.len() as u64).saturating_sub(last + 1);
        entries.extend(page.drain(page.len().min(stale as usize)..));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_entry_and_of_many() {
        let entry = |fork| HistoryEntry {
            data: None,
            at: swirl_model::time::Timestamp(0),
            scope: swirl_model::ids::ScopeId::root(),
            event: swirl_model::event::Event::Joined {
                fork,
                in_state: None,
            },
            data_until: None,
        };
        let record = |last: u64, json: Vec<u8>| (Key::History(7, last).text(), json);
        let page = |forks: std::ops::RangeInclusive<u32>| {
            serde_json::to_vec(&forks.map(entry).collect::<Vec<_>>()).unwrap()
        };
        let records = vec![
            record(3, page(3..=3)),
            record(5, page(4..=5)),
            record(8, page(6..=8)),
        ];
        for (first, wanted) in [(0, 3..9), (3, 3..9), (5, 5..9), (7, 7..9), (8, 8..9)] {
            let found = entries(records.clone(), first).unwrap();
            let wanted: Vec<HistoryEntry> = wanted.map(entry).collect();
            assert_eq!(found, wanted, "from {first}");
        }
        let error = entries(vec![("history/7".to_owned(), Vec::new())], 0);
        assert!(matches!(error, Err(Error::Damaged { .. })), "{error:?}");
    }
}
