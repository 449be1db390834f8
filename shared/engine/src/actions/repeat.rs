//! Repeated actions ([`Repeat`]).

use swirl_model::WorkflowError;
use swirl_model::event::{Event, Slot};
use swirl_model::scope::{ActionStep, ListRun};
use swirl_model::workflow::{ExprId, Repeat};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    /// Whether the action runs at all, checked before it begins.
    pub(super) fn may_begin(&self, repeat: &Repeat) -> Result<bool, WorkflowError> {
        match repeat.test {
            Some(test) if repeat.before => self.goes_on(test),
            _ => Ok(true),
        }
    }

    /// An action has ended: repeats it, or begins the next one.
    pub(crate) fn again_or_next(&mut self, run: ListRun) -> Step {
        let id = self.def.workflow[run.list].actions[usize::from(run.index)];
        let Some(repeat) = self.def.workflow[id].repeat.clone() else {
            return self.next_action(run);
        };
        let times = run.times.saturating_add(1);
        if run.stopped || repeat.max.is_some_and(|max| times >= max) {
            return self.repeated(run, &repeat);
        }
        if let Some(test) = repeat.test
            && !repeat.before
            && !self.goes_on(test)?
        {
            return self.repeated(run, &repeat);
        }
        self.list(ListRun {
            times,
            ..ListRun::new(run.list, run.index, run.end)
        });
        Ok(())
    }

    /// An action is not done any more.
    pub(super) fn repeated(&mut self, run: ListRun, repeat: &Repeat) -> Step {
        if !repeat.stop_on.is_empty() {
            self.unsubscribe_state();
        }
        self.next_action(run)
    }

    /// Waits for the events that end a repetition, for as long as it lasts. A fault ends the wait, so each attempt
    /// checks for it.
    pub(super) fn wait_to_stop(&mut self, run: &ListRun, repeat: &Repeat) -> Step {
        if repeat.stop_on.is_empty() || run.stopped || self.scope.wait.is_some() {
            return Ok(());
        }
        let mut filters = Vec::with_capacity(repeat.stop_on.len());
        for event in &repeat.stop_on {
            filters.extend(self.event_match(*event)?);
        }
        self.subscribe(vec![Slot { slot: 0, filters }]);
        Ok(())
    }

    /// One of the events has arrived.
    pub(crate) fn stop_repeating(&mut self) {
        let Some(mut run) = self.scope.list().cloned() else {
            return;
        };
        run.stopped = true;
        self.list(run);
    }

    /// Whether a repetition continues after an error of its action that has no handler.
    pub(crate) fn repeats_past(&mut self, error: &WorkflowError) -> bool {
        let Some((run, action)) = self.current_action() else {
            return false;
        };
        // A failed test is an error of the repetition, not of the repeated action.
        let has_failed = run.step == ActionStep::Attempt && run.attempt > 0;
        let goes_on = action.repeat.as_ref().is_some_and(|rule| rule.past_errors);
        if !has_failed || !goes_on {
            return false;
        }
        self.emit(Event::LastError(Some(error.clone())));
        self.emit(Event::ErrorHandled {
            error: error.clone(),
        });
        match self.again_or_next(run) {
            Ok(()) => true,
            Err(error) => {
                self.fail(error);
                true
            }
        }
    }

    fn goes_on(&self, test: ExprId) -> Result<bool, WorkflowError> {
        self.view().condition(test, &self.scope.data)
    }
}
