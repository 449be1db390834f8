//! The inbox of a scope after a commit, and the ids of consumed inputs that the scope remembers.

use swirl_ports::Commit;

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
}

impl<'a> Inbox<'a> {
    pub fn of(commit: &Commit, known: &'a Snapshot) -> Result<Inbox<'a>, Unplanned> {
        let items = known.items.as_ref().ok_or(Unplanned::Unknown)?;
        let is_consumed = |item: &&Item| commit.consumed.contains(&item.id);
        let (consumed, left) = items.iter().partition(is_consumed);
        Ok(Inbox { consumed, left })
    }

    /// Whether some items haven't been handed to the holder with this token.
    pub fn has_news(&self, token: u64) -> bool {
        let token = token.to_string();
        self.left.iter().any(|item| item.handed_to != token)
    }

    pub fn consumed_kib(&self) -> usize {
        self.consumed.iter().map(|item| item.kib).sum()
    }

    /// The remaining items, in their stored form.
    pub fn text(&self) -> Result<Option<Vec<u8>>, Unplanned> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let items = self
            .left
            .iter()
            .map(|item| (&item.number, &item.id, &item.kind, &item.handed_to));
        let items: Vec<_> = items.collect();
        let text = rmp_serde::to_vec(&items);
        text.map(Some).map_err(|_| Unplanned::General)
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
