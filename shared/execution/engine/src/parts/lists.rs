//! Lists of actions, and repeated actions ([`Repeat`]).

use swirl_model::event::{Event, Slot};
use swirl_model::scope::{ActionStep, ForkOrigin, ListRun, Work};
use swirl_model::workflow::{Action, ActionKind, ExprId, ListId, Repeat};
use swirl_model::{Data, WorkflowError};

use crate::scope::next::Branches;
use crate::scope::{Check, Ctx};

impl<'a> Ctx<'a> {
    /// Begins a list of actions in the current state.
    pub fn begin_list(&mut self, list: ListId) -> Check {
        let actions = &self.def.workflow[list];
        let end = actions.actions.len() as u16;
        if actions.parallel && end > 1 {
            // They behave like branches with one action each (docs/language.md#decision-33).
            let total = end.into();
            return self.fork(Branches {
                origin: ForkOrigin::Actions(list),
                items: None,
                total,
                open: total,
                needed: total,
                pause: None,
            });
        }
        self.list(ListRun::new(list, 0, end));
        Ok(())
    }

    /// Begins a list of actions as the only work of this scope.
    pub fn begin_actions(&mut self, list: ListId) -> Check {
        self.begin_only(ListRun::new(list, 0, 0));
        self.begin_list(list)
    }

    /// Begins one action of a list as the only work of this scope.
    pub fn begin_action(&mut self, list: ListId, index: u16) {
        self.begin_only(ListRun::new(list, index, index + 1));
    }

    fn begin_only(&mut self, run: ListRun) {
        self.move_to(swirl_model::scope::Position {
            state: None,
            purpose: swirl_model::scope::Purpose::Main,
            entered: true,
            work: Work::List(run),
            events: None,
            attempts: Vec::new(),
            task: None,
        });
    }

    pub(crate) fn current_action(&self) -> Option<(ListRun, &'a Action)> {
        let (run, workflow) = (self.scope.list()?, &self.def.workflow);
        let id = *workflow[run.list].actions.get(usize::from(run.index))?;
        Some((run.clone(), &workflow[id]))
    }

    /// The data that an action sees: state data after `fromStateData`.
    pub(crate) fn action_data(&self, action: &Action) -> Result<Data, WorkflowError> {
        match action.from {
            Some(filter) => self.view().value(filter, &self.scope.data),
            None => Ok(self.scope.data.clone()),
        }
    }

    /// An action's name, or that of its function, event or sub-workflow.
    pub(crate) fn action_name(&self, action: &Action) -> String {
        match (&action.name, &action.kind) {
            (Some(name), _) => name.to_string(),
            (None, ActionKind::Call(call)) => self.def.workflow[call.function].name.to_string(),
            (None, ActionKind::Expression { function, .. }) => {
                self.def.workflow[*function].name.to_string()
            }
            (None, ActionKind::Event(event)) => {
                let produced = event.produce.as_ref().map(|produce| produce.event);
                let named = produced.or(event.consume).map(|id| &self.def.workflow[id]);
                named
                    .map(|event| event.name.to_string())
                    .unwrap_or_default()
            }
            (None, ActionKind::Subflow(subflow)) => subflow.workflow.clone(),
        }
    }

    /// An action has ended: repeats it, or begins the next one.
    pub(crate) fn again_or_next(&mut self, run: ListRun) -> Check {
        let id = self.def.workflow[run.list].actions[usize::from(run.index)];
        let Some(repeat) = self.def.workflow[id].repeat.clone() else {
            self.next_action(run);
            return Ok(());
        };
        let times = run.times.saturating_add(1);
        if run.stopped || repeat.max.is_some_and(|max| times >= max) {
            self.repeated(run, &repeat);
            return Ok(());
        }
        if let Some(test) = repeat.test
            && !repeat.before
            && !self.goes_on(test)?
        {
            self.repeated(run, &repeat);
            return Ok(());
        }
        self.list(ListRun {
            times,
            asked: run.asked,
            ..ListRun::new(run.list, run.index, run.end)
        });
        Ok(())
    }

    pub(crate) fn next_action(&mut self, run: ListRun) {
        self.list(ListRun::new(run.list, run.index + 1, run.end));
    }

    /// An action is not done any more.
    pub(crate) fn repeated(&mut self, run: ListRun, repeat: &Repeat) {
        if !repeat.stop_on.is_empty() {
            self.unsubscribe_state();
        }
        self.next_action(run);
    }

    /// Whether the action runs at all, checked before it begins.
    pub(crate) fn may_begin(&self, repeat: &Repeat) -> Result<bool, WorkflowError> {
        match repeat.test {
            Some(test) if repeat.before => self.goes_on(test),
            _ => Ok(true),
        }
    }

    /// Waits for the events that end a repetition, for as long as it lasts. A fault ends the wait, so each attempt
    /// checks for it.
    pub(crate) fn wait_to_stop(&mut self, run: &mut ListRun, repeat: &Repeat) -> Check {
        if repeat.stop_on.is_empty() || run.stopped || self.scope.wait.is_some() {
            return Ok(());
        }
        let mut filters = Vec::with_capacity(repeat.stop_on.len());
        for event in &repeat.stop_on {
            filters.extend(self.event_match(*event)?);
        }
        if self.take_held(&filters).is_some() {
            run.stopped = true;
            return Ok(());
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
        self.unsubscribe_answer();
        self.emit(Event::LastError(Some(error.clone())));
        self.emit(Event::ErrorHandled {
            error: error.clone(),
            handler: None,
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
