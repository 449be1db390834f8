//! Events from outside: ingesting them, matching them with waits and triggers, acknowledging them.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_model::data::json_bytes;
use swirl_model::instance::Status;
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_ports::matching::{
    Correlation, Listeners, Outcome, PendingStart, Set, addressee, attributes_to_keep, beginning,
    check_sets_bytes, groups_to_keep, has_all, roles,
};
use swirl_ports::{Error, EventLog, Ingested, KeptDropped, KeptGroup, Listening, Result, Trigger};

use crate::Embedded;
use crate::key::Key;
use crate::known::KnownEvent;
use crate::retained::RetainedEvent;
use crate::sets::Extended;
use crate::state::{Inst, State};

#[async_trait]
impl EventLog for Embedded {
    async fn ingest(
        &self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
    ) -> Result<Ingested> {
        if !listening.triggers.iter().any(|it| it.listed.is_some()) {
            return self
                .write(|state| state.ingest(event, listening, at, &[]))
                .await?;
        }
        // What ends a list may be an expression, which mustn't run under the lock.
        for _ in 0..ATTEMPTS {
            let lists = self.read(|state| state.extended(event, listening.triggers, at))?;
            let ends = lists.iter().map(|(trigger, list)| {
                let ends = listening.list_ends.0;
                ends(&listening.triggers[*trigger], &list.events).then_some(*trigger)
            });
            let ends: Vec<usize> = ends.flatten().collect();
            let ingested = self.write(|state| {
                let same = state.extended(event, listening.triggers, at) == lists;
                same.then(|| state.ingest(event, listening, at, &ends))
            });
            if let Some(ingested) = ingested.await? {
                return ingested;
            }
        }
        let what = "the lists of events that start instances change too fast";
        Err(Error::Unavailable(what.to_owned()))
    }

    // The search costs no trip here, so nothing is gained by asking first.
    async fn awaited(&self, events: &[&CloudEvent], _: &Listeners) -> Result<Vec<bool>> {
        Ok(vec![true; events.len()])
    }

    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()> {
        self.write(|state| {
            if let Some(place) = state.known.acknowledge(&event.key(), at) {
                state.touch(Key::Known(place));
            }
        })
        .await
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<KeptDropped>> {
        let dropped = self
            .write(|state| {
                state.expire_events(now);
                state.expire_instances(now);
                let kept = std::mem::take(&mut state.dropped).into_iter();
                let sets = std::mem::take(&mut state.dropped_sets).into_iter();
                let all = kept.map(|it| (it, false)).chain(sets.map(|it| (it, true)));
                let all = all.map(|((group, (events, bytes)), in_sets)| KeptDropped {
                    group,
                    events,
                    bytes,
                    in_sets,
                });
                all.collect()
            })
            .await?;
        self.expire_recorded(now).await?;
        Ok(dropped)
    }

    async fn forget_unconsumed(&self, workflow: &str, listening: Listening<'_>) -> Result<u64> {
        let Listening {
            consumed, triggers, ..
        } = listening;
        self.write(|state| {
            let group = KeptGroup::Workflow(workflow.into());
            let left = state.kept.in_group(&group).filter(|(_, kept)| {
                let attributes = attributes_to_keep(&kept.event, consumed);
                attributes.is_empty()
            });
            let left: Vec<u64> = left.map(|(place, _)| place).collect();
            for place in &left {
                state.drop_kept(*place);
            }
            let mut forgotten = left.len();
            if !triggers.iter().any(|it| it.collects_for(workflow)) {
                for place in state.sets.of_workflow(workflow) {
                    forgotten += state.sets.remove(place).map_or(0, |set| set.len());
                    state.touch(Key::Set(place));
                }
            }
            forgotten as u64
        })
        .await
    }
}

/// How often a list of events is looked at again because other events change it.
const ATTEMPTS: usize = 100;

/// Whether an event that came at `at` is older than this. The sweep may be late, so whatever uses the event checks it.
pub(crate) fn is_old(at: Timestamp, ms: u64, now: Timestamp) -> bool {
    now.0.saturating_sub(at.0) > ms as i64
}

impl State {
    /// The lists that an event would be put into, by trigger.
    fn extended(
        &self,
        event: &CloudEvent,
        triggers: &[Trigger],
        at: Timestamp,
    ) -> Vec<(usize, Extended)> {
        let triggers = triggers.iter().enumerate();
        let triggers = triggers.filter(|(_, trigger)| trigger.listed.is_some());
        let lists = triggers.filter_map(|(index, trigger)| {
            let roles = roles(trigger, event);
            Some((index, self.sets.extended(trigger, event, &roles, at)?))
        });
        lists.collect()
    }

