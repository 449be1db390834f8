//! The tasks of DSL 1.0 that began in an instance.

use std::collections::BTreeMap;

use swirl_engine::Definition;
use swirl_model::event::Event;
use swirl_spec::Reading;

use crate::observed::ObservedInstance;
use crate::order::in_document_order;

/// The places of the tasks of each definition, by state. Tasks of functions and extensions have none.
pub type Places = BTreeMap<String, Vec<Option<String>>>;

pub fn places_of(readings: &[(String, Reading)]) -> Places {
    let workflows = readings
        .iter()
        .filter_map(|(_, reading)| reading.workflow.as_ref());
    let of_tasks = workflows.filter(|workflow| workflow.tasks.is_some());
    of_tasks
        .map(|workflow| {
            let states = workflow.states.iter().map(|state| {
                let task = state.task.as_ref();
                let is_inner = task.is_some_and(|task| task.is_inner);
                (!is_inner).then(|| state.pointer.clone())
            });
            (Definition::id_of(workflow).to_string(), states.collect())
        })
        .collect()
}

impl ObservedInstance {
    /// Lists the tasks that began, if its workflow has tasks.
    pub fn take_tasks(&mut self, places: &Places) {
        let Some(places) = places.get(&self.definition) else {
            return;
        };
        self.is_of_tasks = true;
        let began = self.history.iter().filter_map(|entry| match &entry.event {
            Event::StateEntered { state, name, .. } => {
                let place = places.get(state.0 as usize)?.clone()?;
                Some((entry, (name.to_string(), place)))
            }
            _ => None,
        });
        let mut began: Vec<_> = began.collect();
        in_document_order(&mut began, |(entry, _)| (entry.at, &entry.scope));
        self.tasks = began.into_iter().map(|(_, task)| task).collect();
    }
}
