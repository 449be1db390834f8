//! The one driver loop.
//!
//! A held scope is stepped with what its inbox holds, the decision is committed, its effects follow,
//! and the loop goes on until the scope waits for something outside of this process. A function
//! call keeps the lease: its answer goes straight on, and meanwhile the inbox is watched, since a
//! timer or a cancellation may end the wait.

mod attempts;
mod decide;
mod inbox;
mod record;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use swirl_engine::{Definition, Env, Request, branch_scope, pending_request};
use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Header;
use swirl_model::redact::Redactor;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::workflow::FunctionId;
use swirl_model::{Data, WorkflowError};
use swirl_ports::call::CallAuth;
use swirl_ports::store::Record;
use swirl_ports::{
    Acquired, CallRequest, Clock, Commit, Committed, EventLog, FunctionCaller, Held, InboxItem,
    Lease, Queue, Released, Secrets, Store,
};

pub use self::attempts::Suspects;
pub use self::record::{RECORDED_BYTES_MAX, Recording};

use self::attempts::Attempt;
use self::decide::{Decided, decide};
use self::inbox::fit;
use self::record::{Given, Recorder, masked};
use crate::Error;
use crate::effects::Effects;
use crate::observe::{CallOutcome, Called, Cause, Observed, Observer};
use crate::registry::Registry;

/// The distributed tracing extension of CloudEvents.
const TRACEPARENT: &str = "traceparent";

#[derive(Debug, Clone)]
pub struct Settings {
    pub lease_ms: u64,
    /// How often a lease is renewed during a call; `None` where leases don't run out.
    pub renew_ms: Option<u64>,
    /// One of the scopes that the last commit woke is left to who drives ([`Driven::On`]), instead of
    /// being put into the queue.
    pub keeps_one: bool,
    /// What the history keeps of calls and events.
    pub recording: Recording,
    /// The longest value of these, in bytes.
    pub recorded_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            lease_ms: 30_000,
            renew_ms: None,
            keeps_one: false,
            recording: Recording::None,
            recorded_bytes_max: RECORDED_BYTES_MAX,
        }
    }
}

pub struct Driver {
    pub store: Arc<dyn Store>,
    pub events: Arc<dyn EventLog>,
    pub queue: Arc<dyn Queue>,
    pub caller: Arc<dyn FunctionCaller>,
    pub secrets: Arc<dyn Secrets>,
    pub clock: Arc<dyn Clock>,
    pub effects: Arc<dyn Effects>,
    pub registry: Arc<Registry>,
    pub settings: Settings,
    /// Who is told what happens.
    pub observer: Option<Arc<dyn Observer>>,
}

/// What is logged while a scope is driven says whose it is.
pub fn log_span(scope: &ScopeRef) -> tracing::Span {
    tracing::info_span!(
        "drive",
        instance = %scope.instance,
        scope = %scope.scope,
        workflow = tracing::field::Empty,
        trace_id = tracing::field::Empty,
    )
}

type Call = BoxFuture<'static, Result<Data, WorkflowError>>;

/// A scope under way.
struct Run {
    def: Arc<Definition>,
    header: Arc<Header>,
    lease: Lease,
    scope: Scope,
    inbox: VecDeque<InboxItem>,
    closed: bool,
    secrets: Data,
    /// Cuts them out of what services answer.
    redactor: Arc<Redactor>,
    recorder: Recorder,
    /// What the history may keep of the call under way.
    given: Option<Given>,
    /// The call that was under way before, elsewhere or in another life.
    left: Option<u32>,
    call: Option<Running>,
    /// The scope may have something to do by itself.
    wake: bool,
    /// A call has been answered, and nobody has looked yet whether something came before that.
    answered: bool,
    /// What goes on after this scope, and isn't in the queue.
    next: Option<ScopeRef>,
    /// Where another attempt may have ended its process.
    suspects: Option<Suspects>,
    attempt: Option<Attempt>,
}

/// A call under way.
struct Running {
    call: u32,
    /// `None`: its arguments cannot be made, so there is no call.
    function: Option<FunctionId>,
    from: Timestamp,
    future: Call,
}

/// How far a scope was driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Driven {
    /// There was nothing more to do here.
    Wholly,
    /// The same, but another scope of the instance can go on now, and isn't in the queue. Only where
    /// [`Settings::keeps_one`] asks for it.
    On(ScopeRef),
    Stopped,
}

enum Next {
    Again,
    Done,
}

