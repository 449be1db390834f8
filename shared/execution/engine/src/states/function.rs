//! `call` of a function that is defined as a task (DSL 1.0, "Call", "Custom Functions").

use swirl_model::workflow::TaskFunction;

use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for TaskFunction {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        if let Some(template) = &self.input {
            let input = at.view().template(template, at.data())?;
            at.put_data(input)?;
        }
        at.push_frame(None, None)?;
        Ok(Next::Tasks(self.body))
    }
}
