//! A scope's inbox: the waiting inputs, in order, and the ids of consumed inputs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use swirl_commit::{Item, Kind};
use swirl_model::data::json_bytes;
use swirl_model::event::Input;
use swirl_ports::InboxItem;

/// The number of remembered consumed ids. Ids contain sequence numbers, so older ids belong to a call or wait that is
/// over, and the engine rejects their inputs.
const REMEMBERED_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    entries: BTreeMap<u64, InboxEntry>,
    ids: HashMap<Arc<str>, u64>,
    waiting: usize,
}

#[derive(Debug)]
struct InboxEntry {
    id: Arc<str>,
    /// `None` if the input was consumed. It is remembered, so that it isn't accepted again.
    input: Option<Box<Input>>,
    /// The token of the lease that the input was handed to.
    handed: u64,
    /// The size that it adds to the instance while it waits (`weight.rs`).
    kib: usize,
}

impl Inbox {
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub fn len(&self) -> usize {
        self.waiting
    }

    pub fn knows(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    /// Whether this input is waiting to be processed.
    pub fn holds(&self, id: &str) -> bool {
        self.input(id).is_some()
    }

    pub fn input(&self, id: &str) -> Option<(u64, &Input)> {
        let seq = *self.ids.get(id)?;
        Some((seq, self.entries.get(&seq)?.input.as_deref()?))
    }

    /// The position of a known id.
    pub fn place(&self, id: &str) -> Option<u64> {
        self.ids.get(id).copied()
    }

    /// Returns the size that the input adds to the instance; `None` if its id is known already.
    pub fn push(&mut self, seq: u64, item: InboxItem) -> Option<usize> {
        let is_new = !self.knows(&item.id);
        is_new.then(|| self.restore(seq, &item.id, Some(item.input)))
    }

    /// Changes a waiting input, which keeps its position.
    pub fn replace(&mut self, item: InboxItem) {
        let seq = self.ids.get(&*item.id);
        let entry = seq.and_then(|seq| self.entries.get_mut(seq));
        if let Some(waiting) = entry.and_then(|entry| entry.input.as_mut()) {
            **waiting = item.input;
        }
    }

    /// The waiting inputs, in order.
    pub fn waiting(&self) -> impl Iterator<Item = (u64, InboxItem)> {
        self.entries.iter().filter_map(|(seq, entry)| {
            let input = entry.input.as_deref()?.clone();
            let id = entry.id.to_string();
            Some((*seq, InboxItem { id, input }))
        })
    }

    /// The waiting inputs with their ids, in order, as a commit is decided from them.
    pub fn items(&self) -> Vec<(&Arc<str>, Item<'_>)> {
        let items = self.last().filter_map(|entry| {
            let item = Item {
                id: &entry.id,
                kind: Kind::of(entry.input.as_deref()?),
                handed_to: (entry.handed > 0).then_some(entry.handed),
                kib: entry.kib,
            };
            Some((&entry.id, item))
        });
        let mut items: Vec<_> = items.collect();
        items.reverse();
        items
    }

    /// Returns the size that the input adds to the instance.
    pub fn restore(&mut self, seq: u64, id: &str, input: Option<Input>) -> usize {
        let id: Arc<str> = id.into();
        let kib = input.as_ref().map_or(0, of_input);
        self.waiting += usize::from(input.is_some());
        self.ids.insert(id.clone(), seq);
        self.entries.insert(
            seq,
            InboxEntry {
                id,
                input: input.map(Box::new),
                handed: 0,
                kib,
            },
        );
        kib
    }

    /// The size that the input with this id adds to the instance.
    pub fn weight(&self, id: &str) -> usize {
        let entry = self.ids.get(id).and_then(|seq| self.entries.get(seq));
        entry.map_or(0, |entry| entry.kib)
    }

    /// The size that all waiting inputs add to the instance.
    pub fn weight_of_all(&self) -> usize {
        self.entries.values().map(|entry| entry.kib).sum()
    }

    /// Removes an input. Returns the id that is no longer remembered.
    pub fn consume(&mut self, id: &str) -> Option<Arc<str>> {
        let seq = *self.ids.get(id)?;
        let entry = self.entries.get_mut(&seq)?;
        let input = *entry.input.take()?;
        entry.kib = 0;
        self.waiting -= 1;
        if !Kind::of(&input).is_remembered() {
            return self.forget(seq);
        }
        if self.entries.len() - self.waiting <= REMEMBERED_MAX {
            return None;
        }
        let mut entries = self.entries.iter();
        let (oldest, _) = entries.find(|(_, entry)| entry.input.is_none())?;
        self.forget(*oldest)
    }

    fn forget(&mut self, seq: u64) -> Option<Arc<str>> {
        let entry = self.entries.remove(&seq)?;
        self.ids.remove(&entry.id);
        Some(entry.id)
    }

    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.entries
            .values()
            .filter_map(|entry| entry.input.as_deref())
    }

