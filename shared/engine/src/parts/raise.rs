//! The path of errors: to the state's handlers, otherwise to the waiting scope or instance.

use swirl_model::WorkflowError;
use swirl_model::scope::{Exit, RetriedBy};
use swirl_model::workflow::{State, StateId, Then};

use crate::scope::{Ctx, Next, Step};

impl Ctx<'_> {
    /// Processes an error that no handler inside the state has taken.
    pub fn raise(&mut self, mut error: WorkflowError) -> Next {
        if self.has_tasks() {
            return self.raise_in_tasks(error);
        }
        let def = self.def;
        let Some((id, state)) = self.state() else {
            self.fail(error);
            return Next::Block;
        };
        if error.state.is_none() {
            error.state = Some(state.name.to_string());
        }
        let state = &def.workflow[id];
        let error = self.described(error, &state.pointer);
        self.handled(id, state, error).unwrap_or_else(|other| {
            if !self.repeats_past(&other) {
                self.fail(other);
            }
            Next::Block
        })
    }

    /// Tries the retry rules of the state first, then its handlers. Returns the error if none of them takes it.
    fn handled(&mut self, id: StateId, state: &State, error: WorkflowError) -> Step {
        let asked_ms = error.retry_after_ms.map_or(0, u64::from);
        for (index, rule) in state.retries.iter().enumerate() {
            if self.fits(&rule.errors, &error)? {
                let by = RetriedBy::StateRule(index as u16);
                if self.retry_state(state, &rule.policy, by, asked_ms)? {
                    return Ok(Next::Block);
                }
                break;
            }
        }
        let sets = state.on_errors.iter().map(|handler| &handler.errors);
        let Some(index) = self.first_fit(sets, &error)? else {
            return Err(error);
        };
        let handler = &state.on_errors[usize::from(index)];
        if let Some(retry) = &handler.retry {
            let by = RetriedBy::StateHandler(index);
            let repeated = match retry.source {
                true => self.retry_source(state, &retry.policy, by, asked_ms)?,
                false => self.retry_state(state, &retry.policy, by, asked_ms)?,
            };
            if repeated {
                return Ok(Next::Block);
            }
        }
        match &handler.then {
            Then::Rethrow => return Err(error),
            Then::Throw(throw) => return Err(self.thrown(throw, &error)?),
            Then::Continue | Then::Next(_) => {}
        }
        if let Some(filter) = &handler.data {
            self.merge_error(filter, &error)?;
        }
        Ok(self.leave_by(Exit::Handler(id, index), error))
    }
}
