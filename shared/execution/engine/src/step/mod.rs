//! The entry point: one input, one outcome.

pub(crate) mod begin;
pub(crate) mod events;
mod go_on;
pub(crate) mod joins;
pub(crate) mod operator;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod soft_timeout;
pub(crate) mod timers;

use std::sync::Arc;

use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::Header;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;

use crate::definition::Definition;
use crate::scope::env::Env;
use crate::scope::listening::Offer;
use crate::scope::{Ctx, Next, Rejection, Step};

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
            | Input::TimedOutMeanwhile { .. }
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
    match ctx.take_in(input) {
        Ok(step) => ctx.follow(step),
        Err(rejection) => {
            if first_wait {
                ctx.scope.waited = false;
            }
            return Outcome::Rejected(rejection);
        }
    }
    if brief {
        ctx.count_brief();
    } else if !by_itself && ctx.scope.steps > 0 {
        ctx.emit(Event::Steps(0));
    }
    ctx.run();
    if ctx.leave_what_only_waits() {
        ctx.run();
    }
    ctx.index();
    Outcome::Accepted {
        events: ctx.events,
        commands: ctx.commands,
    }
}

impl Ctx<'_> {
    fn take_in(&mut self, input: Input) -> Result<Step, Rejection> {
        let faulted = self.scope.fault.is_some();
        if !self.def.fits_input(&input) {
            return Err(Rejection::Damaged);
        }
        match input {
            Input::Wake if faulted || !self.can_go_on() => Err(Rejection::Blocked),
            Input::Wake => Ok(Ok(Next::Block)),
            // A faulted instance has already ended, so only its branches are removed.
            Input::Cancel { .. } if faulted && self.scope.id.is_root() => Err(Rejection::Ended),
            Input::Cancel { status } => {
                self.cancel(status);
                Ok(Ok(Next::Block))
            }
            Input::Retry => self.retry(None).map(|()| Ok(Next::Block)),
            Input::GoOn { since } => self.go_on(since).map(|()| Ok(Next::Block)),
            Input::Skip { result } => self.retry(Some(result)).map(|()| Ok(Next::Block)),
            Input::Rerun { state } => self.rerun(&state).map(|()| Ok(Next::Block)),
            Input::Edit {
                state,
                data,
                context,
            } => {
                let edited = self.edit(state.as_deref(), data, context);
                edited.map(|()| Ok(Next::Block))
            }
            // A retry needs to know which branches only wait, and they don't say so again.
            Input::Waits { fork, said } => self.branch_waits(fork, said).map(Ok),
            _ if faulted => Err(Rejection::Ended),
            Input::Timer { seq } => self.timer(seq),
            Input::TimedOutMeanwhile { seq } => self.timed_out_meanwhile(seq),
            Input::CallDone { call, result } => self.call_done(call, result).map(Ok),
            Input::CallFailedMeanwhile { call, error } => {
                self.call_failed_meanwhile(call, error).map(Ok)
            }
            Input::SubflowDone {
                call,
                result,
                terminate,
                generation,
            } => self
                .subflow_done(call, result, terminate, generation)
                .map(Ok),
            Input::Event { def, .. } if !self.def.has_event(def.0) => Err(Rejection::WaitOver),
            Input::Event {
                wait,
                slot,
                def,
                event,
                offered,
                early,
            } => self.event((wait, slot), def, event, Offer { offered, early }),
            Input::Joined {
                fork,
                results,
                done,
            } => self.joined(fork, results, done),
        }
    }

    fn go_on(&mut self, since: Timestamp) -> Result<(), Rejection> {
        match self.timed_out_fork() {
            Some(_) => self.retry_now(None),
            // A branch that failed is retried with the state.
            None if self.scope.fault.is_some() || self.scope.id.is_root() => {
                return Err(Rejection::NotFaulted);
            }
            None => self.go_on_in_branch(since),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::Data;
    use swirl_model::error::names;
    use swirl_model::ids::InstanceId;
    use swirl_model::workflow::{
        Flow, Next, Schema, State, StateId, StateKind, Transition, Workflow,
    };

    use super::*;
    use crate::scope::instance::{NewInstance, new_instance};

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
