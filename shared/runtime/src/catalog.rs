//! The deployed definitions as the store last reported them, without documents and without compiled definitions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use swirl_model::event::EventMatch;
use swirl_model::ids::DefinitionId;
use swirl_model::schedule::Calendar;
use swirl_model::time::Timestamp;
use swirl_ports::matching::Listeners;
use swirl_ports::{DefinitionHead, Interests, Trigger};

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
    /// The starting event states of the latest versions.
    pub triggers: Vec<Trigger>,
    /// The consumed events with a correlation, of all versions. Such events are kept for instances that start later.
    pub consumed: Vec<EventMatch>,
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
    pub interests: Interests,
    /// The parsed schedule.
    pub calendar: Option<Calendar>,
}

impl Deployed {
    pub fn new(head: DefinitionHead, interests: Interests) -> Deployed {
        // Deployment rejects invalid schedules.
        let schedule = interests.schedule.as_ref();
        let calendar = schedule.and_then(|schedule| Calendar::new(schedule).ok());
        Deployed {
            head,
            interests,
            calendar,
        }
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
        self.calendar.is_some() && self.interests.trigger.is_none()
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
        for (place, one) in all.iter().enumerate() {
            if one.head.deleted.is_some() {
                continue;
            }
            let best = latest.entry(&one.id().workflow).or_insert(place);
            if is_newer(one, &all[*best]) {
                *best = place;
            }
        }
        let mut places: Vec<usize> = latest.into_values().collect();
        places.sort_unstable();
        let latest: Vec<Arc<Deployed>> = places.iter().map(|place| all[*place].clone()).collect();
        let in_use = |one: &&Arc<Deployed>| one.head.deleted.as_ref().is_none_or(|d| d.in_use);
        let consumed = all
            .iter()
            .filter(in_use)
            .flat_map(|one| &one.interests.consumed);
        let correlated = consumed.filter(|event| !event.filter.correlation.is_empty());
        let places = |all: &[Arc<Deployed>]| {
            let ids = all.iter().enumerate();
            ids.map(|(place, one)| (one.id().clone(), place)).collect()
        };
        let workflows = latest.iter().enumerate();
        let filters = |one: &Arc<Deployed>| {
            let consumed = one.interests.consumed.iter().map(|event| &event.filter);
            let trigger = one.interests.trigger.iter();
            let all = consumed.chain(trigger.flat_map(|trigger| &trigger.events));
            all.cloned().collect::<Vec<EventMatch>>()
        };
        let listeners = Listeners::new(all.iter().flat_map(filters));
        let data = all.iter().filter(|one| one.interests.needs_no_worker);
        let data_listeners = Listeners::new(data.flat_map(filters));
        Catalog {
            revision,
            by_id: places(&all),
            by_workflow: workflows
                .map(|(place, one)| (one.id().workflow.clone(), place))
                .collect(),
            triggers: latest
                .iter()
                .filter_map(|one| one.interests.trigger.clone())
                .collect(),
            consumed: correlated.map(|event| event.filter.clone()).collect(),
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

    /// The latest version of a workflow.
    pub fn latest_of(&self, workflow: &str) -> Option<&Arc<Deployed>> {
        let place = self.by_workflow.get(workflow)?;
        Some(&self.latest[*place])
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
