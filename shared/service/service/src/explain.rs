//! Explains an event that may not have been sent: the instances that would receive it, and the reasons why others
//! would not.
//!
//! It only reads. Receivers of an event are found by examining running instances, newest first and only up to a
//! limit: [`Explained::complete`] says whether those were all.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use swirl_api::events::{Consumed, Differing, Explained, NonReceiver, Receiver, Why, WouldStart};
use swirl_engine::Definition;
use swirl_model::event::{EventMatch, source_fits};
use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_model::instance::{Instance, Status};
use swirl_model::scope::{Cursor, Scope};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data};
use swirl_ports::matching::{
    Correlation, Fit, Role, addressee, attributes_to_keep, fit, has_all, roles,
};
use swirl_ports::{Filter, InstanceQueries, Trigger};

use crate::reach::{near_miss, unknown_type};
use crate::{Error, Service};

/// The maximum number of instances that are examined.
const SEEN_MAX: usize = 500;
/// The number of instances that are examined at a time.
const AT_ONCE: usize = 16;
/// The maximum number of receivers in the result, and of non-receivers.
const NAMED_MAX: usize = 50;

/// The findings so far.
#[derive(Default)]
struct Examination {
    explained: Explained,
    misses: Vec<Miss>,
}

/// A definition or instance that consumes events of this type but would not receive this one.
struct Miss {
    definition: DefinitionId,
    /// `None` if the definition itself would not be started.
    instance: Option<InstanceId>,
    event: String,
    mismatches: Vec<Mismatch>,
    /// The number of further instances of the definition to which the same applies.
    others: usize,
}

/// The reason why an event isn't received.
#[derive(PartialEq, Eq)]
enum Mismatch {
    /// The attribute has another value, or is missing.
    Attribute {
        name: String,
        wanted: Option<String>,
        got: Option<String>,
        /// Where the event has it instead.
        near: Option<String>,
    },
    /// An instance with these correlation values runs. It would get the event if it waited for it.
    Runs(InstanceId),
    /// The schedule allows no start at this time.
    Closed,
    /// The event names another instance.
    Addressed(InstanceId),
    /// An expression or a regular expression of the filter doesn't fit.
    Test,
    /// The instance produced this event itself, and waits for the answer to it.
    Own,
    /// The instance doesn't wait for this event now.
    NotWaiting,
}

impl Service {
    /// Explains which instances would receive this event, among all instances or only the given one.
    ///
    /// # Errors
    /// The store failed.
    pub async fn explain_event(
        &self,
        queries: &dyn InstanceQueries,
        event: &CloudEvent,
        only: Option<&InstanceId>,
    ) -> Result<Explained, Error> {
        let catalog = self.registry.catalog().await?;
        let named = addressee(event);
        let mut found = Examination::default();
        found.explained.kept = !attributes_to_keep(event, &catalog.consumed).is_empty();
        found.explained.complete = true;
        let mut latest = Vec::new();
        for one in &catalog.latest {
            let mut consumed = one.head.interests.consumed.iter().map(|one| &one.filter);
            let is_kind =
                |filter: &EventMatch| filter.kind.as_ref().is_none_or(|kind| *kind == event.kind);
            let trigger = one.head.interests.trigger.iter();
            let mut trigger = trigger.flat_map(|trigger| &trigger.events);
            if consumed.any(is_kind) || trigger.any(is_kind) {
                latest.push(self.registry.get(one.id()).await?);
            }
        }
        let instances = match only.or(named.as_ref()) {
            Some(id) => queries.view(id).await?.into_iter().collect(),
            None => who_may_wait(queries, &latest, &mut found).await?,
        };
        found.explained.instances_seen = instances.len();
        for (instance, scopes) in &instances {
            self.look(event, instance, scopes, named.as_ref(), &mut found)
                .await?;
        }
        if only.is_none() {
            let open = self.open_triggers(&catalog);
            let open = open.as_deref().unwrap_or(&catalog.triggers);
            for trigger in &catalog.triggers {
                let is_open = open.iter().any(|one| one.definition == trigger.definition);
                let definition = latest.iter().find(|one| one.id == trigger.definition);
                if let Some(definition) = definition {
                    let named = named.as_ref();
                    trigger_of(
                        event, trigger, definition, is_open, named, &instances, &mut found,
                    );
                }
            }
        }
        if latest.is_empty() && only.is_none() {
            found.explained.unknown_type = Some(unknown_type(event, &catalog));
        }
        let mut misses = grouped(found.misses);
        // The nearest ones come first.
        misses.sort_by_key(Miss::distance);
        misses.truncate(NAMED_MAX);
        let mut explained = found.explained;
        explained.not_taken_by = misses.into_iter().map(NonReceiver::from).collect();
        explained.taken_by.truncate(NAMED_MAX);
        Ok(explained)
    }

