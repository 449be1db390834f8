//! Switch state over data (0.8, "Switch State"): the first true condition wins.

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::scope::Exit;
use swirl_model::workflow::{StateId, Switch};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_switch(&mut self, id: StateId, switch: &Switch) -> Step {
        for (index, condition) in switch.conditions.iter().enumerate() {
            if self.view().test(&condition.test, &self.scope.data)? {
                return self.finish(Exit::Condition(id, index as u16));
            }
        }
        match switch.default {
            Some(_) => self.finish(Exit::Default(id)),
            None => Err(no_match()),
        }
    }
}

pub(super) fn no_match() -> WorkflowError {
    let message = "no condition holds, and the state has no default";
    WorkflowError::new(names::NO_MATCHING_CONDITION, message)
}
