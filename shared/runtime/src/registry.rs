//! Definitions, compiled once in each process and cached.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use swirl_engine::{Definition, Sizes};
use swirl_model::event::EventMatch;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Period, StateKind, Template, Wait, Workflow};
use swirl_ports::{DefinitionRecord, Definitions, Trigger};

use crate::Error;
use crate::rates::{Rates, StartLimits};

/// Turns a stored document into its canonical workflow: given by the binary.
pub type Lower = Box<dyn Fn(&DefinitionRecord) -> Result<Workflow, String> + Send + Sync>;

pub struct Registry {
    store: Arc<dyn Definitions>,
    lower: Lower,
    cache: Mutex<Cache>,
    /// Counts who has asked what is deployed.
    asked: AtomicU64,
    answer: futures::lock::Mutex<Answer>,
    sizes: Sizes,
    rates: Rates,
}

/// What the store last said is deployed.
struct Answer {
    /// Those who asked before the store was asked, by their number: to them it is an answer.
    before: u64,
    index: Result<Arc<Index>, Error>,
}

#[derive(Default)]
struct Cache {
    /// With the digest of what they were compiled from.
    compiled: HashMap<DefinitionId, (String, Arc<Definition>)>,
    index: Option<Arc<Index>>,
    catalog: Option<Arc<Catalog>>,
    /// How often this process has deployed something.
    inserted: u64,
}

/// What is deployed.
#[derive(Debug)]
struct Index {
    revision: u64,
    /// In the order of deployment; of those that were deleted, which are in use.
    all: Vec<DefinitionId>,
    /// Those that were not deleted.
    open: HashSet<DefinitionId>,
    /// The latest version of each workflow, with the time of its deployment.
    latest: Vec<(DefinitionId, Timestamp)>,
}

/// What all deployed definitions together listen to.
#[derive(Debug, Default)]
pub struct Catalog {
    /// The latest version of each workflow, with the time of its deployment.
    pub latest: Vec<(Arc<Definition>, Timestamp)>,
    /// Starting event states of the latest versions.
    pub triggers: Vec<Trigger>,
    /// Consumed events with a correlation, of all versions: these are kept for those who come
    /// later.
    pub consumed: Vec<EventMatch>,
}

/// No such workflow, or not in this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no workflow '{workflow}'{}", version.as_ref().map(|v| format!(" in version {v}")).unwrap_or_default())]
pub struct Unknown {
    pub workflow: String,
    pub version: Option<String>,
}

impl Registry {
    pub fn new(store: Arc<dyn Definitions>, lower: Lower) -> Registry {
        Registry {
            store,
            lower,
            cache: Mutex::default(),
            asked: AtomicU64::new(0),
            answer: futures::lock::Mutex::new(Answer {
                before: 0,
                index: Ok(Arc::new(Index::new(0, &[]))),
            }),
            sizes: Sizes::default(),
            rates: Rates::default(),
        }
    }

    /// How large what definitions make may become.
    #[must_use]
    pub fn within(mut self, sizes: Sizes) -> Registry {
        self.sizes = sizes;
        self
    }

    /// How fast instances are started. Without it: as fast as it goes.
    #[must_use]
    pub fn starting(mut self, limits: StartLimits) -> Registry {
        self.rates = Rates::new(limits);
        self
    }

    /// Counts the starts of this process.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    pub fn store(&self) -> &Arc<dyn Definitions> {
        &self.store
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a definition that is compiled already into the cache; the catalog is made anew.
    pub fn insert(&self, definition: Arc<Definition>, digest: &str) {
        let mut cache = self.cache();
        let compiled = (digest.to_owned(), definition.clone());
        cache.compiled.insert(definition.id.clone(), compiled);
        cache.changed();
    }

    /// This process changed what is deployed: the catalog is made anew.
    pub fn changed(&self) {
        self.cache().changed();
    }

