//! The inbox of a scope after a commit, and the ids of consumed inputs that the scope remembers.

use swirl_ports::Commit;

use crate::lazy;
use crate::plan_input::Unplanned;
use crate::snapshot::{Item, Snapshot};

/// The limit on remembered ids of consumed inputs, in bytes.
const REMEMBERED: usize = 4_096;
/// Separates and surrounds the ids.
const MARK: char = '\u{1}';

/// The items of an inbox, in order.
pub(crate) struct Inbox<'a> {
    pub consumed: Vec<&'a Item>,
    pub left: Vec<&'a Item>,
    /// Those that go with their scope.
    pub dropped: Vec<&'a Item>,
}

impl<'a> Inbox<'a> {
    /// `gone`: nothing of the scope is kept.
    pub fn of(commit: &Commit, known: &'a Snapshot, gone: bool) -> Result<Inbox<'a>, Unplanned> {
        let items = known.items.as_ref().ok_or(Unplanned::Unknown)?;
        let is_consumed = |item: &&Item| commit.consumed.contains(&item.id);
        let (consumed, mut left): (Vec<_>, Vec<_>) = items.iter().partition(is_consumed);
        let dropped = match gone {
            true => std::mem::take(&mut left),
            false => Vec::new(),
        };
        Ok(Inbox {
            consumed,
            left,
            dropped,
        })
    }

    /// Whether some items haven't been handed to the holder with this token. While the instance stands still, only an
    /// operator's inputs count.
    pub fn has_news(&self, token: u64, stands_still: bool) -> bool {
        let token = token.to_string();
        let all = self.left.iter().chain(&self.dropped);
        let mut counted = all.filter(|item| !stands_still || item.is_operators());
        counted.any(|item| item.handed_to != token)
    }

    /// Whether the scope has something to do.
    pub fn has_work(&self, stands_still: bool) -> bool {
        let mut left = self.left.iter();
        left.any(|item| !stands_still || item.is_operators())
    }

    pub fn had_work(&self, stands_still: bool) -> bool {
        let others = self.consumed.iter().chain(&self.dropped);
        let mut others = others.filter(|item| !stands_still || item.is_operators());
        self.has_work(stands_still) || others.next().is_some()
    }

    /// The items that are removed.
    pub fn removed(&self) -> impl Iterator<Item = &'a Item> {
        self.consumed.iter().chain(&self.dropped).copied()
    }

    pub fn consumed_kib(&self) -> usize {
        self.consumed.iter().map(|item| item.kib).sum()
    }

    /// The events that were not processed.
    pub fn dropped_events(&self) -> impl Iterator<Item = &'a str> {
        self.dropped.iter().filter_map(|item| item.event_key())
    }

    /// The remaining items, as they are stored.
    pub fn stored(&self) -> Vec<lazy::Item> {
        let items = self.left.iter();
        let stored = items.map(|item| {
            let (number, id) = (item.number.clone(), item.id.clone());
            (number, id, item.kind.clone(), item.handed_to.clone())
        });
        stored.collect()
    }

    /// The remaining items, in their stored form.
    pub fn text(&self) -> Result<Option<Vec<u8>>, Unplanned> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let text = rmp_serde::to_vec(&self.stored());
        text.map(Some)
            .map_err(|_| Unplanned::Damaged("its inbox cannot be packed"))
    }

    /// Whether some of the consumed ids must be remembered.
    pub fn is_remembered(&self) -> bool {
        self.consumed.iter().any(|item| is_remembered(item))
    }
}

fn is_remembered(item: &Item) -> bool {
    !matches!(item.kind.as_str(), "o" | "t")
}

/// The remembered ids with those of the consumed items added; the oldest are dropped. `None` if nothing has to be
/// remembered.
pub(crate) fn remembered(seen: Option<&str>, consumed: &[&Item]) -> Option<String> {
    let mut text = seen.unwrap_or("\u{1}").to_owned();
    for item in consumed.iter().filter(|item| is_remembered(item)) {
        match item.id.len() {
            0..=40 => text.push_str(&item.id),
            _ => text.push_str(&sha1_smol::Sha1::from(&item.id).digest().to_string()),
        }
        text.push(MARK);
    }
    while text.len() > REMEMBERED {
        let next = text[1..].find(MARK)?;
        text.drain(..=next);
    }
    (text.len() > 1).then_some(text)
}
