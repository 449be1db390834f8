//! Listings by a search attribute. A shard's index is one sorted set with equal scores. Its members consist of name,
//! value, time of creation and instance, so they are ordered by value, then by time.

use futures::future::try_join_all;
use redis::Cmd;
use serde::Serialize;
use swirl_model::attribute::{Attribute, AttributeKind, Attributes};
use swirl_model::ids::InstanceId;
use swirl_ports::{AttributeFilter, Bound, Error, Filter, Keep, Page, Result, Values};

use crate::Redis;
use crate::connect::damaged;

/// The index's name within a shard.
pub(crate) const INDEX: &str = "sa";

/// As in `listing.rs`.
const PAGE_MIN: usize = 20;
const PAGE_MAX: usize = 1000;
const EXAMINED_MAX: usize = 100_000;

/// The search attributes of an instance, as its hash has them: the beginnings of its members in the index, each
/// followed by a zero byte.
pub(crate) fn heads(attributes: &Attributes) -> String {
    let all = attributes.iter();
    all.map(|(name, value)| format!("{name}\x01{}\0", value.sortable()))
        .collect()
}

/// The changes that a commit makes to the index of attributes: the position of its key among the call's keys, and the
/// beginnings of members to remove and to add.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct IndexChange {
    pub key: usize,
    removed: Vec<String>,
    added: Vec<String>,
    /// The heads after the commit.
    #[serde(skip)]
    pub text: String,
}

impl IndexChange {
    pub fn is_indexed(&self) -> bool {
        !self.removed.is_empty() || !self.added.is_empty()
    }
}

/// The change from the previous heads to these attributes.
pub(crate) fn change(before: &str, attributes: &Attributes) -> IndexChange {
    let text = heads(attributes);
    let beyond = |these: &str, those: &str| -> Vec<String> {
        let these = these.split_terminator('\0');
        let new = these.filter(|head| those.split_terminator('\0').all(|other| other != *head));
        new.map(str::to_owned).collect()
    };
    IndexChange {
        key: 0,
        removed: beyond(before, &text),
        added: beyond(&text, before),
        text,
    }
}

/// Reads attributes from the heads in `text`.
pub(crate) fn read_heads(text: &str, what: &str) -> Result<Attributes> {
    let all = text.split_terminator('\0').map(|head| {
        let (name, value) = head.split_once('\x01')?;
        Some((name.into(), Attribute::of_sortable(value)?))
    });
    let all: Option<Attributes> = all.collect();
    all.ok_or_else(|| damaged(what, "its search attributes"))
}

/// The range of members that match: the ends for `ZRANGE`.
fn ends(filter: &AttributeFilter) -> (Vec<u8>, Vec<u8>) {
    let name = &filter.name;
    let of = |sign: char, value: &Attribute, end: char| {
        format!("{sign}{name}\x01{}{end}", value.sortable()).into_bytes()
    };
    match &filter.values {
        Values::Equal(value) => (of('[', value, '\x01'), of('(', value, '\x02')),
        Values::Prefix(prefix) => {
            let first = format!("[{name}\x01{}", Attribute::sortable_prefix(prefix));
            let mut last = first.clone().into_bytes();
            last[0] = b'(';
            // Greater than all bytes of UTF-8.
            last.push(0xff);
            (first.into_bytes(), last)
        }
        Values::Range { kind, from, to } => {
            let letter = letter(*kind);
            let first = match from {
                None => format!("[{name}\x01{}", letter as char).into_bytes(),
                Some(Bound { value, inclusive }) => {
                    of('[', value, if *inclusive { '\x01' } else { '\x02' })
                }
            };
            let last = match to {
                None => format!("({name}\x01{}", (letter + 1) as char).into_bytes(),
                Some(Bound { value, inclusive }) => {
                    of('(', value, if *inclusive { '\x02' } else { '\x01' })
                }
            };
            (first, last)
        }
    }
}

/// The letter that begins the values of a kind.
fn letter(kind: AttributeKind) -> u8 {
    match kind {
        AttributeKind::Text => b's',
        AttributeKind::Number => b'n',
        AttributeKind::Boolean => b'b',
        AttributeKind::Time => b't',
    }
}

