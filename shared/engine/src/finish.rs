//! The end of a state, and what follows it: transition, end, `continueAs`.

use std::collections::BTreeMap;

use swirl_model::error::names;
use swirl_model::event::{Command, Event};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{
    BranchResult, Cursor, Exit, FinishFrom, Purpose, RetriedBy, Role, TimerKind, Work,
};
use swirl_model::workflow::{
    ContinueAs, End, Next, Produce, State, StateId, StateKind, Then, Workflow,
};
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::compensation::is_handlers;
use crate::ctx::{Ctx, Prepared, Produced, Step};
use crate::ids::child_id;
use crate::start::{HOPS, ORIGIN};
use crate::validation::Checked;

impl Ctx<'_> {
    /// Ends a state whose work is done: applies the output filter, then takes the way. After an error the data stays as
    /// the work left it (docs/language.md#decision-66), and a retry continues here.
    pub fn finish(&mut self, way: Exit) -> Step {
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
            FinishFrom::Exit if is_handlers(way) => {
                self.take_left(way);
                Ok(())
            }
            FinishFrom::Exit => self.take(way),
            FinishFrom::Onward => {
                let purpose = self.purpose();
                self.go_onward(way, purpose);
                Ok(())
            }
        }
    }

    /// Takes the way of a handler after leaving the state, so that a further error no longer belongs to the state.
    pub(crate) fn take_left(&mut self, way: Exit) {
        if let Err(mut error) = self.take(way) {
            if error.state.is_none() {
                error.state = self.state().map(|(_, state)| state.name.to_string());
            }
            let from = FinishFrom::Exit;
            self.work(Work::Finish { way, from });
            self.fail(error);
        }
    }

    fn finish_from(&mut self, way: Exit, from: &mut FinishFrom) -> Step {
        let def = self.def.clone();
        let Some((id, _)) = self.state() else {
            return Ok(());
        };
        let state = &def.workflow[id];
        if !state.retries.is_empty() && self.retried_by_rule(state)? {
            return Ok(());
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
                return self.retry_state(state, &rule.policy, by);
            }
        }
        Ok(false)
    }

    /// Takes the way that follows from a state's end or error.
    pub fn take(&mut self, way: Exit) -> Step {
        let purpose = self.purpose();
        let next = next_of(&self.def.workflow, way);
        if purpose == Purpose::Compensation {
            return match next {
                Some(Next::Transition(_)) => self.proceed(way, purpose),
                // An end in a compensating state is ignored (docs/language.md#decision-5).
                _ => self.compensate_next(),
            };
        }
        if self.scope.timed_out
            && purpose == Purpose::Main
            && matches!(next, Some(Next::Transition(_)))
        {
            self.time_out();
            return Ok(());
        }
        let compensate = match next {
            Some(Next::Transition(transition)) => transition.compensate,
            Some(Next::End(end)) => end.compensate,
            None => false,
        };
        if compensate {
            self.compensate(way)
        } else {
            self.proceed(way, purpose)
        }
    }

    /// Takes a way, after its compensation if it has one.
    pub fn proceed(&mut self, way: Exit, purpose: Purpose) -> Step {
        let def = self.def.clone();
        let prepared = self.prepared.take();
        match next_of(&def.workflow, way) {
            // The timeout passed during compensation.
            Some(Next::Transition(_)) if self.scope.timed_out && purpose == Purpose::Main => {
                self.time_out();
                Ok(())
            }
            Some(Next::Transition(transition)) => {
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
                        return Ok(());
                    }
                }
                let prepared = match prepared {
                    Some(prepared) => prepared,
                    None => self.evaluate(&transition.produce, None)?,
                };
                self.publish_all(prepared.produced);
                self.enter(transition.to, purpose);
                Ok(())
            }
            Some(Next::End(end)) => {
                let prepared = match prepared {
                    Some(prepared) => prepared,
                    None => self.evaluate(&end.produce, end.continue_as.as_ref())?,
                };
                self.publish_all(prepared.produced);
                self.end(way, end, purpose, prepared.input)
            }
            None => self.end(way, &End::default(), purpose, None),
        }
    }

    /// Evaluates the events and the input of a way, unless compensation comes first, which may change them.
    fn prepare(&self, way: Exit) -> Result<Option<Prepared>, WorkflowError> {
        if self.purpose() != Purpose::Main {
            return Ok(None);
        }
        Ok(Some(match next_of(&self.def.workflow, way) {
            // The timeout has passed, so this way won't be taken.
            Some(Next::Transition(_)) if self.scope.timed_out => return Ok(None),
            Some(Next::Transition(next)) if !next.compensate => {
                self.evaluate(&next.produce, None)?
            }
            Some(Next::End(end)) if !end.compensate => {
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

    fn publish_all(&mut self, produced: Vec<Produced>) {
        for produced in produced {
            self.publish(produced);
        }
    }

    /// Puts an event into the outbox.
    pub fn produce(
        &mut self,
        produce: &Produce,
        input: &Data,
    ) -> Result<CloudEvent, WorkflowError> {
        let produced = self.produced(produce, input)?;
        Ok(self.publish(produced))
    }

    fn produced(&self, produce: &Produce, input: &Data) -> Result<Produced, WorkflowError> {
        let view = self.view();
        let data = produce
            .data
            .as_ref()
            .map(|data| view.template(data, input))
            .transpose()?;
        let mut attributes = BTreeMap::new();
        for (name, value) in &produce.attributes {
            let value = view.template(value, input)?;
            if !value.is_null() {
                attributes.insert(name.clone(), attribute(value));
            }
        }
        let parts: Vec<&Data> = data.iter().chain(attributes.values()).collect();
        let name = &self.def.workflow[produce.event].name;
        self.def.sizes.check_event(name, &parts)?;
        Ok(Produced {
            event: produce.event,
            data,
            attributes,
        })
    }

    /// The event's id is derived, so a repeated publication is the same event.
    fn publish(&mut self, produced: Produced) -> CloudEvent {
        let def = self.def.clone();
        let event = &def.workflow[produced.event];
        let Produced {
            data,
            mut attributes,
            ..
        } = produced;
        attributes.insert(ORIGIN.to_owned(), Data::string(self.header.id.as_str()));
        let hops = self.hops();
        if hops > 0 {
            attributes.insert(HOPS.to_owned(), Data::from(serde_json::Value::from(hops)));
        }
        attributes.insert("time".to_owned(), Data::string(self.now().to_string()));
        let source = event.source.clone();
        let seq = self.seq();
        let produced = CloudEvent {
            specversion: "1.0".to_owned(),
            id: child_id(self.header, &self.scope.id, seq),
            source: source.unwrap_or_else(|| format!("/swirl/{}", self.def.workflow.id)),
            kind: event.kind.clone().unwrap_or_else(|| event.name.to_string()),
            attributes,
            data,
        };
        self.emit(Event::EventProduced {
            name: event.name.clone(),
            id: produced.id.clone(),
        });
        let values = self.correlation_of(&produced);
        if !values.is_empty() {
            self.command(Command::Correlate(values));
        }
        self.command(Command::Publish(produced.clone()));
        produced
    }

    /// The attributes of a produced event that any event definition correlates by (docs/language.md#decision-49).
    fn correlation_of(&self, event: &CloudEvent) -> Vec<(std::sync::Arc<str>, String)> {
        let mut values: Vec<(std::sync::Arc<str>, String)> = Vec::new();
        for rule in self
            .def
            .workflow
            .events
            .iter()
            .flat_map(|def| &def.correlation)
        {
            if rule.value.is_none()
                && !values.iter().any(|(name, _)| *name == rule.attribute)
                && let Some(value) = event.attribute(&rule.attribute)
            {
                values.push((rule.attribute.clone(), value));
            }
        }
        values
    }

    /// `continuation`: the input for the way's `continueAs`.
    fn end(&mut self, way: Exit, end: &End, purpose: Purpose, continuation: Option<Data>) -> Step {
        if purpose == Purpose::RunBefore {
            self.terminated();
            return Ok(());
        }
        if let Some(name) = &end.fail {
            let message = format!("the workflow ended with the status '{name}'");
            self.fail_onward(way, purpose, WorkflowError::new(name, message));
            return Ok(());
        }
        if !self.scope.id.is_root() {
            if end.terminate {
                let data = self.scope.data.clone();
                self.emit(Event::Moved(Cursor::Ended));
                self.disarm(|_| true);
                let parents = end.terminate_parents;
                self.command(Command::Report(BranchResult::Terminated { data, parents }));
            } else {
                if self.scope.result.is_none() {
                    let data = self.scope.data.clone();
                    self.emit(Event::Result(Some(data)));
                }
                self.scope_done();
            }
            return Ok(());
        }
        if self.def.workflow.keep_active && !end.terminate && end.continue_as.is_none() {
            self.emit(Event::Idle);
            self.emit(Event::Moved(Cursor::Idle));
            if self.scope.timed_out {
                self.time_out();
                return Ok(());
            }
            return self.wait_for_start();
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
        let def = self.def.clone();
        let output = self.scope.data.clone();
        if let Some(schema) = &def.output_schema
            && let Err(error) = self.validate(schema, &output, Checked::Output)
        {
            self.fail_onward(way, purpose, error);
            return Ok(());
        }
        if let Some(input) = continuation {
            self.continue_as(way, input);
            return Ok(());
        }
        self.notify_parent(Ok(output.clone()), terminate_parents);
        self.close(EndStatus::Completed, Some(output));
        Ok(())
    }

    /// A `terminate` end inside a branch or sub-workflow ends all of its enclosing scopes and instances.
    pub fn terminate(&mut self, data: Data, parents: bool) {
        if self.scope.id.is_root() {
            self.notify_parent(Ok(data.clone()), parents);
            self.close(EndStatus::Completed, Some(data));
        } else {
            self.emit(Event::Moved(Cursor::Ended));
            self.disarm(|_| true);
            self.command(Command::Report(BranchResult::Terminated { data, parents }));
        }
    }

    pub(crate) fn close(&mut self, status: EndStatus, output: Option<Data>) {
        self.abandon_apart();
        self.disarm(|_| true);
        self.unsubscribe();
        self.emit(Event::Moved(Cursor::Ended));
        self.emit(Event::Ended {
            status,
            error: None,
        });
        self.command(Command::End {
            status,
            output,
            error: None,
        });
    }

    /// A branch, an iteration or a separate action is done.
    pub fn scope_done(&mut self) {
        self.disarm(|_| true);
        self.emit(Event::Moved(Cursor::Ended));
        match self.scope.role {
            Role::Root => {}
            Role::Detached { .. } => self.command(Command::Drop),
            Role::Branch { .. }
            | Role::Iteration { .. }
            | Role::Action { .. }
            | Role::Entry { .. }
            | Role::Apart { .. } => {
                let done = BranchResult::Done {
                    merges: self.scope.merges.clone(),
                    result: self.scope.result.clone(),
                    left: false,
                };
                let result = self.result_within(done);
                self.command(Command::Report(result));
            }
        }
    }

    /// `workflowExecTimeout` has passed.
    pub fn workflow_timeout(&mut self) {
        // A branch checks at the end of the step whether all of its remaining work only waits.
        if !matches!(self.scope.role, Role::Root) {
            return;
        }
        let Some(timeout) = self.workflow_timeout_setting() else {
            return;
        };
        let idle = self.scope.position().is_none();
        if timeout.interrupt || idle {
            self.abandon();
            self.time_out();
        } else {
            self.emit(Event::SoftTimeout);
        }
    }

    /// Handles a timeout of a state, an action or a branch. Once `workflowExecTimeout` has passed, the remaining work
    /// ends here, because the workflow's timeout has precedence (0.8, "Workflow Timeouts"): no error is handled or
    /// retried. Returns true in that case.
    pub fn is_last_timeout(&mut self, error: &WorkflowError) -> bool {
        match self.scope.role {
            Role::Root => {
                let is_last = self.scope.timed_out && !self.in_run_before();
                if is_last {
                    self.abandon();
                    self.time_out();
                }
                is_last
            }
            Role::Detached { .. } | Role::Apart { .. } => false,
            // The root scope is notified and ends the instance.
            Role::Branch { .. }
            | Role::Iteration { .. }
            | Role::Action { .. }
            | Role::Entry { .. } => {
                let end = self.workflow_end().ok().flatten();
                let is_last = end.is_some_and(|end| end <= self.now());
                if is_last {
                    self.abandon();
                    self.fail(error.clone());
                }
                is_last
            }
        }
    }

    /// Terminates the instance, after `runBefore`.
    pub(crate) fn time_out(&mut self) {
        self.disarm(|_| true);
        self.unsubscribe();
        if self.scope.compensation.is_some() {
            self.emit(Event::Compensation(None));
        }
        match self
            .workflow_timeout_setting()
            .and_then(|timeout| timeout.run_before)
        {
            Some(state) => self.enter(state, Purpose::RunBefore),
            None => self.terminated(),
        }
    }

    pub fn in_run_before(&self) -> bool {
        let compensation = self.scope.compensation.as_ref();
        let purpose = compensation.map_or(self.purpose(), |compensation| compensation.purpose);
        purpose == Purpose::RunBefore
    }

    pub fn terminated(&mut self) {
        let status = EndStatus::Terminated;
        self.abandon();
        let message = "the sub-workflow was terminated by its workflowExecTimeout";
        self.notify_parent_of_end(message);
        self.close(status, None);
    }
}

/// CloudEvents attributes are strings, numbers or booleans. Other values are converted to their JSON text.
fn attribute(value: Data) -> Data {
    match value.kind() {
        "object" | "array" => Data::string(value.to_text()),
        _ => value,
    }
}

pub(crate) fn next_of(workflow: &Workflow, way: Exit) -> Option<&Next> {
    match way {
        Exit::State(id) => workflow[id].next.as_ref(),
        Exit::Handler(id, index) => match &workflow[id].on_errors[index as usize].then {
            Then::Next(next) => Some(next),
            Then::Continue => workflow[id]
                .next
                .as_ref()
                .or_else(|| default_of(workflow, id)),
            Then::Rethrow | Then::Throw(_) => None,
        },
        Exit::Action(id, index) => match &workflow[id].on_errors[index as usize].then {
            Then::Next(next) => Some(next),
            Then::Continue | Then::Rethrow | Then::Throw(_) => None,
        },
        Exit::Condition(id, index) => match &workflow[id].kind {
            StateKind::Switch(switch) => Some(&switch.conditions[index as usize].next),
            _ => None,
        },
        Exit::EventCondition(id, index) => match &workflow[id].kind {
            StateKind::SwitchEvents(switch) => Some(&switch.conditions[index as usize].next),
            _ => None,
        },
        Exit::Default(id) => default_of(workflow, id),
        Exit::Entry(id, index) => match &workflow[id].kind {
            StateKind::Event(state) => state.entries[index as usize].next.as_ref(),
            _ => None,
        },
    }
}

/// The way that a switch takes if no condition applies.
fn default_of(workflow: &Workflow, id: StateId) -> Option<&Next> {
    match &workflow[id].kind {
        StateKind::Switch(switch) => switch.default.as_ref(),
        StateKind::SwitchEvents(switch) => switch.default.as_ref(),
        _ => None,
    }
}
