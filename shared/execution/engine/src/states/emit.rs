//! `emit` (DSL 1.0, "Emit"): the event is the output.

use swirl_model::workflow::Emit;

use super::{At, Kind};
use crate::scope::Step;

impl Kind for Emit {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        let event = at.emit_event(self)?;
        at.put_data(event)?;
        at.done()
    }
}
