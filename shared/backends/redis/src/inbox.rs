//! The inbox of a scope after a commit as it is stored, and the ids of consumed inputs that the scope remembers.

use serde::Serialize;

use crate::plan_input::Unplanned;
use crate::snapshot::Item;

/// The limit on remembered ids of consumed inputs, in bytes.
const REMEMBERED: usize = 4_096;
/// Separates and surrounds the ids.
const MARK: char = '\u{1}';

/// An item as it is stored, as in `lazy.rs`.
pub(crate) type Stored<'a> = (&'a str, &'a str, &'a str, &'a str);

pub(crate) fn stored<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<Stored<'a>> {
    let stored = items.map(|item| {
        let (number, id) = (item.number.as_str(), item.id.as_str());
        (number, id, item.kind.as_str(), item.handed_to.as_str())
    });
    stored.collect()
}

/// Items in their stored form.
pub(crate) fn text(items: &[Stored<'_>]) -> Result<Option<Vec<u8>>, Unplanned> {
    if items.is_empty() {
        return Ok(None);
    }
    packed(&items, "its inbox cannot be packed").map(Some)
}

pub(crate) fn packed(value: &impl Serialize, bad: &'static str) -> Result<Vec<u8>, Unplanned> {
    rmp_serde::to_vec(value).map_err(|_| Unplanned::Damaged(bad))
}

/// The remembered ids with those of consumed items added; the oldest are dropped.
pub(crate) fn remembered<'a>(
    seen: Option<&str>,
    consumed: impl Iterator<Item = &'a Item>,
) -> String {
    let mut text = seen.unwrap_or("\u{1}").to_owned();
    for item in consumed.filter(|item| item.is_remembered()) {
        match item.id.len() {
            0..=40 => text.push_str(&item.id),
            _ => text.push_str(&sha1_smol::Sha1::from(&item.id).digest().to_string()),
        }
        text.push(MARK);
    }
    while text.len() > REMEMBERED
        && let Some(next) = text[1..].find(MARK)
    {
        text.drain(..=next);
    }
    text
}
