//! The states. Each kind has a file, and a line in [`Ctx::begin_state`].

mod callback;
mod event;
mod foreach;
mod inject;
mod operation;
mod parallel;
mod sleep;
mod switch;
mod switch_events;

use swirl_model::scope::TimerKind;
use swirl_model::workflow::StateKind;

use crate::ctx::{Ctx, Step};
use crate::validation::Checked;

pub(crate) use event::{failed_entry, missing_slots, slots_of};

impl Ctx<'_> {
    pub fn begin_state(&mut self) -> Step {
        let def = self.def.clone();
        let Some(id) = self.scope.state() else {
            return Ok(());
        };
        let state = &def.workflow[id];
        self.prepare_state(id, state)?;
        match &state.kind {
            StateKind::Callback(callback) => self.begin_callback(callback),
            StateKind::Event(event) => self.begin_event(event),
            StateKind::Foreach(foreach) => self.begin_foreach(id, foreach),
            StateKind::Inject(data) => self.begin_inject(id, data),
            StateKind::Operation(list) => self.begin_operation(*list),
            StateKind::Parallel(parallel) => self.begin_parallel(id, parallel),
            StateKind::Sleep(duration) => self.begin_sleep(duration),
            StateKind::Switch(switch) => self.begin_switch(id, switch),
            StateKind::SwitchEvents(switch) => self.begin_switch_events(switch),
        }
    }

    /// Arms the state's timeout, applies its input filter and checks its schema, unless this was done already.
    fn prepare_state(
        &mut self,
        id: swirl_model::workflow::StateId,
        state: &swirl_model::workflow::State,
    ) -> Step {
        if let Some(timeout) = &state.timeout
            && !self.is_armed(TimerKind::State)
        {
            self.arm(TimerKind::State, timeout)?;
        }
        let Some(position) = self.scope.position().filter(|position| !position.entered) else {
            return Ok(());
        };
        let mut position = position.clone();
        if let Some(filter) = state.input
            && let Some(data) = self.view().eval(filter, &self.scope.data)?
            && !data.is_null()
        {
            self.put_data(data)?;
        }
        let def = self.def.clone();
        if let (Some(schema), _) = &def.state_schemas[id.0 as usize] {
            let data = self.scope.data.clone();
            self.validate(schema, &data, Checked::Input)?;
        }
        position.entered = true;
        self.move_to(position);
        Ok(())
    }
}
