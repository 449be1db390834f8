//! A function call (0.8, "FunctionRef Definition").
//!
//! The arguments are evaluated where the call is made (`request`), so no record contains the secrets in them. The
//! scope's data doesn't change while the call is under way, so a repeated call has the same arguments.

use swirl_model::error::names;
use swirl_model::scope::{ActionStep, ListRun, TimerKind};
use swirl_model::workflow::{Action, Call};
use swirl_model::{Data, WorkflowError};

use crate::scope::{Ctx, Next, Rejection, Step};

impl Ctx<'_> {
    pub(crate) fn attempt_call(
        &mut self,
        mut run: ListRun,
        action: &Action,
        kind: &Call,
        call: u32,
    ) -> Step {
        if kind.detached && !self.is_detached() {
            self.detach(&run, call)
                .map_err(|error| self.error_of(action, error))?;
            self.list(run);
            return Ok(Next::Done(None));
        }
        if let Some(timeout) = &action.timeout
            && let Err(error) = self.arm(TimerKind::Action, timeout)
        {
            self.list(run);
            return Ok(Next::failed(error));
        }
        run.key = run.key.or(Some(call));
        run.step = ActionStep::Call {
            call,
            at: self.now(),
        };
        self.list(run);
        Ok(Next::Block)
    }

    pub(crate) fn call_done(
        &mut self,
        call: u32,
        result: Result<Data, WorkflowError>,
    ) -> Result<Next, Rejection> {
        if self.scope.pending_call() != Some(call) {
            return Err(Rejection::CallOver);
        }
        Ok(match result {
            Ok(data) => Next::Done(Some(data)),
            Err(error) => Next::failed(error),
        })
    }

    /// An operator's retry also repeats a call that failed while the instance was faulted, unless nothing waits for the
    /// call.
    pub(crate) fn call_failed_meanwhile(
        &mut self,
        call: u32,
        error: Option<WorkflowError>,
    ) -> Result<Next, Rejection> {
        if self.scope.pending_call() != Some(call) {
            return Err(Rejection::CallOver);
        }
        let error = error.unwrap_or_else(|| {
            let message = "the call failed while the instance was faulted";
            WorkflowError::new(names::FUNCTION_ERROR, message)
        });
        if self.is_detached() {
            return self.call_done(call, Err(error));
        }
        self.disarm(|kind| kind == TimerKind::Action);
        if let Some((mut run, action)) = self.current_action() {
            let error = self.described(error, &action.pointer);
            self.attempt_failed(&run, action, error, Some(0));
            run.attempt = 0;
            run.waited_ms = 0;
            // The failure was a definite answer, so the next attempt is a new call.
            run.key = None;
            run.retried = Vec::new();
            run.step = ActionStep::Attempt;
            self.list(run);
        }
        Ok(Next::Block)
    }
}
