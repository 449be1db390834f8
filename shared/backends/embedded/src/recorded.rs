//! Removes recorded data that expires before its entries do ([`HistoryEntry::data_until`]). An instance's record says
//! when its first data expires. If there is a journal, the entries are read from disk and written again without the
//! data.

use swirl_model::event::HistoryEntry;
use swirl_model::time::Timestamp;
use swirl_ports::{HistoryPart, Result};

use crate::Embedded;
use crate::journal::redeem;
use crate::key::{Key, Seq, Write, from_json, to_json};
use crate::page::{self, first_due};
use crate::state::State;

/// The maximum number of instances processed in one turn.
const INSTANCES_AT_ONCE: usize = 100;
/// A history that can't be read is tried again after this time.
const DAMAGED_MS: i64 = 3_600_000;

/// Removes expired data. Returns true if there was any.
fn strip<'a>(history: impl IntoIterator<Item = &'a mut HistoryEntry>, now: Timestamp) -> bool {
    let mut is_changed = false;
    for entry in history {
        if entry.data.is_some() && entry.data_until.is_some_and(|until| until <= now) {
            entry.data = None;
            is_changed = true;
        }
    }
    is_changed
}

impl Embedded {
    /// Removes expired data of a limited number of instances.
    pub(crate) async fn expire_recorded(&self, now: Timestamp) -> Result<()> {
        let due: Vec<Seq> = self.read(|state| {
            let due = state.recorded.iter();
            let due = due.take_while(|(at, _)| *at <= now);
            due.map(|(_, seq)| *seq).take(INSTANCES_AT_ONCE).collect()
        })?;
        for seq in due {
            match self.journal() {
                None => self.read(|state| state.strip_in_memory(seq, now))?,
                Some(_) => self.strip_on_disk(seq, now).await?,
            }
        }
        Ok(())
    }

    /// If entries are added meanwhile, the instance stays due.
    async fn strip_on_disk(&self, seq: Seq, now: Timestamp) -> Result<()> {
        let Some(journal) = self.journal() else {
            return Ok(());
        };
        let known = self.read(|state| {
            let inst = state.instances.get(&seq)?;
            Some((inst.history_first, inst.history_next))
        })?;
        let Some((mut from, total)) = known else {
            return Ok(());
        };
        let (mut next, mut is_damaged) = (None, false);
        while from < total {
            // As much at a time as a page of the history has.
            let part = HistoryPart::After {
                known: from,
                limit: usize::MAX,
            };
            let keys = page::keys(seq, &(from..total), part);
            let records = redeem(journal.read(keys)).await?;
            let mut changed = Vec::new();
            from = total.min(
                records
                    .last()
                    .and_then(|(key, _)| page::number(key))
                    .map_or(total, |last| last + 1),
            );
            for (key, value) in records {
                let Ok(mut entries) = from_json::<Vec<HistoryEntry>>(&key, &value) else {
                    is_damaged = true;
                    continue;
                };
                if strip(&mut entries, now)
                    && let (Some(number), Ok(value)) = (page::number(&key), to_json(&entries))
                {
                    changed.push((number, Write { key, value }));
                }
                next = [next, first_due(&entries)].into_iter().flatten().min();
            }
            if !changed.is_empty() {
                self.replace(seq, changed).await?;
            }
        }
        if is_damaged {
            tracing::error!(
                number = seq,
                "expired data of an instance cannot be removed, because its history is damaged"
            );
            let later = Timestamp(now.0.saturating_add(DAMAGED_MS));
            next = [next, Some(later)].into_iter().flatten().min();
        }
        self.write(|state| {
            let inst = state.instances.get(&seq);
            if inst.is_some_and(|inst| inst.history_next == total) {
                state.set_data_due(seq, next);
                state.touch(Key::State(seq));
            }
        })
        .await
    }

    /// Writes the changed records, except those of entries that were dropped meanwhile.
    async fn replace(&self, seq: Seq, changed: Vec<(u64, Write)>) -> Result<()> {
        self.write(|state| {
            let Some(first) = state.instances.get(&seq).map(|inst| inst.history_first) else {
                return;
            };
            let left = changed.into_iter().filter(|(number, _)| *number >= first);
            state.writes.extend(left.map(|(_, write)| write));
        })
        .await
    }
}

impl State {
    /// Records that the instance has data that expires at this time.
    pub(crate) fn record_until(&mut self, seq: Seq, due: Timestamp) {
        let known = self.instances.get(&seq).and_then(|inst| inst.data_due);
        self.set_data_due(seq, [known, Some(due)].into_iter().flatten().min());
    }

    fn set_data_due(&mut self, seq: Seq, due: Option<Timestamp>) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        if let Some(known) = std::mem::replace(&mut inst.data_due, due) {
            self.recorded.remove(&(known, seq));
        }
        self.recorded.extend(due.map(|due| (due, seq)));
    }

    fn strip_in_memory(&mut self, seq: Seq, now: Timestamp) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        strip(&mut inst.history, now);
        let next = first_due(&inst.history);
        self.set_data_due(seq, next);
    }
}
