//! Compensation (0.8, "Workflow Compensation"; docs/language.md#decision-35 and #decision-52): the completed executions
//! of states with `compensatedBy`, last first, then the way that triggered it.

use swirl_model::WorkflowError;
use swirl_model::event::Event;
use swirl_model::scope::{Compensation, Exit, FinishFrom, Position, Purpose, Work};
use swirl_model::workflow::StateId;

use crate::scope::{Ctx, Next};

impl Ctx<'_> {
    pub fn compensate(&mut self, then: Exit) -> Next {
        let left = self.scope.completed.clone();
        let names = left
            .iter()
            .rev()
            .map(|state| self.def.workflow[*state].name.clone());
        let names = names.collect();
        self.emit(Event::Compensating { states: names });
        let purpose = self.purpose();
        self.emit(Event::Compensation(Some(Compensation {
            left,
            then,
            of: self.scope.state(),
            purpose,
        })));
        self.compensate_next()
    }

    pub fn compensate_next(&mut self) -> Next {
        let Some(mut compensation) = self.scope.compensation.clone() else {
            return Next::Block;
        };
        while let Some(state) = compensation.left.pop() {
            if let Some(by) = self.def.workflow[state].compensated_by {
                self.emit(Event::Compensation(Some(compensation)));
                return Next::Enter(by, Purpose::Compensation);
            }
        }
        self.emit(Event::Compensation(None));
        self.emit(Event::Compensated);
        if let Some(id) = state_of(compensation.then).or(compensation.of) {
            self.return_to(id, compensation.then, compensation.purpose);
        }
        Next::Onward(compensation.then, compensation.purpose)
    }

    /// Faults the scope at a way, so that a retry continues with the way.
    pub(crate) fn fail_onward(&mut self, way: Exit, purpose: Purpose, error: WorkflowError) {
        // The way of an action belongs to the current state.
        if let Some(id) = state_of(way).or(self.scope.state()) {
            self.return_to(id, way, purpose);
        }
        self.fail(error);
    }

    /// Returns the scope to the state that the way leaves, with its work done.
    pub(crate) fn return_to(&mut self, id: StateId, way: Exit, purpose: Purpose) {
        self.move_to(Position {
            state: Some(id),
            purpose,
            entered: true,
            work: Work::Finish {
                way,
                from: FinishFrom::Onward,
            },
            events: None,
            attempts: Vec::new(),
            task: None,
        });
    }
}

/// Whether a handler took the way: then the handlers of the same state aren't tried again.
pub(crate) fn is_handlers(way: Exit) -> bool {
    matches!(way, Exit::Handler(..) | Exit::Action(..))
}

/// The state that a way leaves. The way of an action doesn't know it: `None`.
pub(crate) fn state_of(way: Exit) -> Option<StateId> {
    match way {
        Exit::Action(..) => None,
        Exit::State(id)
        | Exit::Handler(id, _)
        | Exit::Condition(id, _)
        | Exit::EventCondition(id, _)
        | Exit::Default(id)
        | Exit::Entry(id, _) => Some(id),
    }
}
