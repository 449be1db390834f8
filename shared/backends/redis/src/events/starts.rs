//! The instances that events start: by one event or by sets, and only if the event isn't for an active instance.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::try_join;
use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_ports::matching::{
    Correlation, PendingStart, Role, Set, beginning, check_sets_bytes, choose, group_of, has_all,
    is_alone, loans, roles,
};
use swirl_ports::{Error, ListEnds, Listening, Result, Trigger};

use super::alone::LoneStarts;
use super::names::{StartKeys, start_digest};
use super::set_sizes::{Noted, SetsSize};
use super::shard::{json, read};
use super::turns::work_on;
use crate::Redis;
use crate::keys::Span;
use crate::script::{Lazy, Script};

static SWAP: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/swap.lua")]));
/// The same when sets are dropped: also when a server has no memory left.
static SWAP_TO_FREE: Lazy =
    Lazy::new(|| Script::freeing_small(include_str!("../lua/events/swap.lua")));

/// How often a change of a record is retried if other processes change it too.
const ATTEMPTS: u64 = 100;
/// The maximum number of incomplete sets with the same values. Each change writes all of them.
const GROUP_MAX: usize = 1_000;

/// The unfinished starts with the same values.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Group {
    /// The number of changes, so that no two states are equal.
    rev: u64,
    /// Incomplete sets, in the order of their beginning.
    sets: Vec<Set>,
    /// Starts by the event that completed them. They represent the instance until that event is acknowledged.
    begun: BTreeMap<String, PendingStart>,
    /// Unacknowledged events that are or were in a set. If they are ingested again, they aren't put into another set.
    #[serde(default)]
    placed: BTreeSet<String>,
    /// Events that are being acknowledged. Late processes do nothing with them. Once an entry is removed, its event
    /// isn't open any more.
    #[serde(default)]
    done: BTreeSet<String>,
}

/// How a claim is released.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ClaimRelease {
    /// The instance exists; the event is still open.
    Done,
    /// The event isn't open any more.
    All,
}

/// A start that an event may cause by one trigger.
struct PossibleStart<'a> {
    trigger: &'a Trigger,
    event: &'a CloudEvent,
    digest: &'a str,
    roles: Vec<Role>,
    /// The values under which sets and claims are stored.
    group: Correlation,
    list_ends: ListEnds<'a>,
    at: Timestamp,
}

enum Claim {
    Made(Option<PendingStart>),
    /// Taken by these events.
    Taken(Vec<String>),
}

/// Why a group is changed.
#[derive(Clone, Copy)]
enum Reason<'a> {
    /// An event is ingested. Nothing is done if it isn't open.
    Event(&'a str),
    Release,
    /// Sets are dropped.
    Room,
}

enum Change {
    /// Nothing needs to be written.
    Found(Option<PendingStart>),
    Write(Option<PendingStart>),
}

/// The starts that an event causes.
#[derive(Debug, Default)]
pub(super) struct Starts {
    pub starts: Vec<PendingStart>,
    /// The groups in which claims were made for the event.
    pub claims: Vec<String>,
    /// Another ingestion may have another outcome, so this one must be stored.
    pub may_differ: bool,
}

impl Redis {
    /// Begins the starts of an event.
    pub(super) async fn begin_starts(
        &self,
        event: &CloudEvent,
        digest: &str,
        listening: Listening<'_>,
        recorded: &LoneStarts,
        at: Timestamp,
    ) -> Result<Starts> {
        let mut begun = Starts::default();
        for trigger in listening.triggers {
            let roles = roles(trigger, event);
            let Some(first) = roles.first() else {
                continue;
            };
            if recorded.has(trigger) {
                // This holds even if a newer version, which takes over the start, would collect the event in a set.
                begun.starts.push(lone_start(trigger, event, first));
                continue;
            }
            if is_alone(trigger, first) {
                // The workflow was deployed after the first ingestion.
                continue;
            }
            begun.may_differ = true;
            if trigger.exclusive && !first.bound {
                begun.starts.push(lone_start(trigger, event, first));
                continue;
            }
            let group = match trigger.exclusive {
                true => first.values.clone(),
                false => group_of(trigger, event),
            };
            let possible = PossibleStart {
                trigger,
                event,
                digest,
                roles,
                group,
                list_ends: listening.list_ends,
                at,
            };
            let workflow = &trigger.definition.workflow;
            begun.claims.push(start_digest(workflow, &possible.group));
            begun.starts.extend(self.try_start(&possible).await?);
        }
        Ok(begun)
    }

