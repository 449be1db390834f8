//! Compensation (0.8, "Workflow Compensation"; decisions 35 and 52): the completed executions of
//! states with `compensatedBy`, last first, then the way that triggered it.

use swirl_model::event::Event;
use swirl_model::scope::{Compensation, Purpose, Way};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub fn compensate(&mut self, then: Way) -> Step {
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
            purpose,
        })));
        self.compensate_next()
    }

    pub fn compensate_next(&mut self) -> Step {
        let Some(mut compensation) = self.scope.compensation.clone() else {
            return Ok(());
        };
        while let Some(state) = compensation.left.pop() {
            if let Some(by) = self.def.workflow[state].compensated_by {
                self.emit(Event::Compensation(Some(compensation)));
                self.enter(by, Purpose::Compensation);
                return Ok(());
            }
        }
        self.emit(Event::Compensation(None));
        self.emit(Event::Compensated);
        self.proceed(compensation.then, compensation.purpose)
    }
}
