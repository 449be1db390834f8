//! What follows a state: transition or end.

use swirl_model::error::names;
use swirl_model::event::{Command, Event};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Cursor, Exit, Purpose};
use swirl_model::workflow::{self, ContinueAs, End, Produce};
use swirl_model::{Data, WorkflowError};

use crate::definition::flow::next_of;
use crate::parts::compensation::{is_handlers, state_of};
use crate::scope::ctx::Prepared;
use crate::scope::validation::Checked;
use crate::scope::{Ctx, Next, Step};

impl Ctx<'_> {
    /// Takes the way that follows from a state's end or error.
    pub fn take(&mut self, way: Exit) -> Step {
        if self.has_tasks() {
            return Ok(self.take_task(way));
        }
        let purpose = self.purpose();
        let next = next_of(&self.def.workflow, way);
        if purpose == Purpose::Compensation {
            return match next {
                Some(workflow::Next::Transition(_)) => self.proceed(way, purpose),
                // An end in a compensating state is ignored (docs/language.md#decision-5).
                _ => Ok(self.compensate_next()),
            };
        }
        if self.scope.timed_out
            && purpose == Purpose::Main
            && matches!(next, Some(workflow::Next::Transition(_)))
        {
            self.time_out();
            return Ok(Next::Block);
        }
        let compensate = match next {
            Some(workflow::Next::Transition(transition)) => transition.compensate,
            Some(workflow::Next::End(end)) => end.compensate,
            Some(workflow::Next::Leave | workflow::Next::Skip) | None => false,
        };
        if compensate {
            Ok(self.compensate(way))
        } else {
            self.proceed(way, purpose)
        }
    }

    /// Takes a way, after its compensation if it has one.
    pub fn proceed(&mut self, way: Exit, purpose: Purpose) -> Step {
        let def = self.def;
        let prepared = self.prepared.take();
        match next_of(&def.workflow, way) {
            // The timeout passed during compensation.
            Some(workflow::Next::Transition(_))
                if self.scope.timed_out && purpose == Purpose::Main =>
            {
                self.time_out();
                Ok(Next::Block)
            }
            Some(workflow::Next::Transition(transition)) => {
                if let Some(guard) = transition.guard {
                    let found = self
                        .view()
                        .eval(guard, &self.scope.data)?
                        .unwrap_or_default();
                    let refused = found.is_null()
                        || found.as_bool() == Some(false)
                        || found.as_array().is_some_and(<[_]>::is_empty);
                    if refused {
                        let to = &def.workflow[transition.to].name;
                        let message = format!("the transition to '{to}' doesn't hold for the data");
                        let error = WorkflowError::new(names::TRANSITION_REFUSED, message);
                        self.fail_onward(way, purpose, error);
                        return Ok(Next::Block);
                    }
                }
                let prepared = match prepared {
                    Some(prepared) => prepared,
                    None => self.evaluate(&transition.produce, None)?,
                };
                self.publish_all(prepared.produced);
                Ok(Next::Enter(transition.to, purpose))
            }
            Some(workflow::Next::End(end)) => {
                let prepared = match prepared {
                    Some(prepared) => prepared,
                    None => self.evaluate(&end.produce, end.continue_as.as_ref())?,
                };
                self.publish_all(prepared.produced);
                self.end(way, end, purpose, prepared.input)
            }
            Some(workflow::Next::Leave | workflow::Next::Skip) | None => {
                self.end(way, &End::default(), purpose, None)
            }
        }
    }

    /// Takes the way that triggered the compensation, after the compensation is done. The scope has finished the work
    /// of the state that the way leaves.
    pub(crate) fn go_onward(&mut self, way: Exit, purpose: Purpose) -> Next {
        match self.proceed(way, purpose) {
            Ok(next) => next,
            Err(error) => self.trigger_failed(way, purpose, error),
        }
    }

    /// An expression for the data or input of the way failed. The error belongs to the state that triggered the
    /// compensation, never to a compensating one (docs/language.md#decision-85).
    fn trigger_failed(&mut self, way: Exit, purpose: Purpose, mut error: WorkflowError) -> Next {
        let Some(id) = state_of(way).or(self.scope.state()) else {
            self.fail(error);
            return Next::Block;
        };
        self.return_to(id, way, purpose);
        if is_handlers(way) {
            error.state = Some(self.def.workflow[id].name.to_string());
            self.fail(error);
            Next::Block
        } else {
            Next::Raise(error)
        }
    }

    /// Evaluates the events and the input of a way, unless compensation comes first, which may change them.
    pub(crate) fn prepare(&self, way: Exit) -> Result<Option<Prepared>, WorkflowError> {
        if self.purpose() != Purpose::Main {
            return Ok(None);
        }
        Ok(Some(match next_of(&self.def.workflow, way) {
            // The timeout has passed, so this way won't be taken.
            Some(workflow::Next::Transition(_)) if self.scope.timed_out => return Ok(None),
            Some(workflow::Next::Transition(next)) if !next.compensate => {
                self.evaluate(&next.produce, None)?
            }
            Some(workflow::Next::End(end)) if !end.compensate => {
                self.evaluate(&end.produce, end.continue_as.as_ref())?
            }
            _ => return Ok(None),
        }))
    }

    fn evaluate(
        &self,
        list: &[Produce],
        continuation: Option<&ContinueAs>,
    ) -> Result<Prepared, WorkflowError> {
        let data = &self.scope.data;
        let produced = list.iter().map(|produce| self.produced(produce, data));
        Ok(Prepared {
            produced: produced.collect::<Result<_, _>>()?,
            input: continuation
                .map(|continuation| {
                    self.continued_timeout(continuation)?;
                    self.input_of(continuation)
                })
                .transpose()?,
        })
    }

    /// `continuation`: the input for the way's `continueAs`.
    fn end(&mut self, way: Exit, end: &End, purpose: Purpose, continuation: Option<Data>) -> Step {
        if purpose == Purpose::RunBefore {
            self.terminated();
            return Ok(Next::Block);
        }
        if let Some(name) = &end.fail {
            let message = format!("the workflow ended with the status '{name}'");
            self.fail_onward(way, purpose, WorkflowError::new(name, message));
            return Ok(Next::Block);
        }
        if !self.scope.id.is_root() {
            if end.terminate {
                let data = self.scope.data.clone();
                self.emit(Event::Moved(Cursor::Ended));
                self.disarm(|_| true);
                let parents = end.terminate_parents;
                self.command(Command::Report(BranchResult::Terminated {
                    data,
                    parents,
                    context: None,
                }));
            } else {
                if self.scope.result.is_none() {
                    let data = self.scope.data.clone();
                    self.emit(Event::Result(Some(data)));
                }
                self.scope_done();
            }
            return Ok(Next::Block);
        }
        if self.def.workflow.keep_active && !end.terminate && end.continue_as.is_none() {
            self.emit(Event::Idle);
            self.emit(Event::Moved(Cursor::Idle));
            if self.scope.timed_out {
                self.time_out();
                return Ok(Next::Block);
            }
            self.wait_for_start()?;
            return Ok(Next::Block);
        }
        self.complete(way, purpose, continuation, end.terminate_parents)
    }

    fn complete(
        &mut self,
        way: Exit,
        purpose: Purpose,
        continuation: Option<Data>,
        terminate_parents: bool,
    ) -> Step {
        let def = self.def;
        let output = self.scope.data.clone();
        if let Some(schema) = &def.output_schema
            && let Err(error) = self.validate(schema, &output, Checked::Output)
        {
            self.fail_onward(way, purpose, error);
            return Ok(Next::Block);
        }
        if let Some(input) = continuation {
            self.continue_as(way, input);
            return Ok(Next::Block);
        }
        self.notify_parent(Ok(output.clone()), terminate_parents);
        self.close(EndStatus::Completed, Some(output));
        Ok(Next::Block)
    }
}