impl Redis {
    pub(crate) async fn listing_by_attribute(
        &self,
        filter: &Filter,
        attribute: &AttributeFilter,
        keep: Keep<'_>,
    ) -> Result<Page> {
        let (first, mut last) = ends(attribute);
        if let Some(from) = &filter.from {
            let member = from.strip_prefix('a').and_then(unhex);
            let member = member.ok_or_else(|| Error::UnknownPlace(from.clone()))?;
            last = [b"(", member.as_slice()].concat();
        }
        let examined_max = match filter.examined_max {
            0 => EXAMINED_MAX,
            most => most,
        };
        let mut size = filter.limit.clamp(PAGE_MIN, PAGE_MAX);
        let mut found = Page::default();
        while found.rows.len() < filter.limit {
            if found.examined >= examined_max {
                found.next = Some(cursor(&last[1..]));
                return Ok(found);
            }
            let size_max = size.min(examined_max - found.examined);
            let members = self.members(&first, &last, size_max).await?;
            let Some(lowest) = members.last() else {
                return Ok(found);
            };
            let ids = members.iter().map(|member| instance_of(member));
            let ids = ids.collect::<Result<Vec<_>>>()?;
            let mut summaries = self.summaries(ids.clone()).await?.into_iter().peekable();
            for (id, member) in ids.iter().zip(&members) {
                found.examined += 1;
                // A removed instance has no summary.
                let Some((_, row)) = summaries.next_if(|(_, row)| row.header.id == *id) else {
                    continue;
                };
                if filter.passes(&row) && keep(&row) {
                    found.rows.push(row);
                    if found.rows.len() == filter.limit {
                        found.next = Some(cursor(member));
                        return Ok(found);
                    }
                }
            }
            last = [b"(", lowest.as_slice()].concat();
            size = (size * 2).min(PAGE_MAX);
        }
        Ok(found)
    }

    /// The greatest members of all shards together, greatest first.
    async fn members(&self, first: &[u8], last: &[u8], limit: usize) -> Result<Vec<Vec<u8>>> {
        let pages = (0..self.keys().shards()).map(|shard| {
            let mut read = Cmd::new();
            read.arg("ZRANGE").arg(self.keys().index(shard, INDEX));
            read.arg(last).arg(first).arg("BYLEX").arg("REV");
            read.arg("LIMIT").arg(0).arg(limit);
            self.query::<Vec<Vec<u8>>>(read)
        });
        let mut members = try_join_all(pages).await?.concat();
        members.sort_unstable_by(|a, b| b.cmp(a));
        members.truncate(limit);
        Ok(members)
    }
}

fn instance_of(member: &[u8]) -> Result<InstanceId> {
    let text = std::str::from_utf8(member).ok();
    let id = text.and_then(|text| text.rsplit_once('\x01'));
    match id {
        Some((_, id)) => Ok(InstanceId::new(id)),
        None => Err(damaged("the index of attributes", "a member of it")),
    }
}

fn cursor(member: &[u8]) -> String {
    let digits = member.iter().map(|byte| format!("{byte:02x}"));
    digits.fold("a".to_owned(), |text, digits| text + &digits)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if digits.len() % 2 == 1 {
        return None;
    }
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_again() {
        let attributes: Attributes = [
            ("a".into(), Attribute::Text("\0x\u{1}".into())),
            ("b".into(), Attribute::Text("".into())),
            ("c".into(), Attribute::Number(-1.5)),
        ]
        .into();
        let text = heads(&attributes);
        assert_eq!(text.matches('\0').count(), 3);
        assert_eq!(read_heads(&text, "x").unwrap(), attributes);
        assert_eq!(read_heads("", "x").unwrap(), Attributes::new());
        assert!(read_heads("a", "x").is_err());
    }

    #[test]
    fn a_cursor_is_read_again() {
        let member = b"orderId\x01so1\x011700000000000000\x01x";
        let cursor = cursor(member);
        assert_eq!(
            cursor.strip_prefix('a').and_then(unhex).as_deref(),
            Some(&member[..])
        );
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("zz"), None);
    }
}
