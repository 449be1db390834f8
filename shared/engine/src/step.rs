//! The entry point: one input, one outcome.

use std::sync::Arc;

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::Header;
use swirl_model::scope::{ActionStep, Cursor, Scope, TimerKind, Work};

use crate::ctx::{Ctx, Step};
use crate::definition::Definition;
use crate::env::Env;

/// The outcome of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The events have been applied to the scope; the commands are to be carried out.
    Accepted {
        events: Vec<Event>,
        commands: Vec<Command>,
    },
    /// The input doesn't apply, because it is late or was applied before. Nothing was changed.
    Rejected(Rejection),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("the scope has ended")]
    Ended,
    #[error("the timer isn't armed any more")]
    TimerDisarmed,
    #[error("the call isn't under way any more")]
    CallOver,
    #[error("nothing waits for this event any more")]
    WaitOver,
    #[error("the fork is over")]
    ForkOver,
    #[error("nothing has failed here")]
    NotFaulted,
    #[error("there is no such state")]
    UnknownState,
    #[error("no action has failed here, and only an action can be given a result")]
    NothingToSkip,
    #[error(
        "a branch has failed, which has its own data: rerun the state with the data that you want"
    )]
    NothingToEdit,
    #[error("the data is larger than a path of execution may have")]
    DataTooLarge,
    #[error("the state runs only for compensation or before the workflow's timeout")]
    NotOfMainFlow,
    #[error("this path of execution cannot continue by itself")]
    Blocked,
    #[error("it names something that the definition lacks")]
    Damaged,
}

/// The cost of expressions, in steps of their meter, at which a turn ends so that others have theirs. It takes about a
/// tenth of a second.
const TURN_WORK: u64 = 3_000_000;
/// A sleep too short to be a wait counts as this many steps.
const BRIEF_STEPS: u64 = 10;
/// Few steps have more events, and growing the list would move all of them.
const EVENTS_USUAL: usize = 16;

/// Gives a scope an input and runs it until it blocks.
pub fn step(
    def: &Arc<Definition>,
    header: &Header,
    scope: &mut Scope,
    input: Input,
    env: &Env,
) -> Outcome {
    if scope.ended() {
        return Outcome::Rejected(Rejection::Ended);
    }
    let mut ctx = Ctx {
        def,
        header,
        env,
        scope,
        events: Vec::with_capacity(EVENTS_USUAL),
        commands: Vec::new(),
        pause: false,
        prepared: None,
        searched: None,
    };
    let by_itself = matches!(input, Input::Wake);
    let brief = matches!(input, Input::Timer { seq } if seq == ctx.scope.brief);
    let waited = matches!(
        input,
        Input::Timer { .. }
            | Input::CallDone { .. }
            | Input::SubflowDone { .. }
            | Input::Event { .. }
            | Input::Joined { .. }
    );
    // This comes before the input, because the input may end the instance and start its continuation.
    let first_wait = waited && !brief && !ctx.scope.waited;
    if first_wait {
        ctx.emit(Event::Waited);
    }
    if let Err(rejection) = ctx.take_in(input) {
        if first_wait {
            ctx.scope.waited = false;
        }
        return Outcome::Rejected(rejection);
    }
    if brief {
        ctx.count_brief();
    } else if !by_itself && ctx.scope.steps > 0 {
        ctx.emit(Event::Steps(0));
    }
    ctx.run();
    ctx.leave_what_only_waits();
    ctx.index();
    Outcome::Accepted {
        events: ctx.events,
        commands: ctx.commands,
    }
}