    async fn try_start(&self, possible: &PossibleStart<'_>) -> Result<Option<PendingStart>> {
        let workflow = &possible.trigger.definition.workflow;
        if !possible.trigger.exclusive && self.is_addressed(possible).await? {
            return Ok(None);
        }
        let key = start_digest(workflow, &possible.group);
        let mut claim = self.claim(&key, possible).await?;
        if let Claim::Taken(by) = &claim
            && self.drop_stale(&key, by).await?
        {
            claim = self.claim(&key, possible).await?;
        }
        let Claim::Made(begun) = claim else {
            return Ok(None);
        };
        // Checked after the claim, because an instance that was being started before is active by now.
        if begun.is_some() && self.is_addressed(possible).await? {
            self.release_claim(&key, possible.digest, ClaimRelease::All)
                .await?;
            return Ok(None);
        }
        Ok(begun)
    }

    /// Whether the event is for an active instance.
    async fn is_addressed(&self, possible: &PossibleStart<'_>) -> Result<bool> {
        let workflow = &possible.trigger.definition.workflow;
        for role in possible.bound() {
            if self.is_active(workflow, &role.values).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn claim(&self, key: &str, possible: &PossibleStart<'_>) -> Result<Claim> {
        let mut taken = None;
        let begun = self
            .change_group(key, Reason::Event(possible.digest), |group| {
                taken = group.taken(possible);
                match taken {
                    Some(_) => Ok(Change::Found(None)),
                    None => group.take(possible),
                }
            })
            .await?;
        Ok(taken.map_or(Claim::Made(begun), Claim::Taken))
    }

    /// Drops claims of events that are no longer processed, because they were acknowledged or forgotten. Returns true
    /// if there were any.
    async fn drop_stale(&self, key: &str, claims: &[String]) -> Result<bool> {
        let mut dropped = false;
        for digest in claims {
            if !self.is_open(digest).await? {
                self.release_claim(key, digest, ClaimRelease::All).await?;
                dropped = true;
            }
        }
        Ok(dropped)
    }

    async fn release_claim(&self, key: &str, digest: &str, how: ClaimRelease) -> Result<()> {
        self.change_group(key, Reason::Release, |group| {
            let mut changed = group.begun.remove(digest).is_some();
            changed |= group.placed.remove(digest);
            changed |= match how {
                ClaimRelease::Done => group.done.insert(digest.to_owned()),
                ClaimRelease::All => group.done.remove(digest),
            };
            Ok(match changed {
                true => Change::Write(None),
                false => Change::Found(None),
            })
        })
        .await?;
        Ok(())
    }

    /// Releases claims. The instances that an event started exist, or never will.
    pub(super) async fn release_claims(
        &self,
        digest: &str,
        claims: &[String],
        how: ClaimRelease,
    ) -> Result<()> {
        for key in claims {
            self.release_claim(key, digest, how).await?;
        }
        Ok(())
    }

    /// Changes the incomplete sets of a group.
    pub(super) async fn change_sets(
        &self,
        digest: &str,
        mut change: impl FnMut(&mut Vec<Set>),
    ) -> Result<()> {
        self.change_group(digest, Reason::Room, |group| {
            change(&mut group.sets);
            Ok(Change::Write(None))
        })
        .await?;
        Ok(())
    }

    /// Reads, changes and writes a group as one step. Whether its event is open is checked after reading: acknowledging
    /// the event changes the group first, so the write fails.
    async fn change_group(
        &self,
        digest: &str,
        reason: Reason<'_>,
        mut change: impl FnMut(&mut Group) -> Result<Change>,
    ) -> Result<Option<PendingStart>> {
        let key = StartKeys::new(self.keys(), digest).group;
        let turn = self.group_turns().of(digest).await?;
        for attempt in 0..ATTEMPTS {
            let mut get = redis::cmd("GET");
            get.arg(&key);
            let before: Option<String> = self.query_on(get, turn.on()).await?;
            let before = before.unwrap_or_default();
            let size = before.len();
            turn.has(size);
            let read = move || {
                let group: Group = match before.as_str() {
                    "" => Group::default(),
                    text => read(text, "events that wait for others")?,
                };
                Ok((group, sha1_smol::Sha1::from(&before).digest().to_string()))
            };
            let (mut group, before) = work_on(size, read).await?;
            let sets_before = SetsSize::of(&group.sets);
            let begun = match change(&mut group)? {
                Change::Found(begun) => return Ok(begun),
                Change::Write(begun) => begun,
            };
            group.rev += 1;
            let sets = SetsSize::of(&group.sets);
            let noted = Noted {
                digest,
                rev: group.rev,
                begins: size == 0,
            };
            let is_open = async {
                match reason {
                    Reason::Event(event) => self.is_open(event).await,
                    Reason::Release | Reason::Room => Ok(true),
                }
            };
            let note = async {
                match sets != sets_before && !sets.is_none() {
                    true => self.note_sets(&noted, &sets).await,
                    false => Ok(()),
                }
            };
            // A note about an event that isn't open is corrected as one that a crash leaves.
            if let (false, ()) = try_join(is_open, note).await? {
                return Ok(None);
            }
            let is_empty = if group.is_empty() { "1" } else { "0" };
            let written = move || json(&group, "events that wait for others");
            let after = work_on(size.max(sets.bytes()), written).await?;
            turn.has(after.len().max(size));
            let swap = match reason {
                Reason::Room => &SWAP_TO_FREE,
                Reason::Event(_) | Reason::Release => &SWAP,
            };
            let (mut call, size) = (swap.call(std::slice::from_ref(&key)), after.len());
            call.arg(before).arg(after).arg(is_empty);
            let done: i64 = self.run_on(swap, call, turn.on()).await?;
            if done == 1 {
                turn.has(size);
                // A crash may have left notes about sets that are gone. They end when room is made.
                let is_noted = !sets_before.is_none() || matches!(reason, Reason::Room);
                if sets.is_none() && is_noted {
                    self.note_sets(&noted, &sets).await?;
                }
                self.sets_since()
                    .fetch_add(sets.more_than(&sets_before), Ordering::Relaxed);
                return Ok(begun);
            }
            tokio::time::sleep(Duration::from_millis(attempt.min(20))).await;
        }
        let what = "the sets of events that wait for other events change too fast to be written";
        Err(Error::Unavailable(what.to_owned()))
    }

    /// Whether an active instance of a workflow has all of these values.
    async fn is_active(&self, workflow: &str, values: &Correlation) -> Result<bool> {
        let lists = values.iter().map(|(name, value)| {
            let one = BTreeMap::from([(name.clone(), value.clone())]);
            let digest = start_digest(workflow, &one);
            let mut cmd = redis::cmd("ZRANGE");
            cmd.arg(StartKeys::new(self.keys(), &digest).active)
                .arg(0)
                .arg(-1);
            self.query::<BTreeSet<String>>(cmd)
        });
        let lists = futures::future::try_join_all(lists).await?;
        let mut lists = lists.into_iter();
        let mut all = lists.next().unwrap_or_default();
        for list in lists {
            all.retain(|instance| list.contains(instance));
        }
        // An ended instance may still be in the index.
        let checks = all.iter().map(|instance| {
            let id = swirl_model::ids::InstanceId::new(instance.as_str());
            let keys = self.keys().of(&id, Span::Ready);
            let mut cmd = redis::cmd("HGET");
            cmd.arg(&keys[0]).arg("s");
            self.query::<Option<String>>(cmd)
        });
        let statuses = futures::future::try_join_all(checks).await?;
        // A faulted instance counts as ended unless it is retried.
        Ok(statuses.iter().any(|status| status.as_deref() == Some("r")))
    }
}

impl PossibleStart<'_> {
    fn bound(&self) -> impl Iterator<Item = &Role> {
        self.roles.iter().filter(|role| role.bound)
    }
}

fn lone_start(trigger: &Trigger, event: &CloudEvent, role: &Role) -> PendingStart {
    PendingStart {
        definition: trigger.definition.clone(),
        events: vec![StartEvent {
            def: trigger.events[role.place].def.0,
            event: event.clone(),
        }],
        correlation: role.learnt.clone(),
    }
}

impl Group {
    /// The events that are already starting the addressed instance.
    fn taken(&self, possible: &PossibleStart<'_>) -> Option<Vec<String>> {
        if self.begun.contains_key(possible.digest) {
            return None;
        }
        let is_addressed = |begun: &PendingStart| {
            let mut roles = possible.bound();
            roles.any(|role| has_all(&begun.correlation, &role.values))
        };
        let meant = self.begun.iter().filter(|(_, begun)| is_addressed(begun));
        let by: Vec<String> = meant.map(|(digest, _)| digest.clone()).collect();
        (!by.is_empty()).then_some(by)
    }

