//! `do` (DSL 1.0, "Do"): tasks in a list.

use swirl_model::workflow::FlowId;

use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for FlowId {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        at.push_frame(None, None)?;
        Ok(Next::Tasks(*self))
    }
}
