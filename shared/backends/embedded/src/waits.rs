//! Begins and ends the waits of scopes for events, and keeps their index.

use std::sync::Arc;

use swirl_model::event::Subscription;
use swirl_model::ids::ScopeId;
use swirl_ports::matching::bucket_of;

use crate::key::{Key, Seq};
use crate::state::State;
use crate::subscriptions::Wait;

impl State {
    pub fn subscribe(&mut self, seq: Seq, scope: &ScopeId, subscription: Subscription) {
        let Subscription { wait, slots } = subscription;
        self.unsubscribe(seq, scope, wait);
        let order = self.next();
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let entry = inst.scopes.entry(scope.clone()).or_default();
        entry.waits.push(Wait {
            wait,
            order,
            slots,
            buckets: Vec::new(),
        });
        self.touch(Key::Wait(seq, scope.clone(), wait));
        self.index_wait(seq, scope, wait);
    }

    pub fn unsubscribe(&mut self, seq: Seq, scope: &ScopeId, wait: u32) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let Some(entry) = inst.scopes.get_mut(scope) else {
            return;
        };
        let Some(place) = entry.waits.iter().position(|found| found.wait == wait) else {
            return;
        };
        let gone = entry.waits.remove(place);
        self.forget_wait(&gone);
        self.touch(Key::Wait(seq, scope.clone(), wait));
    }

    /// Removes a wait from the index.
    pub fn forget_wait(&mut self, wait: &Wait) {
        self.subscriptions.orders.remove(&wait.order);
        for bucket in &wait.buckets {
            self.subscriptions.buckets.remove(bucket, wait.order);
        }
    }

    /// Adds a wait to the buckets in which events search for it, by the values that the instance has now.
    pub fn index_wait(&mut self, seq: Seq, scope: &ScopeId, wait: u32) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let correlation = &inst.instance.state.correlation;
        let waits = inst.scopes.get_mut(scope).map(|entry| &mut entry.waits);
        let Some(found) = waits.and_then(|waits| waits.iter_mut().find(|w| w.wait == wait)) else {
            return;
        };
        let index = &mut self.subscriptions;
        for bucket in std::mem::take(&mut found.buckets) {
            index.buckets.remove(&bucket, found.order);
        }
        let filters = found.slots.iter().flat_map(|slot| &slot.filters);
        let mut buckets: Vec<Arc<str>> = filters
            .map(|filter| bucket_of(filter, correlation))
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        for bucket in &buckets {
            index.buckets.insert(bucket, found.order);
        }
        found.buckets = buckets;
        index.orders.insert(found.order, (seq, scope.clone(), wait));
    }

    /// The waits of an instance, in the order of subscribing.
    pub fn waits_of(&self, seq: Seq) -> Vec<(u64, ScopeId, u32)> {
        let Some(inst) = self.instances.get(&seq) else {
            return Vec::new();
        };
        let mut waits: Vec<_> = inst
            .scopes
            .iter()
            .flat_map(|(id, entry)| entry.waits.iter().map(|w| (w.order, id.clone(), w.wait)))
            .collect();
        waits.sort_unstable();
        waits
    }

    pub fn index_waits(&mut self, seq: Seq) {
        for (_, scope, wait) in self.waits_of(seq) {
            self.index_wait(seq, &scope, wait);
        }
    }
}
