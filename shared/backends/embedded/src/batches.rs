//! Batches of operators' actions, and the marks that they leave on instances.

use async_trait::async_trait;
use swirl_model::event::Input;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::time::Timestamp;
use swirl_ports::{
    Batch, BatchCounts, BatchCreation, BatchItem, BatchOrder, BatchOutcome, BatchState, Batches,
    InboxItem, MARKS_MAX, Operated, Result,
};

use crate::Embedded;
use crate::batched::{BatchEntry, BatchRecord, IDS_IN_RECORD};
use crate::key::Key;
use crate::page::Page;
use crate::state::State;

impl State {
    fn batch_mut(&mut self, id: &str) -> Option<(u64, &mut BatchEntry)> {
        let mut all = self.batches.iter_mut();
        let (place, entry) = all.find(|(_, entry)| entry.record.order.id == id)?;
        Some((*place, entry))
    }

    fn find_batch(&self, id: &str) -> Option<&BatchEntry> {
        let mut all = self.batches.values();
        all.find(|entry| entry.record.order.id == id)
    }

    fn create_batch(
        &mut self,
        order: &BatchOrder,
        instances: &[InstanceId],
        active_max: usize,
    ) -> BatchCreation {
        if self.find_batch(&order.id).is_some() {
            return BatchCreation::Known;
        }
        let all = self.batches.values();
        let active = all.map(|entry| usize::from(!entry.record.state.has_ended()));
        let active: usize = active.sum();
        if active >= active_max {
            return BatchCreation::TooMany;
        }
        let place = self.next();
        let ended = instances.is_empty();
        let mut entry = BatchEntry::new(BatchRecord {
            order: order.clone(),
            state: match ended {
                true => BatchState::Completed,
                false => BatchState::Running,
            },
            counts: BatchCounts::default(),
            ended_at: ended.then_some(order.created_at),
        });
        entry.instances = instances.to_vec();
        let pages = entry.instances.chunks(IDS_IN_RECORD).len();
        self.batches.insert(place, entry);
        self.touch(Key::Batch(place));
        for page in 0..pages {
            self.touch(Key::BatchIds(place, page as u32));
        }
        BatchCreation::New
    }

    fn record_outcomes(
        &mut self,
        id: &str,
        from: u32,
        outcomes: &[BatchOutcome],
        at: Timestamp,
    ) -> Option<Batch> {
        let (place, entry) = self.batch_mut(id)?;
        let room = entry.instances.len() - entry.outcomes.len();
        if entry.outcomes.len() != from as usize || outcomes.is_empty() || outcomes.len() > room {
            return Some(entry.batch());
        }
        for outcome in outcomes {
            entry.record.counts.add(outcome);
        }
        entry.outcomes.extend_from_slice(outcomes);
        entry.parts.push(from);
        if entry.outcomes.len() == entry.instances.len() && !entry.record.state.has_ended() {
            entry.record.state = BatchState::Completed;
            entry.record.ended_at = Some(at);
        }
        let batch = entry.batch();
        self.touch(Key::Batch(place));
        self.touch(Key::BatchOutcomes(place, from));
        Some(batch)
    }

    fn change_batch(&mut self, id: &str, to: BatchState, at: Timestamp) -> Option<Batch> {
        let (place, entry) = self.batch_mut(id)?;
        let record = &mut entry.record;
        if record.state.may_become(to) {
            record.state = to;
            record.ended_at = to.has_ended().then_some(at);
        }
        let batch = entry.batch();
        self.touch(Key::Batch(place));
        Some(batch)
    }

    fn drop_batch(&mut self, id: &str) {
        let Some((place, entry)) = self.batch_mut(id) else {
            return;
        };
        let pages = entry.instances.chunks(IDS_IN_RECORD).len();
        let parts = std::mem::take(&mut entry.parts);
        self.batches.remove(&place);
        self.touch(Key::Batch(place));
        for page in 0..pages {
            self.touch(Key::BatchIds(place, page as u32));
        }
        for part in parts {
            self.touch(Key::BatchOutcomes(place, part));
        }
    }

    pub fn operate(
        &mut self,
        id: &InstanceId,
        mark: &str,
        page: Page,
        input: Option<Input>,
    ) -> Result<Operated> {
        let Some((seq, inst)) = self.find(id) else {
            return Ok(Operated::Unknown);
        };
        if inst.marks.iter().any(|known| known == mark) {
            return Ok(Operated::Known);
        }
        if let Some(input) = input {
            self.add_input(&ScopeRef::root(id.clone()), InboxItem::new(input))?;
        }
        if let Some(inst) = self.instances.get_mut(&seq) {
            inst.marks.push(mark.to_owned());
            let surplus = inst.marks.len().saturating_sub(MARKS_MAX);
            inst.marks.drain(..surplus);
        }
        self.touch(Key::State(seq));
        self.append(seq, page);
        Ok(Operated::New)
    }
}

#[async_trait]
impl Batches for Embedded {
    async fn create_batch(
        &self,
        order: &BatchOrder,
        instances: &[InstanceId],
        active_max: usize,
    ) -> Result<BatchCreation> {
        self.write(|state| state.create_batch(order, instances, active_max))
            .await
    }

    async fn batch(&self, id: &str) -> Result<Option<Batch>> {
        self.read(|state| state.find_batch(id).map(BatchEntry::batch))
    }

    async fn batches(&self) -> Result<Vec<Batch>> {
        self.read(|state| {
            state
                .batches
                .values()
                .rev()
                .map(BatchEntry::batch)
                .collect()
        })
    }

    async fn active_batches(&self) -> Result<Vec<Batch>> {
        self.read(|state| {
            let all = state.batches.values().rev();
            let active = all.filter(|entry| !entry.record.state.has_ended());
            active.map(BatchEntry::batch).collect()
        })
    }

    async fn batch_items(&self, id: &str, from: u32, limit: u32) -> Result<Vec<BatchItem>> {
        self.read(|state| {
            let Some(entry) = state.find_batch(id) else {
                return Vec::new();
            };
            let items = entry.instances.iter().enumerate();
            let items = items.skip(from as usize).take(limit as usize);
            let items = items.map(|(place, instance)| BatchItem {
                instance: instance.clone(),
                outcome: entry.outcomes.get(place).cloned(),
            });
            items.collect()
        })
    }

    async fn change_batch(&self, id: &str, to: BatchState, at: Timestamp) -> Result<Option<Batch>> {
        self.write(|state| state.change_batch(id, to, at)).await
    }

    async fn lease_batch(&self, id: &str, carrier: &str, now: Timestamp, ms: u64) -> Result<bool> {
        self.read(|state| {
            let Some((_, entry)) = state.batch_mut(id) else {
                return false;
            };
            let held = entry.lease.as_ref();
            if held.is_some_and(|(by, till)| **by != *carrier && now < *till) {
                return false;
            }
            entry.lease = Some((carrier.into(), now.plus_ms(ms)));
            true
        })
    }

    async fn record_outcomes(
        &self,
        id: &str,
        from: u32,
        outcomes: &[BatchOutcome],
        at: Timestamp,
    ) -> Result<Option<Batch>> {
        self.write(|state| state.record_outcomes(id, from, outcomes, at))
            .await
    }

    async fn drop_batch(&self, id: &str) -> Result<()> {
        self.write(|state| state.drop_batch(id)).await
    }
}
