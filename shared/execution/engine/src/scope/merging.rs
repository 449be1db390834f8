//! Merges results and payloads into the state data (docs/language.md#decision-9, #decision-10 and #decision-11).

use swirl_model::error::names;
use swirl_model::merge::merge;
use swirl_model::scope::Merge;
use swirl_model::workflow::{EventFilter, EventId, ExprId, PathId, Under, UnderWhen};
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::scope::{Check, Ctx};

impl Ctx<'_> {
    pub fn merge_into_data(&mut self, to: Option<PathId>, value: &Data) -> Check {
        let data = self.merged(to, value)?;
        self.put_data(data)
    }

    /// The state data with a value merged into it.
    pub fn merged(&self, to: Option<PathId>, value: &Data) -> Result<Data, WorkflowError> {
        let mismatch = |error: swirl_model::merge::Mismatch| {
            let message = match self.def.workflow.merge_hint {
                "" => error.to_string(),
                hint => format!("{error}; {hint}"),
            };
            WorkflowError::new(names::MERGE_TYPE_MISMATCH, message)
        };
        let Some(path) = to else {
            let mut data = self.scope.data.clone();
            merge(&mut data, value).map_err(mismatch)?;
            return Ok(data);
        };
        let view = self.view();
        let mut target = view.get(path, &self.scope.data)?;
        merge(&mut target, value).map_err(mismatch)?;
        view.set(path, &self.scope.data, target)
    }

    /// The state data with an action's result in it.
    pub fn with_merge(&self, merge: &Merge) -> Result<Data, WorkflowError> {
        let data = match (merge.replace, merge.to) {
            // There is nothing to merge, but the existing data may still be filtered.
            (false, _) if merge.value.is_null() => self.scope.data.clone(),
            (false, to) => self.merged(to, &merge.value)?,
            (true, to) => self.merged_or_put(to, &merge.value)?,
        };
        self.through(merge.output, data)
    }

    /// Merges an object into an existing object. In all other cases the value replaces the existing one.
    fn merged_or_put(&self, to: Option<PathId>, value: &Data) -> Result<Data, WorkflowError> {
        if value.is_object() {
            match self.merged(to, value) {
                Err(error) if error.name == names::MERGE_TYPE_MISMATCH => {}
                merged => return merged,
            }
        }
        match to {
            None => Ok(value.clone()),
            Some(path) => self.view().set(path, &self.scope.data, value.clone()),
        }
    }

    /// A filter that selects nothing leaves the data unchanged.
    fn through(&self, filter: Option<ExprId>, data: Data) -> Result<Data, WorkflowError> {
        let Some(filter) = filter else {
            return Ok(data);
        };
        let found = self.view().eval(filter, &data)?;
        Ok(found.filter(|found| !found.is_null()).unwrap_or(data))
    }

    /// Merges the results of the actions of a branch.
    pub fn replay(&mut self, merges: Vec<Merge>) -> Check {
        for merge in merges {
            let data = self.with_merge(&merge)?;
            self.put_data(data)?;
        }
        Ok(())
    }

    /// Merges an event's data through its filter.
    pub fn merge_event(&mut self, filter: &EventFilter, def: EventId, event: &CloudEvent) -> Check {
        if filter.ignore {
            return Ok(());
        }
        let payload = self.payload(def, event);
        let under = filter.under.as_ref();
        let mut value = self.filtered(filter.data, under, filter.to, payload)?;
        if filter.or_whole && value.is_null() {
            value = self.filtered(filter.data, under, filter.to, event.to_data())?;
        }
        let data = match value.is_null() {
            true => self.scope.data.clone(),
            false => self.merged(filter.to, &value)?,
        };
        let data = self.through(filter.output, data)?;
        self.put_data(data)
    }

    /// The part of a result or payload to merge. Null means that nothing is merged.
    pub(crate) fn filtered(
        &self,
        filter: Option<ExprId>,
        under: Option<&Under>,
        to: Option<PathId>,
        value: Data,
    ) -> Result<Data, WorkflowError> {
        let selected = match filter {
            Some(filter) => self.view().eval(filter, &value)?.unwrap_or_default(),
            None => value.clone(),
        };
        let Some(under) = under else {
            return Ok(selected);
        };
        let selected = match under.when {
            UnderWhen::NotObject if to.is_some() || selected.is_object() => return Ok(selected),
            UnderWhen::Always if selected.is_null() && !value.is_object() => value,
            UnderWhen::NotObject | UnderWhen::Always => selected,
        };
        if selected.is_null() {
            return Ok(selected);
        }
        let mut named = Data::object();
        named.set(&under.key, selected);
        Ok(named)
    }

    /// The data of an event: its payload, or the whole event with `dataOnly: false`.
    pub(crate) fn payload(&self, def: swirl_model::workflow::EventId, event: &CloudEvent) -> Data {
        if self.def.workflow[def].data_only {
            event.data.clone().unwrap_or_default()
        } else {
            event.to_data()
        }
    }
}
