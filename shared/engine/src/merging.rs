//! Results and payloads on their way into the state data (decisions 9 to 11).

use swirl_model::merge::merge;
use swirl_model::scope::Merge;
use swirl_model::workflow::{EventFilter, EventId, PathId};
use swirl_model::{CloudEvent, Data, WorkflowError, error::names};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub fn merge_into_data(&mut self, to: Option<PathId>, value: &Data) -> Step {
        let data = self.merged(to, value)?;
        self.set_data(data);
        Ok(())
    }

    /// The state data with a value merged into it.
    pub fn merged(&self, to: Option<PathId>, value: &Data) -> Result<Data, WorkflowError> {
        let mismatch = |error: swirl_model::merge::Mismatch| {
            WorkflowError::new(names::MERGE_TYPE_MISMATCH, error.to_string())
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

    /// Merges what the actions of a branch produced.
    pub fn replay(&mut self, merges: Vec<Merge>) -> Step {
        for merge in merges {
            self.merge_into_data(merge.to, &merge.value)?;
        }
        Ok(())
    }

    /// Merges an event's data through its filter.
    pub fn merge_event(&mut self, filter: &EventFilter, def: EventId, event: &CloudEvent) -> Step {
        if filter.ignore {
            return Ok(());
        }
        let payload = self.payload(def, event);
        let value = match filter.data {
            Some(expression) => self.view().eval(expression, &payload)?.unwrap_or_default(),
            None => payload,
        };
        if value.is_null() {
            return Ok(());
        }
        self.merge_into_data(filter.to, &value)
    }
}
