//! The deployed definitions as the store last reported them, without documents and without compiled definitions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use swirl_model::event::EventMatch;
use swirl_model::ids::DefinitionId;
use swirl_model::schedule::Calendar;
use swirl_model::time::Timestamp;
use swirl_ports::matching::Listeners;
use swirl_ports::{DefinitionHead, Trigger};

/// The catalog of deployed definitions and of the events they listen to.
#[derive(Debug, Default)]
pub struct Catalog {
    pub(crate) revision: u64,
    /// All definitions, including deleted ones, in the order of their last change.
    all: Vec<Arc<Deployed>>,
    by_id: HashMap<DefinitionId, usize>,
    /// The latest version of each workflow, in the order of their last change.
    pub latest: Vec<Arc<Deployed>>,
    by_workflow: HashMap<Arc<str>, usize>,
    /// By workflow: when the last version was deleted that was newer than the latest one.
    newer_until: HashMap<Arc<str>, Timestamp>,
    /// The starting event states of the latest versions.
    pub triggers: Vec<Trigger>,
    /// The consumed events with a correlation, of all versions. Such events are kept for instances that start later.
    pub consumed: Vec<EventMatch>,
    /// The workflows of `consumed`, in the same order.
    pub owners: Vec<Arc<str>>,
    /// All events that start instances or that instances wait for, of all versions. Deleted ones are included, since an
    /// instance may start while a definition is being deleted.
    pub listeners: Listeners,
    /// The listeners among them whose instances need no worker.
    pub data_listeners: Listeners,
}

/// A deployed definition.
#[derive(Debug)]
pub struct Deployed {
    pub head: DefinitionHead,
    /// The parsed schedule.
    pub calendar: Option<Calendar>,
}

impl Deployed {
    pub fn new(head: DefinitionHead) -> Deployed {
        // Deployment rejects invalid schedules.
        let schedule = head.interests.schedule.as_ref();
        let calendar = schedule.and_then(|schedule| Calendar::new(schedule).ok());
        Deployed { head, calendar }
    }

    pub fn id(&self) -> &DefinitionId {
        &self.head.id
    }

    pub fn deployed_at(&self) -> Timestamp {
        self.head.deployed_at
    }

    /// Whether the schedule creates instances. Instances of a workflow that begins with an event state are started by
    /// events instead (docs/language.md#decision-90).
    pub fn starts_by_schedule(&self) -> bool {
        self.calendar.is_some() && self.head.interests.trigger.is_none()
    }
}

impl Catalog {
    /// Applies changes in order.
    pub(crate) fn after(&self, revision: u64, changed: Vec<Arc<Deployed>>) -> Catalog {
        let mut seen: HashSet<&DefinitionId> = HashSet::new();
        // Go from the newest to the oldest, since a definition that changed while the pages were read occurs more than
        // once.
        let newest = changed.iter().rev().chain(self.all.iter().rev());
        let mut all: Vec<Arc<Deployed>> = newest
            .filter(|one| seen.insert(one.id()))
            .cloned()
            .collect();
        all.reverse();
        Catalog::new(revision, all)
    }