    /// Determines whether this instance would receive the event, and if not, why.
    async fn look(
        &self,
        event: &CloudEvent,
        instance: &Instance,
        scopes: &[Scope],
        named: Option<&InstanceId>,
        found: &mut Examination,
    ) -> Result<(), Error> {
        let (header, state) = (&instance.header, &instance.state);
        let definition = self.registry.get(&header.definition).await?;
        let workflow = &definition.workflow;
        let miss = |name: &str, mismatches| Miss {
            definition: header.definition.clone(),
            instance: Some(header.id.clone()),
            event: name.to_owned(),
            mismatches,
            others: 0,
        };
        let mut misses = Vec::new();
        for scope in scopes.iter().filter(|scope| !scope.ended()) {
            let slots = scope.waits().flat_map(|wait| &wait.slots);
            for filter in slots.flat_map(|slot| &slot.filters) {
                let def = workflow.events.get(filter.def.0 as usize);
                let name = def.map_or("", |def| &*def.name);
                let other = named.filter(|id| **id != header.id);
                if other.is_none() && fit(filter, &state.correlation, event) != Fit::No {
                    found.explained.taken_by.push(Receiver {
                        consumed: consumed(&header.definition, name),
                        instance: header.id.to_string(),
                        state: state_of(&definition, scope),
                    });
                    return Ok(());
                }
                if filter.kind.as_ref().is_none_or(|kind| *kind == event.kind) {
                    let mut why = differences(filter, &state.correlation, event);
                    why.extend(other.map(|id| Mismatch::Addressed(id.clone())));
                    misses.push(miss(name, why));
                }
            }
        }
        if misses.is_empty() {
            let mut events = workflow.events.iter();
            let consumed = events.find(|def| {
                !def.produced && def.kind.as_ref().is_none_or(|kind| *kind == event.kind)
            });
            let name = consumed.map_or("", |def| &*def.name);
            misses.push(miss(name, vec![Mismatch::NotWaiting]));
        }
        found.misses.extend(misses);
        Ok(())
    }
}