    pub async fn get(&self, id: &DefinitionId) -> Result<Arc<Definition>, Error> {
        if let Some((_, found)) = self.cache().compiled.get(id) {
            return Ok(found.clone());
        }
        let record = self.store.get(id).await?.ok_or_else(|| Error::Definition {
            id: id.to_string(),
            reason: "it isn't stored".to_owned(),
        })?;
        let compiled = self.compile(&record)?;
        let digested = (record.digest, compiled.clone());
        self.cache().compiled.insert(id.clone(), digested);
        Ok(compiled)
    }

    fn compile(&self, record: &DefinitionRecord) -> Result<Arc<Definition>, Error> {
        let broken = |reason| Error::Definition {
            id: record.id.to_string(),
            reason,
        };
        let workflow = (self.lower)(record).map_err(broken)?;
        let compiled = Definition::compile_within(workflow, self.sizes);
        let compiled = compiled.map(|definition| definition.deployed(record.deployed_at));
        compiled.map_err(|problems| {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            broken(texts.join("; "))
        })
    }

    /// The definition that a reference means: without a version the highest SemVer, or the latest
    /// deployed where versions are no SemVer (decision 50).
    pub async fn resolve(
        &self,
        workflow: &str,
        version: Option<&str>,
    ) -> Result<Result<Arc<Definition>, Unknown>, Error> {
        let found = match version {
            // One that this process doesn't know is always asked for: it may be new.
            Some(version) => {
                let id = DefinitionId {
                    workflow: workflow.into(),
                    version: version.into(),
                };
                let index = self.index().await?;
                index.open.contains(&id).then_some(id)
            }
            None => self.index().await?.latest(workflow),
        };
        match found {
            Some(id) => self.get(&id).await.map(Ok),
            None => Ok(Err(Unknown {
                workflow: workflow.to_owned(),
                version: version.map(ToOwned::to_owned),
            })),
        }
    }

    /// What is deployed: all that was when this was called, by whichever process. So a deployment is in
    /// force everywhere once it has been answered. One question to the store answers all who came
    /// before it was asked.
    async fn index(&self) -> Result<Arc<Index>, Error> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answer = self.answer.lock().await;
        if number >= answer.before {
            let before = self.asked.load(Ordering::SeqCst);
            let index = self.ask().await;
            *answer = Answer { before, index };
        }
        answer.index.clone()
    }

    async fn ask(&self) -> Result<Arc<Index>, Error> {
        let (known, inserted) = {
            let cache = self.cache();
            (cache.index.clone(), cache.inserted)
        };
        // Asked for before the list is read: what comes in between is read once more.
        let revision = self.store.revision().await?;
        if let Some(index) = known
            && index.revision == revision
        {
            return Ok(index);
        }
        let records = self.store.all().await?;
        let index = Arc::new(Index::new(revision, &records));
        let mut cache = self.cache();
        // One that was replaced is compiled anew when it is next asked for.
        for record in &records {
            let compiled = cache.compiled.get(&record.id);
            if compiled.is_some_and(|(digest, _)| *digest != record.digest) {
                cache.compiled.remove(&record.id);
            }
        }
        // What was read may be older than what this process deployed meanwhile.
        if cache.inserted == inserted {
            cache.index = Some(index.clone());
            cache.catalog = None;
        }
        Ok(index)
    }

    pub async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        let index = self.index().await?;
        {
            let cache = self.cache();
            // Not one of what somebody else has read since.
            if let (Some(catalog), Some(found)) = (&cache.catalog, &cache.index)
                && Arc::ptr_eq(found, &index)
            {
                return Ok(catalog.clone());
            }
        }
        let mut catalog = Catalog::default();
        for id in &index.all {
            catalog.consumed.extend(correlated(&*self.get(id).await?));
        }
        for (id, deployed_at) in &index.latest {
            let definition = self.get(id).await?;
            catalog.triggers.extend(trigger(&definition));
            catalog.latest.push((definition, *deployed_at));
        }
        let catalog = Arc::new(catalog);
        let mut cache = self.cache();
        // Not if something was deployed meanwhile.
        if let Some(found) = &cache.index
            && Arc::ptr_eq(found, &index)
        {
            cache.catalog = Some(catalog.clone());
        }
        Ok(catalog)
    }
}