    fn new(revision: u64, all: Vec<Arc<Deployed>>) -> Catalog {
        let mut latest: HashMap<&str, usize> = HashMap::new();
        // An operator's choice holds until another version is deployed.
        let mut activated: HashMap<&str, Timestamp> = HashMap::new();
        for one in all.iter().filter(|one| one.head.deleted.is_none()) {
            if let Some(at) = one.head.activated {
                let last = activated.entry(&one.id().workflow).or_insert(at);
                *last = at.max(*last);
            }
        }
        for (place, one) in all.iter().enumerate() {
            let chosen = activated.get(&*one.id().workflow);
            let is_passed_over = chosen
                .is_some_and(|at| one.head.activated != Some(*at) && one.deployed_at() <= *at);
            if one.head.deleted.is_some() || is_passed_over {
                continue;
            }
            let best = latest.entry(&one.id().workflow).or_insert(place);
            if is_newer(one, &all[*best]) {
                *best = place;
            }
        }
        let mut newer_until: HashMap<Arc<str>, Timestamp> = HashMap::new();
        for one in &all {
            let id = one.id();
            if let Some(deleted) = &one.head.deleted
                && let Some(best) = latest.get(&*id.workflow)
                && was_newer(one, &all[*best])
            {
                let until = newer_until.entry(id.workflow.clone()).or_insert(deleted.at);
                *until = (*until).max(deleted.at);
            }
        }
        let mut places: Vec<usize> = latest.into_values().collect();
        places.sort_unstable();
        let latest: Vec<Arc<Deployed>> = places.iter().map(|place| all[*place].clone()).collect();
        let in_use = |one: &&Arc<Deployed>| one.head.deleted.as_ref().is_none_or(|d| d.in_use);
        let consumed = all.iter().filter(in_use).flat_map(|one| {
            let events = one.head.interests.consumed.iter();
            events.map(|event| (&event.filter, &one.id().workflow))
        });
        let correlated = consumed.filter(|(filter, _)| !filter.correlation.is_empty());
        let (consumed, owners) = correlated
            .map(|(filter, workflow)| (filter.clone(), workflow.clone()))
            .unzip();
        let places = |all: &[Arc<Deployed>]| {
            let ids = all.iter().enumerate();
            ids.map(|(place, one)| (one.id().clone(), place)).collect()
        };
        let workflows = latest.iter().enumerate();
        let filters = |one: &Arc<Deployed>| {
            let consumed = one
                .head
                .interests
                .consumed
                .iter()
                .map(|event| &event.filter);
            let trigger = one.head.interests.trigger.iter();
            let all = consumed.chain(trigger.flat_map(|trigger| &trigger.events));
            all.cloned().collect::<Vec<EventMatch>>()
        };
        let listeners = Listeners::new(all.iter().flat_map(filters));
        let data = all.iter().filter(|one| one.head.interests.needs_no_worker);
        let data_listeners = Listeners::new(data.flat_map(filters));
        Catalog {
            revision,
            newer_until,
            by_id: places(&all),
            by_workflow: workflows
                .map(|(place, one)| (one.id().workflow.clone(), place))
                .collect(),
            triggers: latest
                .iter()
                .filter_map(|one| one.head.interests.trigger.clone())
                .collect(),
            consumed,
            owners,
            listeners,
            data_listeners,
            latest,
            all,
        }
    }

    /// The definitions that are not deleted, in the order of their last change.
    pub fn open(&self) -> impl Iterator<Item = &Arc<Deployed>> {
        self.all.iter().filter(|one| one.head.deleted.is_none())
    }

    /// All definitions, including deleted ones, in the order of their last change.
    pub fn all(&self) -> &[Arc<Deployed>] {
        &self.all
    }

    /// A definition, deleted or not.
    pub fn one(&self, id: &DefinitionId) -> Option<&Arc<Deployed>> {
        self.by_id.get(id).map(|place| &self.all[*place])
    }

    /// The instant until which a newer version of the workflow was the latest one, if that has been deleted.
    pub fn latest_since(&self, one: &Deployed) -> Option<Timestamp> {
        self.newer_until.get(&one.id().workflow).copied()
    }

    /// The latest version of a workflow.
    pub fn latest_of(&self, workflow: &str) -> Option<&Arc<Deployed>> {
        let place = self.by_workflow.get(workflow)?;
        Some(&self.latest[*place])
    }
}

/// Like [`is_newer`], for a deleted definition: the order of changes no longer says which one was deployed first.
fn was_newer(one: &Deployed, best: &Deployed) -> bool {
    let parse = |one: &Deployed| semver::Version::parse(&one.id().version);
    match (parse(one), parse(best)) {
        (Ok(one), Ok(best)) if one.cmp_precedence(&best).is_ne() => one > best,
        _ => one.deployed_at() >= best.deployed_at(),
    }
}

/// Whether `one` is later in the order of docs/language.md#decision-50. It was deployed after `best`.
fn is_newer(one: &Deployed, best: &Deployed) -> bool {
    let parse = |one: &Deployed| semver::Version::parse(&one.id().version);
    match (parse(one), parse(best)) {
        (Ok(new), Ok(old)) => new.cmp_precedence(&old).is_ge(),
        _ => true,
    }
}
