//! What there is besides one instance: definitions, events, the other instances.

use std::cell::RefCell;
use std::collections::BTreeMap;

use swirl_model::workflow::{Correlation, EventDef, EventId, StateKind, Workflow};
use swirl_model::{CloudEvent, Data};

use super::data::{Params, template};
use super::flow::{Fail, Instance};

/// Later than anything.
pub const NEVER: i64 = i64::MAX / 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub workflow: String,
    pub status: &'static str,
    pub output: Data,
    pub error: Option<String>,
}

pub struct World {
    definitions: BTreeMap<String, Workflow>,
    /// With the time of their arrival.
    events: RefCell<Vec<(i64, CloudEvent)>>,
    outcomes: RefCell<Vec<Outcome>>,
    pub produced: RefCell<usize>,
}

/// How a sub-workflow ended.
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
            produced: RefCell::default(),
        }
    }

    /// Runs a workflow with all that follows from it.
    pub fn run(self, workflow: &str, input: Data) -> Vec<Outcome> {
        self.start(workflow, input, 0, None);
        self.outcomes.into_inner()
    }

    pub fn start(
        &self,
        workflow: &str,
        input: Data,
        at: i64,
        event: Option<CloudEvent>,
    ) -> Option<Ended> {
        let wf = self.definitions.get(workflow)?;
        let mut instance = Instance::new(self, wf, input, event);
        let ended = instance.run(at);
        let (status, output, error) = match &ended.result {
            _ if ended.at >= NEVER => ("waiting", Data::NULL, None),
            Ok(output) => ("completed", output.clone(), None),
            Err(fail) => ("faulted", Data::NULL, Some(fail.name.clone())),
        };
        // What goes on for as long as its parent does.
        for child in std::mem::take(&mut instance.with_parent) {
            self.outcomes.borrow_mut().push(Outcome {
                workflow: child,
                status: "terminated",
                output: Data::NULL,
                error: None,
            });
        }
        self.outcomes.borrow_mut().push(Outcome {
            workflow: workflow.to_owned(),
            status,
            output,
            error,
        });
        if let Some((next, input)) = instance.goes_on_as.take() {
            self.start(&next, input, ended.at, None);
        }
        Some(ended)
    }

    /// An event that is produced starts what it starts, and waits for who waits for it.
    pub fn publish(&self, event: CloudEvent, at: i64) {
        *self.produced.borrow_mut() += 1;
        self.events.borrow_mut().push((at, event.clone()));
        let starts: Vec<&String> = self
            .definitions
            .iter()
            .filter(|(_, wf)| starts_with(wf, &event))
            .map(|(name, _)| name)
            .collect();
        for workflow in starts {
            self.start(workflow, Data::object(), at, Some(event.clone()));
        }
    }

    /// When an event of this definition is there, at `at` or later, and which one.
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

fn is_kind(def: &EventDef, event: &CloudEvent) -> bool {
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