impl Driver {
    /// Drives a scope until it waits, ends, or somebody else has it. After an error the scope is
    /// given back: the reconciler brings it home.
    pub async fn drive(&self, task: &ScopeRef) -> Result<(), Error> {
        if let Driven::On(next) = self.drive_until(task, std::future::pending()).await? {
            self.queue.push(vec![next]).await;
        }
        Ok(())
    }

    /// As [`Driver::drive`], but when `stop` is done what is under way is dropped, and the scope is
    /// given back: a call that was under way is made again, with the same key.
    pub async fn drive_until(
        &self,
        task: &ScopeRef,
        stop: impl Future<Output = ()>,
    ) -> Result<Driven, Error> {
        self.drive_with(task, stop, None).await
    }

    /// As [`Driver::drive_until`], for a scope with which somebody may have begun who did not survive
    /// that.
    ///
    /// # Errors
    /// [`Error::Attempts`]: nobody should try again.
    pub async fn drive_late(
        &self,
        task: &ScopeRef,
        stop: impl Future<Output = ()>,
        suspects: &Suspects,
    ) -> Result<Driven, Error> {
        self.drive_with(task, stop, Some(suspects.clone())).await
    }

    async fn drive_with(
        &self,
        task: &ScopeRef,
        stop: impl Future<Output = ()>,
        suspects: Option<Suspects>,
    ) -> Result<Driven, Error> {
        let held = match self
            .store
            .acquire_lazily(task, self.settings.lease_ms)
            .await?
        {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(Driven::Wholly),
        };
        let lease = held.lease.clone();
        let mut stop = pin!(stop);
        let begun = pin!(self.begin_attempt(task, suspects.as_ref()));
        let attempt = match select(begun, stop.as_mut()).await {
            Either::Left((Ok(attempt), _)) => attempt,
            Either::Left((Err(error), _)) => {
                self.give_up(&lease).await;
                return Err(error);
            }
            Either::Right(_) => {
                self.give_up(&lease).await;
                return Ok(Driven::Stopped);
            }
        };
        let mut run = match self.begin(held).await {
            Ok(run) => run,
            Err(error) => {
                self.end_attempt(task, attempt).await;
                self.give_up(&lease).await;
                return Err(error);
            }
        };
        run.suspects = suspects.clone();
        run.attempt = attempt;
        let driven = match select(pin!(self.go_on(&mut run)), stop).await {
            Either::Left((driven, _)) => driven.map(|()| Driven::Wholly),
            Either::Right(_) => Ok(Driven::Stopped),
        };
        self.end_attempt(task, run.attempt.take()).await;
        let next = run.next.take();
        if !matches!(driven, Ok(Driven::Wholly)) {
            self.queue.push(next.into_iter().collect()).await;
            if let Some(running) = run.call.take() {
                self.called(&run, &running, CallOutcome::Abandoned);
            }
            // That of the run: it may have been taken with a commit.
            self.give_up(&run.lease).await;
            return driven;
        }
        Ok(next.map_or(Driven::Wholly, Driven::On))
    }

    async fn go_on(&self, run: &mut Run) -> Result<(), Error> {
        loop {
            if run.attempt.is_none() {
                let scope = &run.lease.scope;
                run.attempt = self.begin_attempt(scope, run.suspects.as_ref()).await?;
            }
            match self.turn(run).await? {
                Next::Again => {}
                Next::Done => return Ok(()),
            }
        }
    }

    /// Gives a lease back whatever is in the inbox.
    pub async fn give_up(&self, lease: &Lease) {
        while let Ok(Released::More) = self.store.release(lease).await {
            if !matches!(self.store.drain(lease).await, Ok(Some(_))) {
                return;
            }
        }
    }

    async fn begin(&self, held: Held) -> Result<Run, Error> {
        let header = held.header.clone();
        self.name_in_log(&header);
        let def = self.registry.get(&header.definition).await?;
        let scope = match held.record {
            Record::Scope(scope) => scope,
            Record::Branch { fork, index } => branch_scope(&def, &fork, index),
        };
        if !def.fits(&scope) {
            let damaged = swirl_ports::Error::Damaged {
                what: held.lease.scope.to_string(),
                reason: format!("it names what its definition {} lacks", header.definition),
            };
            return Err(damaged.into());
        }
        fit(&def, &header, &held.lease.scope, &held.inbox)?;
        let left = scope.pending_call();
        let names = &def.workflow.secrets;
        let secrets = if names.is_empty() {
            Data::NULL
        } else {
            self.secrets.get(names).await
        };
        Ok(Run {
            def,
            header,
            lease: held.lease,
            scope,
            inbox: held.inbox.into(),
            closed: held.closed,
            redactor: Arc::new(Redactor::of(&secrets)),
            recorder: Recorder {
                recording: self.settings.recording,
                bytes_max: self.settings.recorded_bytes_max,
            },
            given: None,
            left,
            secrets,
            call: None,
            wake: true,
            answered: false,
            next: None,
            suspects: None,
            attempt: None,
        })
    }

