//! Operation state (0.8, "Operation State"): actions, in sequence or in parallel. Also `call` and `run` (DSL 1.0, "Call"
//! and "Run"), a list of one.

use swirl_model::CloudEvent;
use swirl_model::workflow::{EventId, ListId};

use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for ListId {
    fn begin(&self, _: &mut At<'_, '_>) -> Step {
        Ok(Next::List(*self))
    }

    /// It ends the repetition of an action.
    fn arrived(&self, at: &mut At<'_, '_>, _: EventId, _: CloudEvent) -> Step {
        at.stop_repeating();
        Ok(Next::Block)
    }
}