impl Cache {
    fn changed(&mut self) {
        (self.index, self.catalog) = (None, None);
        self.inserted += 1;
    }
}

impl Index {
    fn new(revision: u64, records: &[DefinitionRecord]) -> Index {
        let mut latest: Vec<&DefinitionRecord> = Vec::new();
        let open = records.iter().filter(|record| record.deleted.is_none());
        for record in open.clone() {
            let mut found = latest.iter_mut();
            match found.find(|found| found.id.workflow == record.id.workflow) {
                Some(found) if is_newer(record, found) => *found = record,
                Some(_) => {}
                None => latest.push(record),
            }
        }
        Index {
            revision,
            all: records
                .iter()
                .filter(|record| record.deleted.as_ref().is_none_or(|deleted| deleted.in_use))
                .map(|record| record.id.clone())
                .collect(),
            open: open.map(|record| record.id.clone()).collect(),
            latest: latest
                .iter()
                .map(|record| (record.id.clone(), record.deployed_at))
                .collect(),
        }
    }

    fn latest(&self, workflow: &str) -> Option<DefinitionId> {
        let mut latest = self.latest.iter();
        latest
            .find(|(id, _)| *id.workflow == *workflow)
            .map(|(id, _)| id.clone())
    }
}

/// Later in the order of decision 50; `record` was deployed after `best`.
fn is_newer(record: &DefinitionRecord, best: &DefinitionRecord) -> bool {
    let parse = |record: &DefinitionRecord| semver::Version::parse(&record.id.version);
    match (parse(record), parse(best)) {
        (Ok(new), Ok(old)) => new.cmp_precedence(&old).is_ge(),
        _ => true,
    }
}

/// Constant correlation values are known at deployment; the others are a matter of each instance.
fn matcher(workflow: &Workflow, id: swirl_model::workflow::EventId) -> EventMatch {
    let def = &workflow[id];
    let constant = |template: &Option<Template>| match template {
        Some(Template::Literal(value)) => Some(value.to_text()),
        _ => None,
    };
    EventMatch {
        def: id,
        source: def.source.clone(),
        kind: def.kind.clone(),
        correlation: def
            .correlation
            .iter()
            .map(|rule| (rule.attribute.clone(), constant(&rule.value)))
            .collect(),
        except: None,
    }
}

fn correlated(definition: &Definition) -> Vec<EventMatch> {
    let events = definition.workflow.events.iter().enumerate();
    events
        .filter(|(_, def)| !def.produced && !def.correlation.is_empty())
        .map(|(index, _)| {
            matcher(
                &definition.workflow,
                swirl_model::workflow::EventId(index as u32),
            )
        })
        .collect()
}

fn trigger(definition: &Definition) -> Option<Trigger> {
    let workflow = &definition.workflow;
    let start = workflow[Workflow::ROOT].start;
    let StateKind::Event(state) = &workflow[start].kind else {
        return None;
    };
    let mut events: Vec<EventMatch> = Vec::new();
    for id in state.entries.iter().flat_map(|entry| &entry.events) {
        if !events.iter().any(|found| found.def == *id) {
            events.push(matcher(workflow, *id));
        }
    }
    let waits = state.entries.iter().map(|entry| {
        let place = |index: u16| {
            let id = entry.events.get(usize::from(index));
            let found = id.and_then(|id| events.iter().position(|event| event.def == *id));
            found.map_or(u16::MAX, |place| place as u16)
        };
        at_places(&entry.wait, &place)
    });
    let waits: Vec<Wait> = waits.collect();
    let wait = match state.exclusive {
        true => Wait::Any(waits),
        false => Wait::All(waits),
    };
    // Each of them alone is enough, whatever else is there.
    let any = !negates(&wait)
        && (0..events.len()).all(|place| wait.holds(&|found| usize::from(found) == place));
    let now = Timestamp(0);
    let ms = |period: Option<Period>| {
        let fixed = period.and_then(|period| definition.period_at_start(&period));
        fixed.map(|duration| duration.add_to(now).0.max(0) as u64)
    };
    let entries = state.entries.iter().map(|entry| ms(entry.timeout));
    let entries: Option<Vec<u64>> = entries.collect();
    let longest = entries.and_then(|all| all.into_iter().max());
    Some(Trigger {
        definition: definition.id.clone(),
        exclusive: any,
        events,
        wait,
        timeout_ms: ms(state.timeout).or(longest),
        timeout_restarts: state.timeout_restarts,
    })
}

