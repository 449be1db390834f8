//! Switch state over data (0.8, "Switch State"): the first true condition wins.

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::scope::Way;
use swirl_model::workflow::{StateId, Switch};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_switch(&mut self, id: StateId, switch: &Switch) -> Step {
        for (index, condition) in switch.conditions.iter().enumerate() {
            let view = self.view();
            let holds = if condition.existence {
                view.eval(condition.test, &self.scope.data)?
                    .is_some_and(|found| exists(&found))
            } else {
                view.condition(condition.test, &self.scope.data)?
            };
            if holds {
                return self.finish(Way::Condition(id, index as u16));
            }
        }
        match switch.default {
            Some(_) => self.finish(Way::Default(id)),
            None => Err(no_match()),
        }
    }
}

/// In the JSONPath editions a condition holds if anything is selected.
fn exists(found: &swirl_model::Data) -> bool {
    match (found.as_array(), found.as_bool()) {
        (Some(items), _) => !items.is_empty(),
        (_, Some(value)) => value,
        _ => !found.is_null(),
    }
}

pub(super) fn no_match() -> WorkflowError {
    let message = "no condition holds, and the state has no default";
    WorkflowError::new(names::NO_MATCHING_CONDITION, message)
}