    /// Fills in what the span of [`log_span`] lacks, if that is what is entered.
    fn name_in_log(&self, header: &Header) {
        let span = tracing::Span::current();
        if span.is_disabled() {
            return;
        }
        span.record("workflow", &*header.definition.workflow);
        if let Some(observer) = &self.observer {
            span.record("trace_id", format!("{:032x}", observer.trace(header)));
        }
    }

    async fn turn(&self, run: &mut Run) -> Result<Next, Error> {
        let now = self.clock.now();
        let env = Env {
            now,
            secrets: run.secrets.clone(),
            bounds: None,
        };
        // Most often nothing came before the answer. That is found out by the commit.
        let before = if std::mem::take(&mut run.answered) {
            let answer = run.inbox.back().cloned();
            answer.map(|answer| (run.scope.clone(), answer))
        } else {
            None
        };
        let mut decided = decide(run, &env);
        let yields = decided.commands.contains(&Command::Yield);
        if run.closed && !decided.changed {
            // Nothing of a closed scope can be committed but its end, which sets its events free.
            self.give_up(&run.lease).await;
            return Ok(Next::Done);
        }
        let (mut released, mut is_woken) = (false, false);
        if !decided.is_empty() {
            let observed = self.observe(run, &mut decided);
            let entries = decided.history.len();
            let calls = !run.closed && run.scope.pending_call().is_some();
            let commit = Commit {
                lease: run.lease.clone(),
                scope: run.scope.clone(),
                consumed: decided.consumed,
                refused: decided.refused,
                history: decided.history,
                commands: decided.commands,
                at: now,
                if_quiet: before.is_some(),
                release: !calls,
                lease_ms: self.settings.lease_ms,
            };
            match self.store.commit(commit).await? {
                Committed::Done {
                    outbox,
                    mut wake,
                    released: given_back,
                    token,
                } => {
                    run.lease.token = token.unwrap_or(run.lease.token);
                    self.effects.progressed(entries);
                    released = given_back;
                    run.scope.rev += 1;
                    if let (Some(observer), Some(observed)) = (&self.observer, observed) {
                        observer.committed(observed);
                    }
                    is_woken = wake.contains(&run.lease.scope);
                    // Effects come first, and may take their time: then others may go on meanwhile.
                    let ends_here = released && !yields && !is_woken && outbox.is_empty();
                    if self.settings.keeps_one && ends_here {
                        run.next = (!wake.is_empty()).then(|| wake.remove(0));
                    }
                    if !wake.is_empty() {
                        self.queue.push(wake).await;
                    }
                    self.flush(outbox).await;
                }
                Committed::News => {
                    // The step is made again, with what came.
                    if let Some((scope, item)) = before {
                        run.scope = scope;
                        return self.look_first(run, item).await;
                    }
                    return self.drain(run).await;
                }
                Committed::Refused => {
                    // Closed, ended or taken over meanwhile: whoever looks next sees how it is.
                    tracing::debug!("the commit was refused");
                    if let Some(observer) = &self.observer {
                        observer.refused(&run.header);
                    }
                    // Who was faster sees to what there is; a lease that was lost says less.
                    if run.lease.is_taken() {
                        self.give_up(&run.lease).await;
                        self.queue.push(vec![run.lease.scope.clone()]).await;
                    }
                    return Ok(Next::Done);
                }
            }
        }
        if released {
            if let Some(running) = run.call.take() {
                self.called(run, &running, CallOutcome::Abandoned);
            }
            if yields && !is_woken {
                self.queue.push(vec![run.lease.scope.clone()]).await;
            }
            return Ok(Next::Done);
        }
        if yields {
            run.wake = true;
            return match self.release(run).await? {
                Next::Again => Ok(Next::Again),
                Next::Done => {
                    self.queue.push(vec![run.lease.scope.clone()]).await;
                    Ok(Next::Done)
                }
            };
        }
        self.follow_call(run, &env).await?;
        if run.call.is_some() && !run.closed {
            self.wait(run).await
        } else {
            self.release(run).await
        }
    }