/// A wait over other positions.
fn at_places(wait: &Wait, place: &dyn Fn(u16) -> u16) -> Wait {
    let all = |list: &[Wait]| list.iter().map(|wait| at_places(wait, place)).collect();
    match wait {
        Wait::Event(index) => Wait::Event(place(*index)),
        Wait::All(list) => Wait::All(all(list)),
        Wait::Any(list) => Wait::Any(all(list)),
        Wait::Not(wait) => Wait::Not(Box::new(at_places(wait, place))),
    }
}

fn negates(wait: &Wait) -> bool {
    match wait {
        Wait::Event(_) => false,
        Wait::All(list) | Wait::Any(list) => list.iter().any(negates),
        Wait::Not(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{EventDef, EventId, EventState, Flow, OnEvents, State, StateId};

    use super::*;

    fn starts(exclusive: bool, entries: Vec<(Vec<u32>, Wait)>) -> Trigger {
        let event = |name: &str| EventDef {
            name: name.into(),
            source: None,
            kind: Some(name.to_owned()),
            produced: false,
            correlation: Vec::new(),
            data_only: true,
            metadata: swirl_model::Data::NULL,
        };
        let entries = entries.into_iter().map(|(events, wait)| OnEvents {
            events: events.into_iter().map(EventId).collect(),
            wait,
            ..OnEvents::default()
        });
        let state = State {
            name: "S".into(),
            kind: StateKind::Event(EventState {
                exclusive,
                entries: entries.collect(),
                ..EventState::default()
            }),
            ..State::default()
        };
        let workflow = Workflow {
            id: "w".to_owned(),
            flows: vec![Flow {
                start: StateId(0),
                states: vec![StateId(0)],
                ..Flow::default()
            }],
            states: vec![state],
            events: ["a", "b", "c"].map(event).into(),
            ..Workflow::default()
        };
        trigger(&Definition::compile(workflow).unwrap()).unwrap()
    }

    fn complete(trigger: &Trigger, places: &[u16]) -> bool {
        trigger.wait.holds(&|place| places.contains(&place))
    }

    #[test]
    fn boolean_expressions_say_which_events_start() {
        let (a, b, c) = (Wait::Event(0), Wait::Event(1), Wait::Event(2));
        let both = Wait::All(vec![a.clone(), b.clone()]);
        let either = Wait::Any(vec![both, c]);
        let found = starts(true, vec![(vec![0, 1, 2], either)]);
        assert!(!found.exclusive);
        for (places, expected) in [
            (&[0][..], false),
            (&[1], false),
            (&[0, 1], true),
            (&[2], true),
            (&[], false),
        ] {
            assert_eq!(complete(&found, places), expected, "{places:?}");
        }
        let without = Wait::All(vec![a.clone(), Wait::Not(Box::new(b))]);
        let found = starts(true, vec![(vec![0, 1], without)]);
        assert!(!found.exclusive);
        assert!(complete(&found, &[0]) && !complete(&found, &[0, 1]));
        // Entries share positions of the whole state.
        let found = starts(false, vec![(vec![1], a.clone()), (vec![0], a.clone())]);
        assert!(!found.exclusive);
        assert!(complete(&found, &[0, 1]) && !complete(&found, &[1]));
        assert!(starts(true, vec![(vec![1], a.clone()), (vec![0], a)]).exclusive);
    }
}
