//! Matches events with waits, in either order of arrival.

use std::collections::BTreeSet;
use std::sync::Arc;

use swirl_model::CloudEvent;
use swirl_model::event::Input;
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_ports::InboxItem;
use swirl_ports::matching::{Correlation, Fit, addressee, bucket_of, fit, learnt};

use crate::events::is_old;
use crate::key::{Key, Seq, inbox_key};
use crate::state::State;

/// A slot of a wait that matches an event.
struct Match {
    place: usize,
    item: InboxItem,
    values: Correlation,
    offers: bool,
}

/// The result of delivering an event to a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivered {
    No,
    /// The scope decides about it, and so may others.
    Offered,
    /// An offer for which a suspended instance has no room.
    Full,
    /// It is the instance's.
    Consumed,
}

impl State {
    /// Delivers an event to all waits that exist now. Returns the suspended instances that have no room for an offer.
    pub fn deliver_to_waits(
        &mut self,
        event: &CloudEvent,
        woken: &mut Vec<ScopeRef>,
    ) -> Vec<InstanceId> {
        let candidates: BTreeSet<u64> = match addressee(event) {
            Some(id) => {
                let waits = self
                    .ids
                    .get(&id)
                    .map(|seq| self.waits_of(*seq))
                    .unwrap_or_default();
                waits.into_iter().map(|(order, ..)| order).collect()
            }
            None => self.subscriptions.candidates(event),
        };
        let mut had = BTreeSet::new();
        let mut full = BTreeSet::new();
        for order in candidates {
            let Some((seq, scope, wait)) = self.subscriptions.get(order) else {
                continue;
            };
            if had.contains(&seq) {
                continue;
            }
            match self.deliver(seq, &scope, wait, event, false, woken) {
                Delivered::Consumed => {
                    had.insert(seq);
                }
                Delivered::Full => {
                    full.insert(seq);
                }
                Delivered::Offered | Delivered::No => {}
            }
        }
        let full = full.iter().filter_map(|seq| self.instances.get(seq));
        full.map(|inst| inst.id().clone()).collect()
    }

    /// Fills the first slot of a wait that the event fits, or offers it the event. `early`: the event arrived before the
    /// wait began, so only a correlation links the two.
    fn deliver(
        &mut self,
        seq: Seq,
        scope: &ScopeId,
        wait: u32,
        event: &CloudEvent,
        early: bool,
        woken: &mut Vec<ScopeRef>,
    ) -> Delivered {
        let kept = self.kept.place(&event.key());
        let Some(found) = self.find_slot(seq, scope, wait, event, early, kept) else {
            return Delivered::No;
        };
        if let Some(place) = kept
            && !found.offers
        {
            self.take(place, seq);
        }
        let key = inbox_key(seq, scope, &found.item);
        let number = self.next();
        let Some(inst) = self.instances.get_mut(&seq) else {
            return Delivered::No;
        };
        if found.offers && inst.is_paused() && inst.is_full(scope, &found.item, &self.options) {
            return Delivered::Full;
        }
        let Some(entry) = inst.scopes.get_mut(scope) else {
            return Delivered::No;
        };
        inst.kib += entry.inbox.push(number, found.item).unwrap_or(0);
        if found.offers {
            self.touch(key);
            self.wake(seq, scope, woken);
            return Delivered::Offered;
        }
        let Some(index) = entry.waits.iter().position(|w| w.wait == wait) else {
            return Delivered::No;
        };
        entry.waits[index].slots.remove(found.place);
        if entry.waits[index].slots.is_empty() {
            let gone = entry.waits.remove(index);
            self.forget_wait(&gone);
        } else {
            self.index_wait(seq, scope, wait);
        }
        self.touch(key);
        self.touch(Key::Wait(seq, scope.clone(), wait));
        self.wake(seq, scope, woken);
        self.correlate(seq, found.values, woken);
        Delivered::Consumed
    }