    /// Keeps the running call in step with the record: a call that was given up is dropped.
    async fn follow_call(&self, run: &mut Run, env: &Env) -> Result<(), Error> {
        let pending = if run.closed {
            None
        } else {
            run.scope.pending_call()
        };
        if run.call.as_ref().map(|running| running.call) == pending {
            return Ok(());
        }
        if let Some(running) = run.call.take() {
            self.called(run, &running, CallOutcome::Abandoned);
        }
        let Some(call) = pending else { return Ok(()) };
        let request = pending_request(&run.def, &run.header, &run.scope, env);
        let Some(request) = request else {
            return Ok(());
        };
        let function = request.as_ref().map(|request| request.function).ok();
        if let (Some(function), true) = (function, run.left.take() == Some(call)) {
            // Before the service is called once more.
            let entry = HistoryEntry {
                at: env.now,
                scope: run.scope.id.clone(),
                event: Event::CallRepeated {
                    function: run.def.workflow[function].name.clone(),
                    call,
                },
                data: None,
            };
            self.store.note(&run.header.id, entry).await?;
        }
        run.given = match &request {
            Ok(request) if run.recorder.is_on() => {
                let shown = shown_arguments(run, request, env);
                let kept = shown.map(|shown| run.recorder.kept(shown, &run.redactor));
                Some(Given::new(call, kept, request))
            }
            _ => None,
        };
        let future: Call = match request {
            Ok(request) => {
                let auth = request.auth.map(|auth| CallAuth {
                    name: auth.name,
                    scheme: auth.scheme,
                    properties: auth.properties,
                });
                let request = CallRequest {
                    definition: run.header.definition.clone(),
                    function: Arc::new(run.def.workflow[request.function].clone()),
                    scope: run.lease.scope.clone(),
                    arguments: request.arguments,
                    selection_set: request.selection_set,
                    key: request.key,
                    at: env.now,
                    auth,
                    secrets: run.redactor.clone(),
                    trace: self.observer.as_ref().map(|observer| {
                        let token = run.lease.token;
                        let cause = Cause::Call { call, token };
                        observer.context(&run.header, &run.scope.id, cause)
                    }),
                };
                let caller = self.caller.clone();
                async move { caller.call(request).await }.boxed()
            }
            Err(error) => futures::future::ready(Err(error)).boxed(),
        };
        run.call = Some(Running {
            call,
            function,
            from: self.clock.now(),
            future,
        });
        Ok(())
    }

    fn called(&self, run: &Run, running: &Running, outcome: CallOutcome<'_>) {
        let (Some(observer), Some(function)) = (&self.observer, running.function) else {
            return;
        };
        observer.called(Called {
            header: &run.header,
            scope: &run.scope.id,
            call: running.call,
            token: run.lease.token,
            function: &run.def.workflow[function],
            from: running.from,
            to: self.clock.now(),
            outcome,
        });
    }

    /// What the observer is told once the decision is committed. Events that are published get
    /// their place in the trace, so that it is stored with them.
    fn observe(&self, run: &Run, decided: &mut Decided) -> Option<Observed> {
        let observer = self.observer.as_ref()?;
        for command in &mut decided.commands {
            if let Command::Publish(event) = command
                && !event.attributes.contains_key(TRACEPARENT)
            {
                let cause = Cause::Event(&event.id);
                let context = observer.context(&run.header, &run.scope.id, cause);
                let value = Data::string(context.to_string());
                event.attributes.insert(TRACEPARENT.to_owned(), value);
            }
        }
        let follows = observer.follows(&run.header);
        let is_end = |command: &Command| {
            use Command::*;
            matches!(command, Report(_) | Drop | End { .. })
        };
        Some(Observed {
            links: std::mem::take(&mut decided.links),
            ended: run.scope.ended() || decided.commands.iter().any(is_end),
            ..Observed::of(&run.header, &run.scope, &decided.history, follows)
        })
    }

    /// Carries out what the commit left to be done.
    pub async fn flush(&self, outbox: Vec<swirl_ports::OutboxEntry>) {
        crate::effects::flush(&*self.store, &*self.effects, outbox).await;
    }
}

/// The arguments without secrets: made once more where there are any, since what an expression makes of a
/// secret is not always recognised. `None`: they cannot be made so.
fn shown_arguments(run: &Run, request: &Request, env: &Env) -> Option<Data> {
    if run.secrets.is_null() {
        return Some(request.arguments.clone());
    }
    let env = Env {
        now: env.now,
        secrets: masked(&run.secrets),
        bounds: None,
    };
    let request = pending_request(&run.def, &run.header, &run.scope, &env)?;
    request.ok().map(|request| request.arguments)
}
