//! The path of errors: to the state's handlers, otherwise to the waiting scope or instance.

use swirl_model::WorkflowError;
use swirl_model::scope::{Exit, RetriedBy, Role};
use swirl_model::workflow::{HandlerRetry, State, StateId, Then};

use crate::scope::{Ctx, Next, Step};

impl Ctx<'_> {
    /// Processes an error that no handler inside the state has taken.
    pub fn raise(&mut self, mut error: WorkflowError) -> Next {
        if self.has_tasks() {
            return self.raise_in_tasks(error);
        }
        let def = self.def;
        let Some((id, state)) = self.state() else {
            match self.repeated_around(&error) {
                Ok(true) => {}
                // The input of the workflow, for example.
                Ok(false) if self.scope.role == Role::Root => self.fail(self.described(error, "")),
                Ok(false) => self.fail(error),
                Err(other) => self.fail(other),
            }
            return Next::Block;
        };
        // Errors of actions are described already.
        let is_own = error.problem.is_none();
        if error.state.is_none() {
            error.state = Some(state.name.to_string());
        }
        let state = &def.workflow[id];
        let error = self.described(error, &state.pointer);
        self.handled(id, state, error, is_own)
            .unwrap_or_else(|other| {
                if !self.repeats_past(&other) {
                    self.fail(other);
                }
                Next::Block
            })
    }

    /// Whether a handler of the state around these actions repeats the failed one. That happens here, because only this
    /// scope knows when the action succeeds, and the others go on meanwhile (docs/language.md#decision-101).
    fn repeated_around(&mut self, error: &WorkflowError) -> Result<bool, WorkflowError> {
        let def = self.def;
        let around = match self.scope.role {
            Role::Detached { .. } | Role::Apart { .. } => None,
            _ => self.state_around(),
        };
        let Some(around) = around else {
            return Ok(false);
        };
        let handlers = &def.workflow[around].on_errors;
        let of_source = |retry: &&HandlerRetry| retry.source;
        let retries = |index: usize| handlers[index].retry.as_ref().filter(of_source);
        if (0..handlers.len()).all(|index| retries(index).is_none()) {
            return Ok(false);
        }
        let sets = handlers.iter().map(|handler| &handler.errors);
        let Some(index) = self.first_fit(sets, error)? else {
            return Ok(false);
        };
        match retries(usize::from(index)) {
            Some(retry) => {
                self.retry_action(&retry.policy, RetriedBy::StateHandler(index), asked(error))
            }
            None => Ok(false),
        }
    }

    /// Tries the retry rules of the state first, then its handlers. Returns the error if none of them takes it.
    fn handled(&mut self, id: StateId, state: &State, error: WorkflowError, is_own: bool) -> Step {
        let asked_ms = asked(&error);
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
            // If the action was in a branch, the branch has repeated it already.
            let repeated = match retry.source && !is_own {
                true => self.retry_action(&retry.policy, by, asked_ms)?,
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

/// The pause that a service asked for.
fn asked(error: &WorkflowError) -> u64 {
    error.retry_after_ms.map_or(0, u64::from)
}
