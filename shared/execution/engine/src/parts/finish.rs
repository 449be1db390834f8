//! The end of a state.

use swirl_model::WorkflowError;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{
    BranchResult, Cursor, Exit, FinishFrom, Purpose, RetriedBy, Role, TimerKind, Work,
};
use swirl_model::workflow::State;

use crate::parts::compensation::is_handlers;
use crate::scope::validation::Checked;
use crate::scope::{Ctx, Next, Step};

impl Ctx<'_> {
    /// Ends a state whose work is done: applies the output filter, then takes the way. After an error the data stays as
    /// the work left it (docs/language.md#decision-66), and a retry continues here.
    pub fn finish(&mut self, way: Exit) -> Step {
        if let Some((id, state)) = self.state()
            && let Some(task) = &state.task
        {
            return self.finish_task(id, task, way);
        }
        let unfiltered = self.scope.data.clone();
        let mut from = FinishFrom::Output;
        let step = self.finish_from(way, &mut from);
        if step.is_err() {
            if from == FinishFrom::Output {
                self.set_data(unfiltered);
            }
            self.work(Work::Finish { way, from });
        }
        step
    }

    /// An operator retries a step that failed after a state's work.
    pub(crate) fn resume_finish(&mut self, way: Exit, from: FinishFrom) -> Step {
        match from {
            FinishFrom::Output => self.finish(way),
            FinishFrom::Exit if is_handlers(way) => Ok(self.take_left(way)),
            FinishFrom::Exit => self.take(way),
            FinishFrom::Onward => {
                let purpose = self.purpose();
                Ok(Next::Onward(way, purpose))
            }
        }
    }

    /// Takes the way of a handler after leaving the state, so that a further error no longer belongs to the state.
    pub(crate) fn take_left(&mut self, way: Exit) -> Next {
        self.take(way).unwrap_or_else(|mut error| {
            if error.state.is_none() {
                error.state = self.state().map(|(_, state)| state.name.to_string());
            }
            let from = FinishFrom::Exit;
            self.work(Work::Finish { way, from });
            self.fail(error);
            Next::Block
        })
    }

    fn finish_from(&mut self, way: Exit, from: &mut FinishFrom) -> Step {
        let def = self.def;
        let Some((id, _)) = self.state() else {
            return Ok(Next::Block);
        };
        let state = &def.workflow[id];
        if !state.retries.is_empty() && self.retried_by_rule(state)? {
            return Ok(Next::Block);
        }
        if let Some(filter) = state.output
            && let Some(data) = self.view().eval(filter, &self.scope.data)?
            && !data.is_null()
        {
            self.put_data(data)?;
        }
        if let (_, Some(schema)) = &def.state_schemas[id.0 as usize] {
            let data = self.scope.data.clone();
            self.validate(schema, &data, Checked::Output)?;
        }
        // The way's expressions are evaluated now, while an error in them still belongs to the state.
        self.prepared = self.prepare(way)?;
        *from = FinishFrom::Exit;
        self.disarm(|kind| !matches!(kind, TimerKind::Workflow | TimerKind::Branch));
        self.unsubscribe();
        self.drop_held();
        self.emit(Event::StateLeft {
            state: id,
            name: state.name.clone(),
            failed: false,
        });
        if state.compensated_by.is_some() && self.purpose() == Purpose::Main {
            self.emit(Event::Completed(id));
        }
        self.take(way)
    }

    /// Whether a rule treats the outcome of the state's work as a failure and retries it.
    fn retried_by_rule(&mut self, state: &State) -> Result<bool, WorkflowError> {
        for (index, rule) in state.retries.iter().enumerate() {
            if rule.results && self.fits_result(&rule.errors, &self.scope.data)? {
                let by = RetriedBy::StateRule(index as u16);
                return self.retry_state(state, &rule.policy, by, 0);
            }
        }
        Ok(false)
    }

    /// Leaves the state by the way of an action's handler, and ends all other work of the state.
    pub(crate) fn leave_by(&mut self, way: Exit, error: WorkflowError) -> Next {
        self.abandon();
        let Some((id, state)) = self.state() else {
            self.disarm(|_| true);
            self.emit(Event::Moved(Cursor::Ended));
            match self.scope.role {
                Role::Apart { .. } | Role::Detached { .. } => {
                    self.emit(Event::BranchFailed {
                        error: error.clone(),
                    });
                }
                _ => {}
            }
            self.command(match self.scope.role {
                Role::Detached { .. } => Command::Drop,
                _ => Command::Report(BranchResult::Left { way, error }),
            });
            return Next::Block;
        };
        self.emit(Event::LastError(Some(error.clone())));
        self.emit(Event::ErrorHandled {
            error,
            handler: Some(way),
        });
        self.drop_held();
        self.emit(Event::StateLeft {
            state: id,
            name: state.name.clone(),
            failed: true,
        });
        self.take_left(way)
    }
}
