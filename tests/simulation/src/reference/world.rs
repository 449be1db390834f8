//! The environment of an instance: definitions, events, and other instances.

use std::cell::RefCell;
use std::collections::BTreeMap;

use swirl_model::workflow::{Correlation, EventDef, EventId, StateKind, Workflow};
use swirl_model::{CloudEvent, Data};

use super::data::{Params, template};
use super::errors::Fail;
use super::flow::{Instance, is_open};

/// Later than anything else.
pub const NEVER: i64 = i64::MAX / 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub workflow: String,
    pub status: &'static str,
    pub output: Data,
    pub error: Option<String>,
    /// The time of its end.
    pub at: i64,
    /// The number of mismatches with schemas that only warn.
    pub warned: usize,
}

pub struct World {
    definitions: BTreeMap<String, Workflow>,
    /// With the times of their arrival.
    events: RefCell<Vec<(i64, CloudEvent)>>,
    outcomes: RefCell<Vec<Outcome>>,
    /// Events that start instances together with others, which are still missing.
    pending: RefCell<BTreeMap<String, Vec<CloudEvent>>>,
    pub produced: RefCell<usize>,
}

/// The end of a sub-workflow.
pub struct Ended {
    pub at: i64,
    pub result: Result<Data, Fail>,
}

impl World {
    pub fn new(workflows: Vec<Workflow>, events: Vec<(i64, CloudEvent)>) -> World {
        let named = workflows.into_iter().map(|wf| (wf.id.clone(), wf));
        World {
            definitions: named.collect(),
            events: RefCell::new(events),
            outcomes: RefCell::default(),
            pending: RefCell::default(),
            produced: RefCell::default(),
        }
    }

    /// Runs a workflow, and everything that follows from it.
    pub fn run(self, workflow: &str, input: Data) -> Vec<Outcome> {
        let events = self.events.borrow().clone();
        for (at, event) in events {
            self.start_by(&event, at);
        }
        self.start(workflow, input, 0, Vec::new());
        self.outcomes.into_inner()
    }

    pub fn start(
        &self,
        workflow: &str,
        input: Data,
        at: i64,
        events: Vec<CloudEvent>,
    ) -> Option<Ended> {
        let wf = self.definitions.get(workflow)?;
        if let Some(schedule) = &wf.schedule
            && schedule.exclusive
            && !is_open(schedule, at)
        {
            let result = Err(Fail::named("StartRefused").at(at));
            return Some(Ended { at, result });
        }
        let mut instance = Instance::new(self, wf, input, events);
        let ended = instance.run(at);
        let (status, output, error) = match &ended.result {
            _ if ended.at >= NEVER => ("waiting", Data::NULL, None),
            Ok(output) => ("completed", output.clone(), None),
            Err(fail) => ("faulted", Data::NULL, Some(fail.name.clone())),
        };
        // Children that continue as long as their parent does.
        for child in std::mem::take(&mut instance.with_parent) {
            self.outcomes.borrow_mut().push(Outcome {
                workflow: child,
                status: "terminated",
                output: Data::NULL,
                error: None,
                at: ended.at,
                warned: 0,
            });
        }
        self.outcomes.borrow_mut().push(Outcome {
            workflow: workflow.to_owned(),
            status,
            output,
            error,
            at: ended.at,
            warned: instance.warned,
        });
        if let Some((next, input)) = instance.goes_on_as.take() {
            self.start(&next, input, ended.at, Vec::new());
        }
        Some(ended)
    }

    /// Publishes a produced event: it starts instances, and is kept for later waits.
    pub fn publish(&self, event: CloudEvent, at: i64) {
        *self.produced.borrow_mut() += 1;
        self.events.borrow_mut().push((at, event.clone()));
        self.start_by(&event, at);
    }

    fn start_by(&self, event: &CloudEvent, at: i64) {
        let starts: Vec<&String> = self
            .definitions
            .iter()
            .filter(|(_, wf)| starts_with(wf, event))
            .map(|(name, _)| name)
            .collect();
        for workflow in starts {
            let Some(wf) = self.definitions.get(workflow) else {
                continue;
            };
            let mut pending = self.pending.borrow_mut();
            let events = pending.entry(workflow.clone()).or_default();
            events.push(event.clone());
            if !is_complete(wf, events) {
                continue;
            }
            let events = std::mem::take(events);
            drop(pending);
            self.start(workflow, Data::object(), at, events);
        }
    }

    /// The earliest time at or after `at` at which an event for this definition is available, and the event.
    pub fn arrival(
        &self,
        wf: &Workflow,
        id: EventId,
        data: &Data,
        at: i64,
        had: &[String],
    ) -> Result<Option<(i64, CloudEvent)>, Fail> {
        let def = &wf[id];
        let mut wanted: Vec<(&Correlation, Option<String>)> = Vec::new();
        for rule in &def.correlation {
            let value = match &rule.value {
                Some(value) => template(wf, value, data, &Params::new())?,
                None => Data::NULL,
            };
            wanted.push((rule, (!value.is_null()).then(|| value.to_text())));
        }
        let events = self.events.borrow();
        let fitting = events.iter().filter(|(came, event)| {
            let early = *came < at;
            is_kind(def, event)
                && !had.contains(&event.id)
                && (!early || !wanted.is_empty())
                && wanted.iter().all(|(rule, value)| {
                    let is = event.attribute(&rule.attribute);
                    is.is_some() && (value.is_none() || *value == is)
                })
        });
        let first = fitting.min_by_key(|(came, _)| *came);
        Ok(first.map(|(came, event)| (at.max(*came), event.clone())))
    }
}

pub fn is_kind(def: &EventDef, event: &CloudEvent) -> bool {
    !def.produced
        && def
            .source
            .as_ref()
            .is_none_or(|source| *source == event.source)
        && def.kind.as_ref().is_none_or(|kind| *kind == event.kind)
}

fn starts_with(wf: &Workflow, event: &CloudEvent) -> bool {
    let start = wf[Workflow::ROOT].start;
    let StateKind::Event(state) = &wf[start].kind else {
        return false;
    };
    let mut events = state.entries.iter().flat_map(|entry| &entry.events);
    events.any(|id| is_kind(&wf[*id], event))
}

/// Whether these events are enough to start an instance.
fn is_complete(wf: &Workflow, events: &[CloudEvent]) -> bool {
    let StateKind::Event(state) = &wf[wf[Workflow::ROOT].start].kind else {
        return false;
    };
    let mut held = state.entries.iter().map(|entry| {
        entry.wait.holds(&|place| {
            let def = entry.events.get(usize::from(place)).map(|id| &wf[*id]);
            def.is_some_and(|def| events.iter().any(|event| is_kind(def, event)))
        })
    });
    match state.exclusive {
        true => held.any(|held| held),
        false => held.all(|held| held),
    }
}