/// Finds running instances of the workflows that consume events of this type.
async fn who_may_wait(
    queries: &dyn InstanceQueries,
    consuming: &[Arc<Definition>],
    found: &mut Examination,
) -> Result<Vec<(Instance, Vec<Scope>)>, Error> {
    let mut all = Vec::new();
    for definition in consuming {
        let left = SEEN_MAX - all.len();
        let filter = Filter {
            workflow: Some(definition.id.workflow.to_string()),
            statuses: vec![Status::Running],
            limit: left + 1,
            ..Filter::default()
        };
        let page = queries.list(&filter).await?;
        found.explained.complete &= page.len() <= left;
        let views: Vec<_> = stream::iter(page.into_iter().take(left))
            .map(async |row| {
                let view = queries.view(&row.header.id).await?;
                Ok::<_, Error>(view.map(without_data))
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        for view in views {
            all.extend(view?);
        }
    }
    Ok(all)
}

/// Only what an instance waits for is compared, and hundreds are kept at a time.
fn without_data((mut instance, mut scopes): (Instance, Vec<Scope>)) -> (Instance, Vec<Scope>) {
    Arc::make_mut(&mut instance.header).input = Data::NULL;
    for scope in &mut scopes {
        scope.data = Data::NULL;
        (scope.result, scope.context) = (None, None);
        scope.params.clear();
        for frame in &mut scope.frames {
            frame.iteration = None;
            if let Some(run) = &mut frame.listen {
                run.queue.clear();
                run.raw = None;
            }
        }
    }
    (instance, scopes)
}

fn state_of(definition: &Definition, scope: &Scope) -> Option<String> {
    let Cursor::At(position) = &scope.cursor else {
        return None;
    };
    let state = definition.workflow.states.get(position.state?.0 as usize)?;
    Some(state.name.to_string())
}

/// Records how a trigger would treat the event.
fn trigger_of(
    event: &CloudEvent,
    trigger: &Trigger,
    definition: &Definition,
    is_open: bool,
    named: Option<&InstanceId>,
    instances: &[(Instance, Vec<Scope>)],
    found: &mut Examination,
) {
    let name = |filter: &EventMatch| {
        let def = definition.workflow.events.get(filter.def.0 as usize);
        def.map_or("", |def| &*def.name).to_owned()
    };
    let miss = |event: String, mismatches| Miss {
        definition: trigger.definition.clone(),
        instance: None,
        event,
        mismatches,
        others: 0,
    };
    let tested = |role: &Role| {
        !trigger.events[role.place].offers
            || definition
                .fits_start(role.place, event, Timestamp(0))
                .is_some()
    };
    let roles: Vec<Role> = roles(trigger, event).into_iter().filter(tested).collect();
    if let Some(role) = roles.first() {
        let event = name(&trigger.events[role.place]);
        let bound = roles.iter().filter(|role| role.bound);
        let mut runs = bound.filter_map(|role| {
            let is_one = |(one, _): &&(Instance, Vec<Scope>)| {
                one.header.definition.workflow == trigger.definition.workflow
                    && one.state.status == Status::Running
                    && has_all(&one.state.correlation, &role.values)
            };
            instances.iter().find(is_one)
        });
        if let Some(id) = named {
            found
                .misses
                .push(miss(event, vec![Mismatch::Addressed(id.clone())]));
        } else if let Some((instance, _)) = runs.next() {
            let why = Mismatch::Runs(instance.header.id.clone());
            found.misses.push(miss(event, vec![why]));
        } else if is_open {
            found.explained.starts.push(WouldStart {
                consumed: consumed(&trigger.definition, &event),
                alone: trigger.exclusive || trigger.events.len() == 1,
            });
        } else {
            found.misses.push(miss(event, vec![Mismatch::Closed]));
        }
        return;
    }
    let near = trigger
        .events
        .iter()
        .filter(|filter| filter.kind.as_ref().is_none_or(|kind| *kind == event.kind));
    let mut said = BTreeSet::new();
    for filter in near {
        let event_name = name(filter);
        if said.insert(event_name.clone()) {
            let mut why = differences(filter, &Correlation::new(), event);
            if why.is_empty() && filter.offers {
                why.push(Mismatch::Test);
            }
            found.misses.push(miss(event_name, why));
        }
    }
}

/// The reasons why an event of the right type doesn't match.
fn differences(filter: &EventMatch, known: &Correlation, event: &CloudEvent) -> Vec<Mismatch> {
    let mut why = Vec::new();
    if let Some(source) = &filter.source
        && !source_fits(source, &event.source)
    {
        why.push(Mismatch::Attribute {
            name: "source".to_owned(),
            wanted: Some(source.clone()),
            got: Some(event.source.clone()),
            near: None,
        });
    }
    if filter.except.as_ref() == Some(&event.id) {
        why.push(Mismatch::Own);
    }
    for (attribute, explicit) in filter.attributes.iter().chain(&filter.correlation) {
        let lower = attribute.to_ascii_lowercase();
        let wanted = explicit.clone().or_else(|| known.get(&*lower).cloned());
        let got = event.attribute(attribute);
        let differs = match (&wanted, &got) {
            (Some(wanted), got) => got.as_ref() != Some(wanted),
            (None, got) => got.is_none(),
        };
        if differs {
            why.push(Mismatch::Attribute {
                near: near_miss(event, attribute),
                name: lower,
                wanted,
                got,
            });
        }
    }
    why
}

/// Instances that differ in nothing but their ids are listed once.
fn grouped(all: Vec<Miss>) -> Vec<Miss> {
    let mut groups: Vec<Miss> = Vec::new();
    for one in all {
        let is_same = |group: &&mut Miss| {
            group.definition == one.definition
                && group.event == one.event
                && group.instance.is_some() == one.instance.is_some()
                && group.mismatches == one.mismatches
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.others += 1,
            None => groups.push(one),
        }
    }
    groups
}

impl Miss {
    /// How far the event is from being received: the nearer it is, the likelier is this the receiver that was meant.
    fn distance(&self) -> u32 {
        self.mismatches.iter().map(Mismatch::distance).sum()
    }
}

impl Mismatch {
    fn distance(&self) -> u32 {
        match self {
            // Probably a mistake in the event.
            Mismatch::Attribute { near: Some(_), .. } => 1,
            Mismatch::Attribute { got: None, .. } | Mismatch::Closed | Mismatch::Runs(_) => 2,
            // Another instance is meant, or another sender.
            Mismatch::Attribute { .. } => 4,
            Mismatch::Test => 3,
            Mismatch::Own | Mismatch::Addressed(_) => 6,
            Mismatch::NotWaiting => 8,
        }
    }

    /// The reason as a sentence.
    fn text(&self) -> String {
        match self {
            Mismatch::Attribute {
                name,
                wanted,
                near: Some(near),
                ..
            } => match wanted {
                Some(wanted) => format!("it has no '{name}', and '{wanted}' is expected: {near}"),
                None => format!("it has no '{name}', by which events are correlated: {near}"),
            },
            Mismatch::Attribute {
                name,
                wanted: Some(wanted),
                got: Some(got),
                ..
            } => format!("its '{name}' is '{got}', and '{wanted}' is expected"),
            Mismatch::Attribute {
                name,
                wanted: Some(wanted),
                got: None,
                ..
            } => format!("it has no '{name}', and '{wanted}' is expected"),
            Mismatch::Attribute { name, .. } => {
                format!("it has no '{name}', by which events are correlated")
            }
            Mismatch::Runs(id) => format!("instance {id} with this correlation runs already"),
            Mismatch::Closed => "the schedule allows no start now".to_owned(),
            Mismatch::Addressed(id) => format!("it names the instance {id}"),
            Mismatch::Test => "the filter doesn't take it".to_owned(),
            Mismatch::Own => "it is the event to which the instance expects an answer".to_owned(),
            Mismatch::NotWaiting => "the instance doesn't wait for such an event now".to_owned(),
        }
    }
}

fn consumed(id: &DefinitionId, event: &str) -> Consumed {
    Consumed {
        workflow: id.workflow.to_string(),
        version: id.version.to_string(),
        event: event.to_owned(),
    }
}

impl From<Miss> for NonReceiver {
    fn from(miss: Miss) -> NonReceiver {
        NonReceiver {
            consumed: consumed(&miss.definition, &miss.event),
            instance: miss.instance.map(|id| id.to_string()),
            others: miss.others,
            why: miss.mismatches.into_iter().map(Why::from).collect(),
        }
    }
}

impl From<Mismatch> for Why {
    fn from(mismatch: Mismatch) -> Why {
        Why {
            text: mismatch.text(),
            attribute: match mismatch {
                Mismatch::Attribute {
                    name, wanted, got, ..
                } => Some(Differing {
                    attribute: name,
                    expected: wanted,
                    found: got,
                }),
                _ => None,
            },
        }
    }
}