    /// Records that an instance has consumed a kept event.
    fn take(&mut self, place: u64, seq: Seq) {
        if self.kept.consumed(place, seq) {
            self.touch(Key::Got(place, seq));
        }
    }

    /// An instance consumes an event that was offered to it.
    pub fn take_offered(&mut self, seq: Seq, key: &str) {
        if let Some(place) = self.kept.place(key) {
            self.take(place, seq);
        }
    }

    fn find_slot(
        &self,
        seq: Seq,
        scope: &ScopeId,
        wait: u32,
        event: &CloudEvent,
        early: bool,
        kept: Option<u64>,
    ) -> Option<Match> {
        let inst = self.instances.get(&seq)?;
        let entry = inst.scopes.get(scope)?;
        let wait = entry.waits.iter().find(|found| found.wait == wait)?;
        let had = kept
            .and_then(|place| self.kept.get(place))
            .map(|kept| &kept.consumers);
        if had.is_some_and(|had| had.contains(&seq)) {
            return None;
        }
        let untouched = had.is_none_or(BTreeSet::is_empty);
        let was_there = kept.is_none_or(|place| inst.born < place);
        let correlation = &inst.instance.state.correlation;
        let fits = |filter: &&swirl_model::event::EventMatch| {
            let fit = fit(filter, correlation, event);
            if early {
                fit.early(untouched, was_there)
            } else {
                fit != Fit::No
            }
        };
        wait.slots.iter().enumerate().find_map(|(place, slot)| {
            let filter = slot.filters.iter().find(fits)?;
            let item = InboxItem::new(Input::Event {
                wait: wait.wait,
                slot: slot.slot,
                def: filter.def,
                event: event.clone(),
                offered: filter.offers,
                early: kept.is_some_and(|place| place < wait.order),
            });
            if entry.inbox.knows(&item.id) {
                return None;
            }
            let values = learnt(filter, event);
            Some(Match {
                place,
                item,
                values,
                offers: filter.offers,
            })
        })
    }

    /// Searches the events that arrived before the wait.
    pub fn match_kept(&mut self, seq: Seq, scope: &ScopeId, wait: u32, woken: &mut Vec<ScopeRef>) {
        // Each event may add a correlation value, and so more buckets to search.
        while let Some(event) = self.next_kept(seq, scope, wait) {
            let delivered = self.deliver(seq, scope, wait, &event, true, woken);
            if matches!(delivered, Delivered::No | Delivered::Full) {
                return;
            }
        }
    }

    /// The first kept event that fits a wait.
    fn next_kept(&mut self, seq: Seq, scope: &ScopeId, wait: u32) -> Option<Arc<CloudEvent>> {
        let buckets = self.buckets_of(seq, scope, wait);
        let seen: Vec<(Arc<str>, u64)> = buckets
            .into_iter()
            .map(|bucket| {
                let after = self.skip_consumed(seq, &bucket);
                (bucket, after)
            })
            .collect();
        let lists = seen
            .iter()
            .flat_map(|(bucket, after)| self.kept.candidates(bucket, *after))
            .collect();
        let inst = self.instances.get(&seq)?;
        in_order(lists).find_map(|place| {
            let kept = self.kept.get(place)?;
            if is_old(kept.at, self.options.retain_ms, self.now) {
                return None;
            }
            let mine = addressee(&kept.event).is_none_or(|id| id == *inst.id());
            let fits = mine
                && self
                    .find_slot(seq, scope, wait, &kept.event, true, Some(place))
                    .is_some();
            fits.then(|| kept.event.clone())
        })
    }

    /// The buckets in which a wait searches for early events.
    fn buckets_of(&self, seq: Seq, scope: &ScopeId, wait: u32) -> BTreeSet<Arc<str>> {
        let inst = self.instances.get(&seq);
        let entry = inst.and_then(|inst| Some((inst, inst.scopes.get(scope)?)));
        let Some((inst, entry)) = entry else {
            return BTreeSet::new();
        };
        let waits = entry.waits.iter().filter(|found| found.wait == wait);
        let filters = waits.flat_map(|wait| wait.slots.iter().flat_map(|slot| &slot.filters));
        filters
            .filter(|filter| !filter.correlation.is_empty())
            .map(|filter| bucket_of(filter, &inst.instance.state.correlation))
            .collect()
    }

