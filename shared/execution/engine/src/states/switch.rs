//! Switch state over data (0.8, "Switch State") and `switch` (DSL 1.0, "Switch"): the first true condition wins.

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::scope::Exit;
use swirl_model::workflow::Switch;

use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for Switch {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        for (index, condition) in self.conditions.iter().enumerate() {
            if at.view().test(&condition.test, at.data())? {
                return Ok(Next::Finish(Exit::Condition(at.id, index as u16)));
            }
        }
        match self.default {
            Some(_) => Ok(Next::Finish(Exit::Default(at.id))),
            None => Err(no_match()),
        }
    }
}

pub(super) fn no_match() -> WorkflowError {
    let message = "no condition holds, and the state has no default";
    WorkflowError::new(names::NO_MATCHING_CONDITION, message)
}
