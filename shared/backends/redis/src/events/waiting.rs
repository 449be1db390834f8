//! The waits of one instance when they were read, and the slot that an event would fill.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use swirl_model::CloudEvent;
use swirl_model::event::{EventMatch, Input, Slot};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_ports::matching::{Correlation, Fit, bucket_of, fit, is_valued, learnt};
use swirl_ports::{InboxItem, Result};

use super::names::{digest, offer, start_digest};
use crate::connect::damaged;

/// Fields of the hash: `w:<scope>:<wait>` is a wait, `c:<attribute>` a value, `W` the workflow, `over` says that the
/// instance is over, `F` that events were released, `B` is the generation of the event that started the instance, and
/// `x:<bucket>:<scope>:<wait>` and `a:<start>` are its index entries: `0` planned, `1` present.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The time since when it is dirty.
    pub mark: Option<String>,
    /// In the order of subscribing.
    pub waits: Vec<Wait>,
    pub correlation: Correlation,
    pub workflow: String,
    pub over: bool,
    pub freed: Option<String>,
    /// Set if an event started the instance and it correlates from the beginning.
    pub born: Option<String>,
    /// The notes of its index entries, and whether each entry is present.
    pub notes: HashMap<String, bool>,
}

#[derive(Debug)]
pub(super) struct Wait {
    pub field: String,
    /// The value of the field.
    pub text: String,
    pub scope: ScopeId,
    pub wait: u32,
    pub order: String,
    pub slots: Vec<Slot>,
}

/// A slot that an event fits.
#[derive(Debug)]
pub(super) struct Place {
    slot: usize,
    /// The event is offered: the slot stays open.
    pub offers: bool,
    pub item: InboxItem,
    pub learnt: Correlation,
    pub fit: Fit,
    /// Values that the instance must still have: the name, and `=value` or an empty text.
    pub expected: Vec<(String, String)>,
}

/// The index entry of a wait.
#[derive(Debug)]
pub(super) struct IndexEntry {
    pub note: String,
    pub bucket: String,
    /// The bucket is for a value, not for all events of a kind.
    pub valued: bool,
    pub wait: usize,
}

impl Waiting {
    pub fn read(
        instance: &InstanceId,
        mark: Option<String>,
        fields: Vec<String>,
    ) -> Result<Waiting> {
        let mut found = Waiting {
            mark,
            ..Waiting::default()
        };
        let mut fields = fields.into_iter();
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            match name.split_once(':') {
                Some(("w", _)) => {
                    let bad = || damaged(format!("a wait of {instance}"), format!("'{name}'"));
                    found.waits.push(Wait::read(&name, value).ok_or_else(bad)?);
                }
                Some(("c", attribute)) => {
                    found.correlation.insert(attribute.into(), value);
                }
                Some(("x" | "a", _)) => {
                    found.notes.insert(name, value == "1");
                }
                _ if name == "W" => found.workflow = value,
                _ if name == "over" => found.over = true,
                _ if name == "F" => found.freed = Some(value),
                _ if name == "B" => found.born = Some(value),
                _ => {}
            }
        }
        found
            .waits
            .sort_by(|a, b| (&a.order, &a.field).cmp(&(&b.order, &b.field)));
        Ok(found)
    }

    /// The index entries that its waits should have.
    pub fn index_entries(&self) -> Vec<IndexEntry> {
        let mut index_entries = Vec::new();
        for (index, wait) in self.waits.iter().enumerate() {
            index_entries.extend(wait.index_entries(index, &wait.slots, &self.correlation));
        }
        index_entries
    }

    /// The values under which it should be listed among the active instances of its workflow.
    pub fn actives(&self) -> Vec<String> {
        self.actives_with(&self.correlation)
    }

    fn actives_with(&self, correlation: &Correlation) -> Vec<String> {
        if self.over || self.workflow.is_empty() {
            return Vec::new();
        }
        let single = |(name, value): (&std::sync::Arc<str>, &String)| {
            start_digest(
                &self.workflow,
                &BTreeMap::from([(name.clone(), value.clone())]),
            )
        };
        correlation.iter().map(single).collect()
    }

    /// The instance waits for nothing more, and its values are in the index. Only entries of past waits are left to
    /// remove, so the commit that follows a delivery may do it.
    pub fn can_follow(&self) -> bool {
        let is_present = |active: &String| self.notes.get(&format!("a:{active}")) == Some(&true);
        self.waits.is_empty() && self.freed.is_none() && self.actives().iter().all(is_present)
    }

    /// The notes that are missing once the slot at a place is filled: because of the learnt values, the instance and
    /// its waits belong to other entries.
    pub fn new_notes(&self, filled: &Wait, place: &Place) -> Vec<String> {
        let mut correlation = self.correlation.clone();
        for (name, value) in &place.learnt {
            let known = correlation.entry(name.clone());
            known.or_insert_with(|| value.clone());
        }
        if correlation == self.correlation {
            // The other waits stay where they are, and so do the remaining slots.
            return Vec::new();
        }
        let mut notes = Vec::new();
        for (index, wait) in self.waits.iter().enumerate() {
            let mut slots = wait.slots.clone();
            if wait.field == filled.field {
                slots.remove(place.slot);
            }
            let index_entries = wait.index_entries(index, &slots, &correlation);
            notes.extend(index_entries.into_iter().map(|entry| entry.note));
        }
        let actives = self.actives_with(&correlation).into_iter();
        notes.extend(actives.map(|active| format!("a:{active}")));
        notes.retain(|note| !self.notes.contains_key(note));
        notes
    }

    /// The first slot of a wait that an event fits. `early`: the event arrived before the wait began. `refused`: ids of
    /// inputs that the inbox already knows.
    pub fn find(
        &self,
        wait: &Wait,
        event: &CloudEvent,
        early: bool,
        refused: &[String],
    ) -> Option<Place> {
        wait.slots.iter().enumerate().find_map(|(index, slot)| {
            let fits = |filter: &EventMatch| {
                let fit = fit(filter, &self.correlation, event);
                // Claiming it shows whether it is still free.
                let fits = match early {
                    true => fit.early(true, true),
                    false => fit != Fit::No,
                };
                fits.then_some(fit)
            };
            let mut filters = slot.filters.iter();
            let (filter, fit) = filters.find_map(|filter| Some((filter, fits(filter)?)))?;
            let item = InboxItem::new(Input::Event {
                wait: wait.wait,
                slot: slot.slot,
                def: filter.def,
                event: event.clone(),
                offered: filter.offers,
                early,
            });
            (!refused.contains(&item.id)).then(|| Place {
                slot: index,
                offers: filter.offers,
                item,
                learnt: learnt(filter, event),
                fit,
                expected: self.expected(filter),
            })
        })
    }

    fn expected(&self, filter: &EventMatch) -> Vec<(String, String)> {
        let open = filter
            .correlation
            .iter()
            .filter(|(_, value)| value.is_none());
        open.map(|(name, _)| {
            let name = name.to_ascii_lowercase();
            let value = self.correlation.get(&*name);
            (name, value.map(|v| format!("={v}")).unwrap_or_default())
        })
        .collect()
    }
}