impl Ctx<'_> {
    fn take_in(&mut self, input: Input) -> Result<(), Rejection> {
        let faulted = self.scope.fault.is_some();
        if !self.def.fits_input(&input) {
            return Err(Rejection::Damaged);
        }
        match input {
            Input::Wake if faulted || !self.can_go_on() => Err(Rejection::Blocked),
            Input::Wake => Ok(()),
            // A faulted instance has already ended, so only its branches are removed.
            Input::Cancel { .. } if faulted && self.scope.id.is_root() => Err(Rejection::Ended),
            Input::Cancel { status } => {
                self.cancel(status);
                Ok(())
            }
            Input::Retry => self.retry(None),
            Input::Skip { result } => self.retry(Some(result)),
            Input::Rerun { state } => self.rerun(&state),
            Input::Edit { state, data } => self.edit(state.as_deref(), data),
            _ if faulted => Err(Rejection::Ended),
            Input::Timer { seq } => self.timer(seq),
            Input::CallDone { call, result } => self.call_done(call, result),
            Input::CallFailedMeanwhile { call, error } => self.call_failed_meanwhile(call, error),
            Input::SubflowDone {
                call,
                result,
                terminate,
                generation,
            } => self.subflow_done(call, result, terminate, generation),
            Input::Event { def, .. } if !self.def.has_event(def.0) => Err(Rejection::WaitOver),
            Input::Event {
                wait,
                slot,
                def,
                event,
            } => self.event(wait, slot, def, event),
            Input::Joined {
                fork,
                results,
                done,
            } => self.joined(fork, results, done),
        }
    }

    /// Whether the scope can continue without a new input.
    fn can_go_on(&self) -> bool {
        match &self.scope.cursor {
            Cursor::Fresh => true,
            Cursor::Idle | Cursor::Ended => false,
            Cursor::At(position) => match &position.work {
                Work::Begin => true,
                Work::List(run) => matches!(run.step, ActionStep::Ready | ActionStep::Attempt),
                Work::Fork(_)
                | Work::Sleep
                | Work::Events
                | Work::Retry
                | Work::Finish { .. }
                | Work::Continue { .. } => false,
            },
        }
    }

    /// Runs until the scope blocks, or until other scopes should have a turn.
    pub(crate) fn run(&mut self) {
        let mut steps = 0;
        let work_max = swirl_expr::spent().saturating_add(TURN_WORK);
        let budget = self
            .env
            .bounds
            .map_or(self.def.budget, |bounds| bounds.steps);
        while self.scope.fault.is_none() && self.can_go_on() {
            // Actions that are invoked async begin before this scope continues.
            if steps == budget || self.pause || swirl_expr::spent() > work_max {
                return self.yield_to_others(steps);
            }
            steps += 1;
            let step = self.advance();
            self.raise_failure(step);
        }
    }

    /// Lets other scopes have a turn. If a scope yields again and again and never waits for anything, it is assumed to
    /// be in an endless loop.
    fn yield_to_others(&mut self, steps: u32) {
        let steps = self.scope.steps.saturating_add(u64::from(steps));
        let max = self.def.steps_max;
        if steps > max {
            let message = format!(
                "{max} states and actions ran without waiting for anything: \
                 the workflow seems to be in a loop that nothing ends"
            );
            return self.fail(WorkflowError::new(names::LIMIT_EXCEEDED, message));
        }
        self.emit(Event::Steps(steps));
        self.command(Command::Yield);
    }

    /// A sleep of zero length isn't a wait, because a loop around it would run forever too.
    fn count_brief(&mut self) {
        self.emit(Event::Brief(0));
        let steps = self.scope.steps.saturating_add(BRIEF_STEPS);
        let max = self.def.steps_max;
        if steps > max {
            let message = format!(
                "{} sleeps followed each other without waiting for anything: \
                 the workflow seems to be in a loop that nothing ends",
                max / BRIEF_STEPS
            );
            return self.fail(WorkflowError::new(names::LIMIT_EXCEEDED, message));
        }
        self.emit(Event::Steps(steps));
    }

    fn advance(&mut self) -> Step {
        match &self.scope.cursor {
            Cursor::Fresh => self.begin_scope(),
            Cursor::At(position) => match &position.work {
                Work::Begin => self.begin_state(),
                Work::List(_) => self.advance_list(),
                _ => Ok(()),
            },
            Cursor::Idle | Cursor::Ended => Ok(()),
        }
    }

    /// Passes an error to the state's handlers.
    pub fn raise_failure(&mut self, step: Step) {
        if let Err(error) = step {
            self.raise(error);
        }
    }

    fn timer(&mut self, seq: u32) -> Result<(), Rejection> {
        let timer = self
            .scope
            .timers
            .iter()
            .find(|timer| timer.seq == seq)
            .copied();
        // A timer that fires too early is ignored, whoever fired it.
        let timer = timer
            .filter(|timer| timer.due <= self.now())
            .ok_or(Rejection::TimerDisarmed)?;
        self.emit(Event::Disarmed(seq));
        self.command(Command::Disarm(seq));
        if !matches!(
            timer.kind,
            TimerKind::Sleep | TimerKind::RetryDelay | TimerKind::Pause
        ) {
            self.emit(Event::TimedOut { timer });
        }
        match timer.kind {
            TimerKind::Workflow => self.workflow_timeout(),
            TimerKind::Branch => self.branch_timeout(),
            TimerKind::State => self.state_timeout(),
            TimerKind::Action => self.action_timeout(),
            TimerKind::ConsumeEvent => self.consume_timeout(),
            TimerKind::Event => {
                let step = self.event_timeout();
                self.raise_failure(step);
            }
            TimerKind::Sleep => {
                let step = self.slept();
                self.raise_failure(step);
            }
            TimerKind::RetryDelay => self.retry_due(Some(seq)),
            TimerKind::Entry => {
                let step = self.entry_timeout(seq);
                self.raise_failure(step);
            }
            TimerKind::Pause => {
                let step = self.paused();
                self.raise_failure(step);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::Data;
    use swirl_model::ids::InstanceId;
    use swirl_model::time::Timestamp;
    use swirl_model::workflow::{
        Flow, Next, Schema, State, StateId, StateKind, Transition, Workflow,
    };

    use super::*;
    use crate::start::{NewInstance, new_instance};

    /// States that follow each other in a loop.
    fn circle(kinds: Vec<StateKind>) -> Workflow {
        let count = kinds.len() as u32;
        let state = |(index, kind): (usize, StateKind)| State {
            name: format!("S{index}").into(),
            flow: Workflow::ROOT,
            kind,
            next: Some(Next::Transition(Transition {
                to: StateId((index as u32 + 1) % count),
                compensate: false,
                produce: Vec::new(),
                guard: None,
            })),
            ..State::default()
        };
        Workflow {
            id: "round".to_owned(),
            flows: vec![Flow {
                start: StateId(0),
                states: (0..count).map(StateId).collect(),
                ..Flow::default()
            }],
            states: kinds.into_iter().enumerate().map(state).collect(),
            ..Workflow::default()
        }
    }

    struct Run {
        def: Arc<Definition>,
        header: Header,
        scope: Scope,
        env: Env,
    }

    impl Run {
        fn new(workflow: Workflow) -> Run {
            let mut def = Definition::compile(workflow).unwrap();
            let limits = Arc::get_mut(&mut def).unwrap();
            limits.budget = 10;
            limits.steps_max = 100;
            let new = NewInstance {
                input: Data::object(),
                ..NewInstance::default()
            };
            let (header, scope) =
                new_instance(&def, InstanceId::new("a"), new, Timestamp(0)).unwrap();
            Run {
                def,
                header,
                scope,
                env: Env::default(),
            }
        }

        fn step(&mut self, input: Input) -> (Vec<Event>, Vec<Command>) {
            match step(&self.def, &self.header, &mut self.scope, input, &self.env) {
                Outcome::Accepted { events, commands } => (events, commands),
                Outcome::Rejected(reason) => panic!("{reason}"),
            }
        }
    }

    #[test]
    fn a_loop_that_never_waits_ends() {
        let mut run = Run::new(circle(vec![StateKind::Inject(Data::object())]));
        for turn in 1..=10 {
            let (_, commands) = run.step(Input::Wake);
            assert_eq!(commands, [Command::Yield], "turn {turn}");
        }
        run.step(Input::Wake);
        let fault = run.scope.fault.as_ref().unwrap();
        assert_eq!(fault.name, names::LIMIT_EXCEEDED);
        assert!(fault.message.starts_with("100 states"), "{fault:?}");
        // An operator may let it continue for the same number of steps again.
        let (_, commands) = run.step(Input::Retry);
        assert!(commands.contains(&Command::Yield), "{commands:?}");
    }

    #[test]
    fn a_loop_of_zero_sleeps_ends() {
        for (period, ends) in [("PT0S", true), ("PT0.005S", true), ("PT0.01S", false)] {
            let period = swirl_model::time::IsoDuration::parse(period).unwrap();
            let mut run = Run::new(circle(vec![StateKind::Sleep(period.into())]));
            run.step(Input::Wake);
            let mut slept = 0;
            while run.scope.fault.is_none() && slept < 50 {
                let timer = run.scope.timers[0];
                run.env.now = timer.due;
                run.step(Input::Timer { seq: timer.seq });
                slept += 1;
            }
            let fault = run.scope.fault.as_ref().map(|fault| fault.name.as_str());
            assert_eq!(fault, ends.then_some(names::LIMIT_EXCEEDED), "{period:?}");
            assert_eq!(run.scope.waited, !ends);
            if ends {
                assert_eq!(slept, 11);
            }
        }
    }

    #[test]
    fn a_loop_that_waits_continues() {
        let second = swirl_model::time::IsoDuration::parse("PT1S").unwrap();
        let mut states = vec![StateKind::Inject(Data::object()); 15];
        states.push(StateKind::Sleep(second.into()));
        let mut run = Run::new(circle(states));
        for _ in 0..50 {
            while run.scope.timers.is_empty() {
                run.step(Input::Wake);
            }
            let timer = run.scope.timers[0];
            run.env.now = timer.due;
            run.step(Input::Timer { seq: timer.seq });
        }
        assert_eq!(run.scope.fault, None);
    }

    #[test]
    fn invalid_data_is_recorded() {
        for fail in [false, true] {
            let mut workflow = circle(vec![StateKind::Inject(Data::object())]);
            workflow.input_schema = Some(Schema {
                schema: swirl_model::data!({"required": ["name"]}),
                fail,
            });
            let mut run = Run::new(workflow);
            let (events, _) = run.step(Input::Wake);
            let noted = events.iter().find_map(|event| match event {
                Event::ValidationFailed { of, message } => Some((&**of, message.clone())),
                _ => None,
            });
            if fail {
                assert_eq!(noted, None);
                let fault = run.scope.fault.as_ref().unwrap();
                assert_eq!(fault.name, names::INPUT_VALIDATION);
            } else {
                let (of, message) = noted.unwrap();
                assert_eq!(of, "input");
                assert!(message.contains("name"), "{message}");
                assert_eq!(run.scope.fault, None);
            }
        }
    }
}
