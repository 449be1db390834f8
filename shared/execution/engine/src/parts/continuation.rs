//! `continueAs`: another instance continues in place of this one.
//!
//! This instance ends once the other one exists. The process that starts the other one reports success, or the reason
//! why it cannot start. In the latter case this instance faults, and an operator's retry tries the start again.

use swirl_model::error::names;
use swirl_model::event::{Command, StartInstance};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Exit, Work};
use swirl_model::workflow::{ContinueAs, Next, TimeoutOverride};
use swirl_model::{Data, WorkflowError};

use crate::definition::flow::next_of;
use crate::scope::ids::continuation_id;
use crate::scope::{Ctx, Rejection};

impl Ctx<'_> {
    /// The input of the other instance: an object, as for any workflow (docs/language.md#decision-12 and #decision-36).
    pub(crate) fn input_of(&self, continuation: &ContinueAs) -> Result<Data, WorkflowError> {
        let data = &self.scope.data;
        let input = match &continuation.data {
            Some(template) => self.view().template(template, data)?,
            None => data.clone(),
        };
        if input.is_object() {
            return Ok(input);
        }
        let message = format!(
            "the input of '{}', which this instance continues as, must be an object, not {}",
            continuation.workflow,
            input.kind_in_words()
        );
        Err(WorkflowError::new(names::INPUT_VALIDATION, message))
    }

    /// The timeout that replaces the one in the other instance's definition.
    pub(crate) fn continued_timeout(
        &self,
        continuation: &ContinueAs,
    ) -> Result<Option<TimeoutOverride>, WorkflowError> {
        let Some(timeout) = &continuation.timeout else {
            return Ok(None);
        };
        Ok(Some(TimeoutOverride {
            duration: self.view().period(&timeout.duration, &self.scope.data)?,
            interrupt: timeout.interrupt,
            run_before: timeout.run_before.clone(),
        }))
    }

    pub(crate) fn continue_as(&mut self, way: Exit, input: Data) {
        let def = self.def;
        let Some(Next::End(end)) = next_of(&def.workflow, way) else {
            return;
        };
        let Some(continuation) = &end.continue_as else {
            return;
        };
        let timeout = match self.continued_timeout(continuation) {
            Ok(timeout) => timeout,
            Err(error) => return self.fail(error),
        };
        self.disarm(|_| true);
        self.unsubscribe();
        let call = self.seq();
        self.command(Command::Start(Box::new(StartInstance {
            id: continuation_id(self.header),
            workflow: continuation.workflow.clone(),
            version: continuation.version.clone(),
            input: input.clone(),
            parent: self.header.parent.clone(),
            on_parent_end: None,
            continued_from: Some(self.header.id.clone()),
            scheduled_at: self.header.scheduled_at,
            call,
            again: 0,
            timeout,
            depth: self.header.depth,
            hops: self.hops_on(),
            trace: self.header.trace_on(),
            at: self.now(),
        })));
        self.work(Work::Continue { call, way, input });
    }

    /// Processes the outcome of starting the other instance.
    pub(crate) fn continued(
        &mut self,
        call: u32,
        result: Result<Data, WorkflowError>,
    ) -> Result<(), Rejection> {
        match self.scope.position().map(|position| &position.work) {
            Some(Work::Continue { call: waiting, .. }) if *waiting == call => {}
            _ => return Err(Rejection::CallOver),
        }
        match result {
            Ok(_) => {
                let output = self.scope.data.clone();
                self.close(EndStatus::Completed, Some(output));
            }
            Err(mut error) => {
                error.state = self.state().map(|(_, state)| state.name.to_string());
                self.fail(error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use swirl_model::data;
    use swirl_model::event::{Event, Input};
    use swirl_model::ids::InstanceId;
    use swirl_model::instance::Header;
    use swirl_model::scope::Scope;
    use swirl_model::workflow::{End, Flow, State, StateId, StateKind, Workflow};

    use super::*;
    use crate::definition::Definition;
    use crate::scope::env::Env;
    use crate::scope::instance::{NewInstance, new_instance};
    use crate::step::{Outcome, step};

    struct Run {
        def: Arc<Definition>,
        header: Header,
        scope: Scope,
    }

    impl Run {
        /// An instance that waits for its continuation, and the call number of that start.
        fn continuing() -> (Run, u32) {
            let end = End {
                continue_as: Some(ContinueAs {
                    workflow: "next".to_owned(),
                    version: None,
                    data: None,
                    timeout: None,
                }),
                ..End::default()
            };
            let state = State {
                name: "S".into(),
                flow: Workflow::ROOT,
                kind: StateKind::Inject(Data::object()),
                next: Some(Next::End(end)),
                ..State::default()
            };
            let def = Definition::compile(Workflow {
                id: "w".to_owned(),
                flows: vec![Flow {
                    start: StateId(0),
                    states: vec![StateId(0)],
                    ..Flow::default()
                }],
                states: vec![state],
                ..Workflow::default()
            })
            .unwrap();
            let new = NewInstance {
                input: data!({"a": 1}),
                ..NewInstance::default()
            };
            let at = swirl_model::time::Timestamp(0);
            let (header, scope) = new_instance(&def, InstanceId::new("i"), new, at).unwrap();
            let mut run = Run { def, header, scope };
            let (events, commands) = run.step(Input::Wake).unwrap();
            assert!(
                !events
                    .iter()
                    .any(|event| matches!(event, Event::Ended { .. }))
            );
            let call = started(&commands);
            (run, call)
        }

        fn step(&mut self, input: Input) -> Result<(Vec<Event>, Vec<Command>), Rejection> {
            let env = Env::default();
            match step(&self.def, &self.header, &mut self.scope, input, &env) {
                Outcome::Accepted { events, commands } => Ok((events, commands)),
                Outcome::Rejected(reason) => Err(reason),
            }
        }
    }

    fn started(commands: &[Command]) -> u32 {
        let start = commands.iter().find_map(|command| match command {
            Command::Start(start) => Some(start),
            _ => None,
        });
        start.unwrap().call
    }

    fn came(call: u32, result: Result<Data, WorkflowError>) -> Input {
        Input::SubflowDone {
            call,
            result,
            terminate: false,
            generation: 0,
        }
    }

    #[test]
    fn it_ends_when_the_continuation_exists() {
        let (mut run, call) = Run::continuing();
        let other = run.step(came(call + 1, Ok(Data::NULL)));
        assert_eq!(other, Err(Rejection::CallOver));
        let (_, commands) = run.step(came(call, Ok(Data::NULL))).unwrap();
        let [Command::End { status, output, .. }] = commands.as_slice() else {
            panic!("{commands:?}")
        };
        assert_eq!(*status, EndStatus::Completed);
        assert_eq!(*output, Some(data!({"a": 1})));
    }

    #[test]
    fn a_retry_starts_the_continuation_again() {
        let (mut run, call) = Run::continuing();
        let error = WorkflowError::new(names::SUBFLOW_NOT_FOUND, "there is no 'next'");
        run.step(came(call, Err(error))).unwrap();
        assert!(run.scope.fault.is_some());
        let (_, commands) = run.step(Input::Retry).unwrap();
        let again = started(&commands);
        assert_eq!(
            run.step(came(call, Ok(Data::NULL))),
            Err(Rejection::CallOver)
        );
        run.step(came(again, Ok(Data::NULL))).unwrap();
        assert!(run.scope.ended());
    }

    #[test]
    fn cancelling_it_ends_the_continuation() {
        let (mut run, _) = Run::continuing();
        let status = EndStatus::Cancelled;
        let (_, commands) = run.step(Input::Cancel { status }).unwrap();
        let id = continuation_id(&run.header);
        assert!(
            commands.contains(&Command::EndInstance { id, status }),
            "{commands:?}"
        );
    }
}
