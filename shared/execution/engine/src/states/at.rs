//! What a kind of state sees of its scope, and what it may do there. Everything else, it returns as [`Next`].

use std::sync::Arc;

use swirl_model::event::{Command, Event, EventMatch, Slot};
use swirl_model::scope::{
    BranchResult, EventRun, Exit, ForkRun, Frame, Iteration, ListenRun, Merge, MessageSource,
    TimerKind, TryRun, Work,
};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{
    ActionKind, Emit, EventFilter, EventId, EventState, ListId, MessageRule, PathId, Period,
    StateId, Workflow,
};
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::scope::eval::View;
use crate::scope::frames::position_of;
use crate::scope::validation::Checked;
use crate::scope::{Check, Ctx, Next, Step};

/// A scope in a state of the kind.
pub(crate) struct At<'c, 'a> {
    ctx: &'c mut Ctx<'a>,
    pub id: StateId,
}

impl<'c, 'a> At<'c, 'a> {
    pub fn new(ctx: &'c mut Ctx<'a>, id: StateId) -> At<'c, 'a> {
        At { ctx, id }
    }

    pub fn workflow(&self) -> &'a Workflow {
        &self.ctx.def.workflow
    }

    pub fn view(&self) -> View<'_> {
        self.ctx.view()
    }

    pub fn data(&self) -> &Data {
        &self.ctx.scope.data
    }

    pub fn current_work(&self) -> Option<&Work> {
        self.ctx.scope.position().map(|position| &position.work)
    }

    /// The state's work is done, and it ends by its own way.
    pub fn done(&self) -> Step {
        Ok(Next::Finish(Exit::State(self.id)))
    }

    pub fn put_data(&mut self, data: Data) -> Check {
        self.ctx.put_data(data)
    }

    pub fn merge(&mut self, to: Option<PathId>, value: &Data) -> Check {
        self.ctx.merge_into_data(to, value)
    }

    /// Merges all or nothing, because a retry finds everything as it was before.
    pub fn all_or_nothing(&mut self, merge: impl FnOnce(&mut Self) -> Check) -> Check {
        let before = self.data().clone();
        let merged = merge(self);
        if merged.is_err() {
            self.ctx.set_data(before);
        }
        merged
    }

    pub fn replay(&mut self, merges: Vec<Merge>) -> Check {
        self.ctx.replay(merges)
    }

    pub fn work(&mut self, work: Work) {
        self.ctx.work(work);
    }

    /// Returns the number of the timer.
    pub fn arm(&mut self, kind: TimerKind, after: &Period) -> Result<u32, WorkflowError> {
        self.ctx.arm(kind, after)
    }

    pub fn is_armed(&self, kind: TimerKind) -> bool {
        self.ctx.is_armed(kind)
    }

    pub fn disarm(&mut self, which: impl Fn(TimerKind) -> bool) {
        self.ctx.disarm(which);
    }

    pub fn disarm_one(&mut self, seq: u32) {
        self.ctx.disarm_one(seq);
    }

    pub fn event_match(&self, id: EventId) -> Result<Option<EventMatch>, WorkflowError> {
        self.ctx.event_match(id)
    }

    pub fn event_slots(&self, state: &EventState) -> Result<Vec<Slot>, WorkflowError> {
        self.ctx.event_slots(state)
    }

    pub fn subscribe(&mut self, slots: Vec<Slot>) {
        self.ctx.subscribe(slots);
    }

    /// Takes an event that came during the delay of a retry.
    pub fn take_held(&mut self, filters: &[EventMatch]) -> Option<(EventId, CloudEvent)> {
        self.ctx.take_held(filters)
    }

    /// Waits for one of these events.
    pub fn wait(&mut self, filters: Vec<EventMatch>, timeout: Option<&Period>) -> Step {
        self.subscribe(vec![Slot { slot: 0, filters }]);
        if let Some(timeout) = timeout {
            self.arm(TimerKind::Event, timeout)?;
        }
        self.work(Work::Events);
        Ok(Next::Block)
    }

    pub fn waits(&self) -> bool {
        self.ctx.scope.wait.is_some()
    }

    pub fn unsubscribe(&mut self) {
        self.ctx.unsubscribe();
    }

    pub fn unsubscribe_state(&mut self) {
        self.ctx.unsubscribe_state();
    }

    pub fn merge_event(&mut self, filter: &EventFilter, def: EventId, event: &CloudEvent) -> Check {
        self.ctx.merge_event(filter, def, event)
    }

    /// Merges the single event that the state waited for. If that fails, a retry finds the event.
    pub fn take_event(&mut self, filter: &EventFilter, def: EventId, event: &CloudEvent) -> Check {
        let merged = self.merge_event(filter, def, event);
        if merged.is_err() {
            self.ctx.keep_event(def, event);
        }
        merged
    }

    /// The single event that arrived but could not be merged.
    pub fn kept_event(&self) -> Option<(EventId, CloudEvent)> {
        let run = self.ctx.scope.position()?.events.as_ref()?;
        let (def, event) = run.arrived.first()?;
        Some((EventId(*def), event.clone()))
    }

    pub fn events(&self) -> EventRun {
        self.ctx.event_run()
    }

    pub fn change_events(&mut self, change: impl FnOnce(&mut EventRun)) {
        self.ctx.change_events(change);
    }

    pub fn set_events(&mut self, run: EventRun) {
        self.ctx.set_events(run);
    }

    /// Those of the events that created the instance, or that came during a retry's delay.
    pub fn take_start_events(
        &mut self,
        wanted: impl Fn(EventId) -> bool,
    ) -> Vec<(u32, CloudEvent)> {
        let held = self.ctx.scope.start_events.iter().cloned();
        let (started, left): (Vec<_>, Vec<_>) = held.partition(|held| wanted(EventId(held.def)));
        if !started.is_empty() {
            self.ctx.emit(Event::StartEvents(left));
        }
        for start in &started {
            self.ctx.consumed(EventId(start.def), &start.event);
        }
        started
            .into_iter()
            .map(|start| (start.def, start.event))
            .collect()
    }

    pub fn check_fork(&self) -> Check {
        self.ctx.check_fork(None)
    }

    /// Begins a branch that nothing waits for.
    pub fn fork_apart(&mut self, index: u32) {
        self.ctx.fork_apart(self.id, index);
    }

    /// Begins the actions of an entry as a fork of its own.
    pub fn fork_entry(&mut self, entry: u16) {
        self.ctx.fork_entry(self.id, entry);
    }

    pub fn extend_fork(&mut self, run: &ForkRun, open: u32, needed: u32) {
        self.ctx.extend_fork(run, open, needed);
    }

    /// The branches that have begun are done, and the next one begins after a pause.
    pub fn only_pauses(&mut self, run: &ForkRun, needed: u32) {
        self.work(Work::Fork(ForkRun {
            needed,
            waits: true,
            ..run.clone()
        }));
    }

    pub fn close_fork(&mut self) {
        self.ctx.close_fork();
    }

    pub fn close_entries(&mut self) {
        self.ctx.close_entries();
    }

    /// Merges the results of an entry, and closes its fork. If that fails, a retry finds them in the fork.
    pub fn join_entry(&mut self, fork: u32, merges: Vec<Merge>) -> Check {
        let done = BranchResult::Done {
            merges,
            result: None,
            context: None,
            ended: None,
        };
        self.ctx.replay_all([(0, done)])?;
        self.ctx.emit(Event::Joined {
            fork,
            in_state: self.ctx.state_name(),
        });
        self.ctx.command(Command::CloseFork(fork));
        Ok(())
    }

    /// The task begins another attempt.
    pub fn note_retry(&mut self) {
        self.ctx.emit(Event::TaskRetried {
            state: self.id,
            name: self.workflow()[self.id].name.clone(),
        });
    }

    /// Ends the repetition of an action.
    pub fn stop_repeating(&mut self) {
        self.ctx.stop_repeating();
    }

    pub fn now(&self) -> Timestamp {
        self.ctx.now()
    }

    pub fn check_data(&self, data: &Data, what: &str) -> Check {
        self.ctx.check_data(data, what)
    }

    pub fn check_held(&self, bytes: usize, what: &str) -> Check {
        self.ctx.check_held(bytes, what)
    }

    pub fn emit_event(&mut self, emit: &Emit) -> Result<Data, WorkflowError> {
        self.ctx.emit_event(emit)
    }

    pub fn context(&self) -> Data {
        let context = self.ctx.scope.context.clone();
        context.unwrap_or_else(Data::object)
    }

    pub fn put_context(&mut self, context: Data) {
        self.ctx.emit(Event::Context(Some(context)));
    }

    /// Whether the task has pushed its frame.
    pub fn has_frame(&self) -> bool {
        let last = self.ctx.scope.frames.last();
        last.is_some_and(|frame| frame.state == self.id)
    }

    /// # Errors
    /// The tasks around it would hold too much.
    pub fn push_frame(&mut self, iteration: Option<Iteration>, attempt: Option<TryRun>) -> Check {
        self.ctx.push_frame(iteration, attempt)
    }

    pub fn change_frame(&mut self, change: impl FnOnce(&mut Frame)) {
        self.ctx.change_frame(change);
    }

    pub fn pop_frame(&mut self) {
        self.ctx.pop_frame();
    }

    /// Begins the wait of the current task, which listens, unless it waits already.
    pub fn listen(&mut self) -> Check {
        match self.ctx.scope.frames.len().checked_sub(1) {
            Some(depth) => self.ctx.listen(depth),
            None => Ok(()),
        }
    }

    /// Begins to take messages, each with a call.
    pub fn take_messages(&mut self, span: Option<&Period>) -> Check {
        let span = span.map(|span| self.view().period(span, self.data()));
        let source = MessageSource {
            number: self.ctx.seq(),
            ends: span.transpose()?.map(|span| span.add_to(self.now())),
        };
        let run = ListenRun {
            source: Some(source),
            ..ListenRun::default()
        };
        self.push_frame(None, None)?;
        self.change_frame(|frame| frame.listen = Some(Box::new(run)));
        Ok(())
    }

    /// The rule of the messages that the first call of this list takes.
    pub fn message_rule(&self, list: ListId) -> Option<&'a MessageRule> {
        let workflow = self.workflow();
        match &workflow[*workflow[list].actions.first()?].kind {
            ActionKind::Call(call) => call.subscription.as_deref(),
            _ => None,
        }
    }

    /// The progress of the current task, which listens.
    pub fn listen_run(&self) -> Option<&ListenRun> {
        let frame = self.ctx.scope.frames.last()?;
        frame.listen.as_deref()
    }

    pub fn change_listen(&mut self, change: impl FnOnce(&mut ListenRun)) {
        if let Some(depth) = self.ctx.scope.frames.len().checked_sub(1) {
            self.ctx.change_listen(depth, change);
        }
    }

    /// Consumes the first event of the queue, and returns it as read.
    pub fn take_queued(&mut self, keep: bool) -> Option<Data> {
        let queued = self.listen_run()?.queue.first()?.clone();
        // A message isn't an event.
        if !queued.id.is_empty() {
            self.ctx.take_queued(&queued);
        }
        let value = queued.value.clone();
        self.change_listen(|run| {
            run.queue.remove(0);
            run.index += 1;
            match keep {
                true => run.consumed.push(value.clone()),
                false => run.held_bytes = run.held_bytes.saturating_sub(queued.bytes()),
            }
        });
        Some(value)
    }

    /// Checks an output, or the context, for one event of the current task.
    pub fn check_each(&mut self, data: &Data, is_context: bool) -> Check {
        let def = self.ctx.def;
        let Some((output, context)) = def.each_schemas.get(&self.id) else {
            return Ok(());
        };
        let schema = if is_context { context } else { output };
        match schema {
            Some(schema) => self.ctx.validate(schema, data, Checked::Output),
            None => Ok(()),
        }
    }

    /// The data becomes the task's input again.
    pub fn restore_input(&mut self) {
        let frame = self.ctx.scope.frames.last();
        if let Some(input) = frame.and_then(|frame| frame.task.input.clone()) {
            self.ctx.set_data(input);
        }
    }

    /// The task of a frame is the current one, while its frame stays.
    pub fn return_to(&mut self, frame: &Frame) {
        self.ctx.move_to(position_of(frame));
    }

    /// The variables that are visible in the task's list besides those around it.
    pub fn see_params(&mut self, own: Vec<(Arc<str>, Data)>) {
        if let Some(frame) = self.ctx.scope.frames.last().cloned() {
            self.ctx.see_params(&frame, own);
        }
    }

    /// States and actions run since the scope last waited.
    pub fn steps(&self) -> u64 {
        self.ctx.scope.steps
    }

    pub fn set_steps(&mut self, steps: u64) {
        if self.ctx.scope.steps != steps {
            self.ctx.emit(Event::Steps(steps));
        }
    }

    /// Other scopes have a turn before this one continues.
    pub fn pause(&mut self) {
        self.ctx.pause = true;
    }
}