    /// The position in a bucket up to which an instance can skip events that other instances have consumed: it didn't
    /// exist yet, or has consumed them itself.
    fn skip_consumed(&mut self, seq: Seq, bucket: &Arc<str>) -> u64 {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return u64::MAX;
        };
        let before = inst
            .consumed_up_to
            .get(bucket)
            .copied()
            .unwrap_or(inst.born);
        let consumed = self.kept.consumed_up_to(bucket, before, seq);
        if consumed != before {
            inst.consumed_up_to.insert(bucket.clone(), consumed);
        }
        consumed
    }

    /// Releases an event that an instance could not use, and delivers it to other waits of the instance.
    pub fn release_event(&mut self, seq: Seq, event: &CloudEvent, woken: &mut Vec<ScopeRef>) {
        let Some(place) = self.kept.place(&event.key()) else {
            return;
        };
        if !self.kept.released(place, seq) {
            return;
        }
        if let Some(inst) = self.instances.get_mut(&seq) {
            inst.consumed_up_to.clear();
        }
        self.touch(Key::Got(place, seq));
        for (_, scope, wait) in self.waits_of(seq) {
            if self.deliver(seq, &scope, wait, event, true, woken) == Delivered::Consumed {
                return;
            }
        }
    }

    /// Stores values that an instance correlates by. Existing values are kept.
    pub fn correlate(
        &mut self,
        seq: Seq,
        values: impl IntoIterator<Item = (Arc<str>, String)>,
        woken: &mut Vec<ScopeRef>,
    ) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let correlation = &mut inst.instance.state.correlation;
        let before = correlation.len();
        for (name, value) in values {
            let name: Arc<str> = name.to_ascii_lowercase().into();
            correlation.entry(name).or_insert(value);
        }
        if correlation.len() == before {
            return;
        }
        if !inst.over() {
            self.index_correlation(seq);
        }
        self.touch(Key::State(seq));
        self.index_waits(seq);
        for (_, scope, wait) in self.waits_of(seq) {
            self.match_kept(seq, &scope, wait, woken);
        }
    }

    pub fn index_correlation(&mut self, seq: Seq) {
        let Some(inst) = self.instances.get(&seq) else {
            return;
        };
        let workflow = &inst.instance.header.definition.workflow;
        for (name, value) in &inst.instance.state.correlation {
            let key = (workflow.clone(), name.clone(), value.clone());
            self.correlated.entry(key).or_default().insert(seq);
        }
    }

    pub fn unindex_correlation(&mut self, seq: Seq) {
        let Some(inst) = self.instances.get(&seq) else {
            return;
        };
        let workflow = &inst.instance.header.definition.workflow;
        for (name, value) in &inst.instance.state.correlation {
            let key = (workflow.clone(), name.clone(), value.clone());
            if self
                .correlated
                .get_mut(&key)
                .is_some_and(|found| found.remove(seq))
            {
                self.correlated.remove(&key);
            }
        }
    }

    /// Marks a scope as ready to run.
    pub fn wake(&mut self, seq: Seq, scope: &ScopeId, woken: &mut Vec<ScopeRef>) {
        self.refresh(seq, scope);
        if let Some(scope) = self.scope_ref(seq, scope)
            && woken.last() != Some(&scope)
        {
            woken.push(scope);
        }
    }
}

/// The members of sorted lists, in order and without duplicates.
fn in_order(mut lists: Vec<&[u64]>) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let next = *lists.iter().filter_map(|list| list.first()).min()?;
        for list in &mut lists {
            *list = list.strip_prefix(&[next]).unwrap_or(list);
        }
        Some(next)
    })
}
