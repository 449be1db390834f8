//! Entering a state.

use swirl_model::event::Event;
use swirl_model::scope::{Position, Purpose};
use swirl_model::workflow::StateId;

use crate::scope::Ctx;

impl Ctx<'_> {
    pub fn enter(&mut self, state: StateId, purpose: Purpose) {
        let found = &self.def.workflow[state];
        let name = found.name.clone();
        // The state has nothing to do before its work.
        let is_task = found.task.is_some();
        let entered = found.input.is_none() && found.input_schema.is_none() && !is_task;
        // A task may be skipped, so it isn't entered yet.
        if !is_task {
            self.emit(Event::StateEntered {
                state,
                name,
                purpose,
            });
        }
        self.move_to(Position::at(state, purpose, entered));
    }
}