    pub fn has_operator(&self) -> bool {
        let mut inputs = self.last().filter_map(|entry| entry.input.as_deref());
        inputs.any(Input::is_operator)
    }

    /// The waiting entries, last one first, since remembered ids are mostly before them.
    fn last(&self) -> impl Iterator<Item = &InboxEntry> {
        let waiting = self.entries.values().rev().filter(|e| e.input.is_some());
        waiting.take(self.waiting)
    }

    /// Whether there are inputs that were not handed to this lease.
    pub fn has_news(&self, token: u64, is_paused: bool) -> bool {
        self.waiting > 0 && self.last().any(|entry| entry.is_news(token, is_paused))
    }

    /// Returns the inputs that weren't handed to this lease yet. While the instance is paused, these are only the
    /// inputs of operators.
    pub fn hand_out(&mut self, token: u64, is_paused: bool) -> Vec<InboxItem> {
        let last = self.entries.values_mut().rev();
        let waiting = last.filter(|entry| entry.input.is_some());
        let mut items = Vec::new();
        for entry in waiting.take(self.waiting) {
            if !entry.is_news(token, is_paused) {
                continue;
            }
            entry.handed = token;
            if let Some(input) = &entry.input {
                items.push(InboxItem {
                    id: entry.id.to_string(),
                    input: (**input).clone(),
                });
            }
        }
        items.reverse();
        items
    }

    pub fn ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries.values().map(|entry| &entry.id)
    }
}

impl InboxEntry {
    fn is_news(&self, token: u64, is_paused: bool) -> bool {
        let Some(input) = &self.input else {
            return false;
        };
        self.handed != token && (!is_paused || input.is_operator())
    }
}

/// The size of an input in KiB, as in `weight.rs`. The results of branches count where they are stored.
pub(crate) fn of_input(input: &Input) -> usize {
    match input {
        Input::Joined { .. } => 0,
        input => json_bytes(input) / 1024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(call: u32) -> InboxItem {
        InboxItem::new(Input::CallDone {
            call,
            result: Ok(swirl_model::Data::NULL),
        })
    }

    #[test]
    fn an_input_is_accepted_once_but_operators_may_repeat_theirs() {
        let mut inbox = Inbox::default();
        let push = |inbox: &mut Inbox, seq, item| inbox.push(seq, item).is_some();
        assert!(push(&mut inbox, 1, call(1)) && !push(&mut inbox, 2, call(1)));
        assert_eq!(inbox.consume("call-1"), None);
        assert!(inbox.is_empty() && !push(&mut inbox, 3, call(1)));
        let retry = || InboxItem::new(Input::Retry);
        assert!(push(&mut inbox, 4, retry()) && !push(&mut inbox, 5, retry()));
        assert_eq!(inbox.consume("retry").as_deref(), Some("retry"));
        assert!(push(&mut inbox, 6, retry()));
    }

    #[test]
    fn the_oldest_ids_are_forgotten() {
        let mut inbox = Inbox::default();
        let mut forgotten = Vec::new();
        for n in 0..(REMEMBERED_MAX as u32 + 2) {
            inbox.push(n.into(), call(n));
            forgotten.extend(inbox.consume(&format!("call-{n}")));
        }
        assert_eq!(forgotten, [Arc::from("call-0"), Arc::from("call-1")]);
        assert_eq!(inbox.entries.len(), REMEMBERED_MAX);
    }
}