    fn take(&mut self, possible: &PossibleStart<'_>) -> Result<Change> {
        if self.done.contains(possible.digest) {
            return Ok(Change::Found(None));
        }
        // The event was ingested before.
        if let Some(begun) = self.begun.get(possible.digest) {
            return Ok(Change::Found(Some(begun.clone())));
        }
        let begun = if possible.trigger.exclusive {
            let first = possible.roles.first();
            first.map(|first| lone_start(possible.trigger, possible.event, first))
        } else {
            if self.placed.contains(possible.digest) {
                return Ok(Change::Found(None));
            }
            self.placed.insert(possible.digest.to_owned());
            self.fill(possible)?
        };
        if let Some(begun) = &begun {
            self.begun.insert(possible.digest.to_owned(), begun.clone());
        }
        Ok(Change::Write(begun))
    }

    fn is_empty(&self) -> bool {
        self.sets.is_empty()
            && self.begun.is_empty()
            && self.placed.is_empty()
            && self.done.is_empty()
    }

    /// Puts an event into the set that takes it, otherwise into a new one. Expired sets are dropped first.
    fn fill(&mut self, possible: &PossibleStart<'_>) -> Result<Option<PendingStart>> {
        let PossibleStart {
            trigger,
            event,
            roles,
            list_ends,
            at,
            ..
        } = possible;
        for set in &mut self.sets {
            set.refit(trigger);
        }
        self.sets.retain(|set| !set.is_void(trigger, *at));
        let found = choose(self.sets.iter().enumerate(), trigger, roles);
        let beginning = beginning(trigger, roles);
        if found.is_some() || beginning.is_some() {
            check_sets_bytes(self.sets.iter().map(|set| set.bytes).sum(), event)?;
        }
        let (index, role) = match (found, beginning) {
            (Some(found), _) => found,
            (None, Some(role)) => {
                let (size, limit) = (self.sets.len(), GROUP_MAX);
                if size >= limit {
                    let what = "the list of events that wait for other events to start an instance";
                    let what = what.to_owned();
                    return Err(Error::TooLarge { what, size, limit });
                }
                let set = Set::new(trigger.definition.clone(), possible.group.clone());
                self.sets.push(set);
                (size, role)
            }
            (None, None) => return Ok(None),
        };
        let mut complete = self.sets[index].put(trigger, role, event, *at);
        if trigger.lists(role.place) {
            complete |= list_ends.0(trigger, &self.sets[index].listed());
        }
        if !complete && !self.borrow(trigger, index) {
            return Ok(None);
        }
        let begun = self.sets.remove(index).begun();
        self.sets.retain(|set| !set.is_empty());
        Ok(Some(begun))
    }

    /// Completes a set with events of others, if that is possible.
    fn borrow(&mut self, trigger: &Trigger, index: usize) -> bool {
        let others = self.sets.iter().enumerate();
        let others = others.filter(|(other, _)| *other != index);
        let loans = loans(others, trigger, &self.sets[index]);
        for (other, place) in &loans {
            if let Some(lent) = self.sets[*other].lend(trigger, *place) {
                self.sets[index].borrow(trigger, *place, lent);
            }
        }
        !loans.is_empty()
    }
}