    /// `ends`: the triggers whose lists are over with this event.
    fn ingest(
        &mut self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
        ends: &[usize],
    ) -> Result<Ingested> {
        let triggers = listening.triggers;
        self.now = at;
        let key = event.key();
        if let Some(known) = self.known.find(&key)
            && (known.outcome.is_some() || !is_old(known.at, self.options.dedup_ms, at))
        {
            return Ok(match &known.outcome {
                Some(outcome) => outcome.ingested(triggers),
                None => Ingested {
                    duplicate: true,
                    ..Ingested::default()
                },
            });
        }
        self.check_room(event, triggers, at)?;
        self.keep(event, listening, at);
        let mut outcome = Outcome::default();
        let full = self.deliver_to_waits(event, &mut outcome.woken);
        if addressee(event).is_none() {
            for (index, trigger) in triggers.iter().enumerate() {
                let ends = ends.contains(&index);
                outcome.starts.extend(self.begin(trigger, event, at, ends));
            }
        }
        let answer = Ingested {
            full,
            ..outcome.ingested(triggers)
        };
        // Too old, and not swept yet.
        if let Some(old) = self.known.place(&key) {
            self.known.remove(old);
            self.touch(Key::Known(old));
        }
        let place = self.next();
        self.known.insert(
            place,
            KnownEvent {
                key,
                at,
                outcome: Some(outcome),
            },
        );
        self.touch(Key::Known(place));
        while self.known.len() > self.options.dedup_max.max(1) {
            let Some((oldest, _)) = self.known.first() else {
                break;
            };
            self.known.remove(oldest);
            self.touch(Key::Known(oldest));
        }
        Ok(answer)
    }

    /// Refuses an event that would make the sets that share its values too large.
    fn check_room(&self, event: &CloudEvent, triggers: &[Trigger], at: Timestamp) -> Result<()> {
        if addressee(event).is_some() {
            return Ok(());
        }
        for trigger in triggers.iter().filter(|trigger| !trigger.exclusive) {
            let roles = roles(trigger, event);
            let has_place = self.sets.has_place(trigger, event, &roles, at);
            let may_begin = beginning(trigger, &roles).is_some();
            if has_place || may_begin {
                check_sets_bytes(self.sets.bytes(trigger, event), event)?;
            }
        }
        Ok(())
    }

    /// Drops the oldest incomplete sets that are too much for a workflow, or for all together.
    fn make_room_for_sets(&mut self, workflow: &Arc<str>) {
        let limits = self.options.sets_bytes;
        while let Some((group, place)) = self.sets.surplus(workflow, &limits, self.options.sets_max)
        {
            let Some(set) = self.sets.remove(place) else {
                return;
            };
            self.touch(Key::Set(place));
            let dropped = self.dropped_sets.entry(group).or_default();
            *dropped = (dropped.0 + set.len() as u64, dropped.1 + set.bytes as u64);
        }
    }