impl Wait {
    /// The index entries of the wait with these slots. `index`: the position of the wait among the waits.
    fn index_entries(
        &self,
        index: usize,
        slots: &[Slot],
        correlation: &Correlation,
    ) -> impl Iterator<Item = IndexEntry> {
        let filters = slots.iter().flat_map(|slot| &slot.filters);
        let buckets: BTreeSet<_> = filters
            .map(|filter| bucket_of(filter, correlation))
            .collect();
        buckets.into_iter().map(move |name| {
            let bucket = digest(&name);
            IndexEntry {
                note: format!("x:{bucket}:{}:{}", self.scope, self.wait),
                bucket,
                valued: is_valued(&name),
                wait: index,
            }
        })
    }

    fn read(field: &str, text: String) -> Option<Wait> {
        let (scope, wait) = field.strip_prefix("w:")?.rsplit_once(':')?;
        let (order, slots) = text.split_once('\n')?;
        Some(Wait {
            scope: ScopeId::new(scope),
            wait: wait.parse().ok()?,
            order: order.to_owned(),
            slots: serde_json::from_str(slots).ok()?,
            field: field.to_owned(),
            text,
        })
    }

    /// Whether it looks at events, out of which the scope takes those that it consumes.
    pub fn offers(&self) -> bool {
        let mut filters = self.slots.iter().flat_map(|slot| &slot.filters);
        filters.any(|filter| filter.offers)
    }

    /// Whether it had begun when an event came.
    pub fn was_there(&self, generation: &str) -> bool {
        let (began, came) = (self.order.parse::<u64>(), generation.parse::<u64>());
        matches!((began, came), (Ok(began), Ok(came)) if began <= came)
    }

    /// The member among the events that the instance has had which says that an event was offered to this wait.
    pub fn offer(&self, digest: &str) -> String {
        offer(digest, &self.field)
    }

    /// The field's value after a slot is filled; empty if that was the last slot.
    pub fn without(&self, place: &Place) -> Result<String> {
        if place.offers {
            return Ok(self.text.clone());
        }
        let mut slots = self.slots.clone();
        slots.remove(place.slot);
        if slots.is_empty() {
            return Ok(String::new());
        }
        let slots = serde_json::to_string(&slots);
        let slots = slots.map_err(|error| damaged(format!("the wait '{}'", self.field), error))?;
        Ok(format!("{}\n{slots}", self.order))
    }
}