    fn keep(&mut self, event: &CloudEvent, listening: Listening<'_>, at: Timestamp) {
        let attributes = attributes_to_keep(event, listening.consumed);
        if attributes.is_empty() || self.options.retain_max == 0 {
            return;
        }
        // The event is no longer known but still kept, so the newer one replaces it.
        if let Some(old) = self.kept.place(&event.key()) {
            self.drop_kept(old);
        }
        while self.kept.len() >= self.options.retain_max {
            let Some((oldest, _)) = self.kept.first() else {
                break;
            };
            self.drop_kept(oldest);
        }
        let place = self.next();
        let groups = groups_to_keep(event, listening.consumed, listening.owners);
        let kept = RetainedEvent {
            bytes: json_bytes(event) as u64,
            event: event.clone().into(),
            at,
            attributes,
            groups: groups.clone(),
            consumers: BTreeSet::new(),
        };
        self.kept.insert(place, kept);
        self.touch(Key::Retained(place));
        for group in groups.into_iter().map(Some).chain([None]) {
            self.make_room(group);
        }
    }

    /// Drops the oldest kept events that are too much for a group, or for all together.
    fn make_room(&mut self, group: Option<KeptGroup>) {
        let limits = self.options.retain_bytes;
        let (mut events, mut bytes) = (0, 0);
        while let Some(place) = self.kept.surplus(group.as_ref(), &limits) {
            events += 1;
            bytes += self.kept.get(place).map_or(0, |kept| kept.bytes);
            self.drop_kept(place);
        }
        if events > 0 {
            let dropped = self.dropped.entry(group).or_default();
            *dropped = (dropped.0 + events, dropped.1 + bytes);
        }
    }

    fn drop_kept(&mut self, place: u64) {
        let Some(kept) = self.kept.remove(place) else {
            return;
        };
        self.touch(Key::Retained(place));
        for seq in kept.consumers {
            self.touch(Key::Got(place, seq));
        }
    }

    fn expire_events(&mut self, now: Timestamp) {
        let options = self.options.clone();
        while let Some((place, kept)) = self.kept.first() {
            if !is_old(kept.at, options.retain_ms, now) {
                break;
            }
            self.drop_kept(place);
        }
        while let Some((place, known)) = self.known.first() {
            if !is_old(known.at, options.dedup_ms, now) {
                break;
            }
            self.known.remove(place);
            self.touch(Key::Known(place));
        }
    }

    /// Carries out the effect of a trigger on an event (docs/language.md#decision-75).
    fn begin(
        &mut self,
        trigger: &Trigger,
        event: &CloudEvent,
        at: Timestamp,
        ends: bool,
    ) -> Option<PendingStart> {
        let roles = roles(trigger, event);
        let first = roles.first()?;
        let workflow = &trigger.definition.workflow;
        let mut bound = roles.iter().filter(|role| role.bound);
        if bound.any(|role| self.is_taken(workflow, &role.values)) {
            return None;
        }
        if trigger.exclusive {
            let start = StartEvent {
                def: trigger.events[first.place].def.0,
                event: event.clone(),
            };
            return Some(PendingStart {
                definition: trigger.definition.clone(),
                events: vec![start],
                correlation: first.learnt.clone(),
            });
        }
        let new = self.next();
        let filled = self.sets.fill(trigger, event, &roles, at, new, ends);
        for number in filled.changed {
            self.touch(Key::Set(number));
        }
        self.make_room_for_sets(workflow);
        filled.complete.map(Set::begun)
    }

    /// Whether an instance of the workflow that is active or being started has all of these values.
    fn is_taken(&self, workflow: &Arc<str>, values: &Correlation) -> bool {
        let mut starting = self.known.starting(workflow);
        if starting.any(|begun| has_all(&begun.correlation, values)) {
            return true;
        }
        let sets = values.iter().map(|(name, value)| {
            self.correlated
                .get(&(workflow.clone(), name.clone(), value.clone()))
        });
        let sets: Option<Vec<_>> = sets.collect();
        let Some(fewest) = sets.and_then(|sets| sets.into_iter().min_by_key(|set| set.all().len()))
        else {
            return false;
        };
        // A faulted instance counts as ended unless it is retried.
        let has_it = |inst: &Inst| {
            inst.status() == Status::Running && has_all(&inst.instance.state.correlation, values)
        };
        let mut found = fewest.all().iter();
        found.any(|seq| self.instances.get(seq).is_some_and(|inst| has_it(inst)))
    }
}
