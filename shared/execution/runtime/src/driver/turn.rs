//! One turn of the loop: decide, commit, then continue or release the scope.

use std::sync::Arc;

use swirl_engine::Env;
use swirl_model::event::Command;
use swirl_model::ids::ScopeRef;
use swirl_model::time::Timestamp;
use swirl_ports::{Commit, Committed, OutboxEntry};

use super::decide::{Decided, decide};
use super::inbox::notify_stored;
use super::policy::Policy;
use super::room::Undo;
use super::{Driver, Next, Run};
use crate::Error;
use crate::observe::{CallOutcome, Observed, Observer, trace_events};

/// The outcome of a turn.
pub(super) enum Turned {
    /// Committed, or there was nothing to commit. The scope is still held.
    Held { yields: bool, env: Env },
    /// Committed, and the lease was released.
    Released {
        /// The scope can continue, but isn't in the queue.
        continues: bool,
    },
    /// Nothing took effect.
    Nothing(Next),
}

impl Driver {
    /// Takes a turn, then continues or lets the scope go.
    pub(super) async fn go_on(&self, run: &mut Run) -> Result<Next, Error> {
        match self.turn(run).await? {
            Turned::Nothing(next) => Ok(next),
            Turned::Released { continues } => {
                self.finish(run, continues).await;
                Ok(Next::Done)
            }
            Turned::Held { yields: true, .. } => self.yield_to_others(run).await,
            Turned::Held { env, .. } => self.wait_or_release(run, &env).await,
        }
    }

    /// Takes a turn: decides, commits what the policy allows, and carries out the effects.
    pub(super) async fn turn(&self, run: &mut Run) -> Result<Turned, Error> {
        let Some(permit) = self.permit_with_fresh_data(run).await? else {
            return Ok(Turned::Nothing(Next::Done));
        };
        let env = run.env(self.clock.now());
        let undo = Undo::of(run);
        let mut decided = permit.counting(|| decide(run, &env));
        drop(permit);
        if !run.policy.allows(run, &decided) {
            return Ok(Turned::Nothing(Next::Done));
        }
        if run.closed && !decided.changed {
            // A closed scope can commit only its end, which releases its events.
            self.keep_subscriptions(run);
            self.give_up(&run.lease).await;
            return Ok(Turned::Nothing(Next::Done));
        }
        // Usually no input arrived before the answer. The commit checks that.
        let answered = std::mem::take(&mut run.answered);
        let yields = decided.commands.contains(&Command::Yield);
        if decided.is_empty() {
            return Ok(Turned::Held { yields, env });
        }
        let observer = self.observer.as_deref();
        let observed = observer.map(|it| observed(it, run, &mut decided, self.clock.now()));
        let entries = decided.history.len();
        let commit = self.commit_of(run, decided, &env, answered && undo.is_some());
        let (outbox, mut wake, joins, released, token) = match self.store.commit(commit).await? {
            Committed::Done {
                outbox,
                wake,
                joins,
                released,
                token,
            } => (outbox, wake, joins, released, token),
            Committed::InboxChanged => {
                let next = self.retry_after_newer_input(run, undo).await?;
                return Ok(Turned::Nothing(next));
            }
            Committed::Full(room) => {
                let next = self.retry_within_limit(run, undo, answered, room).await?;
                return Ok(Turned::Nothing(next));
            }
            Committed::Refused => {
                self.refused(run).await;
                return Ok(Turned::Nothing(Next::Done));
            }
        };
        run.lease.token = token.unwrap_or(run.lease.token);
        run.scope.rev += 1;
        self.effects.progressed(entries);
        if let (Some(observer), Some(observed)) = (observer, observed) {
            observer.committed(observed);
        }
        if self.leaves_joins(&run.def) {
            self.leave_joins(joins).await;
        } else {
            wake.extend(joins);
        }
        let is_woken = wake.contains(&run.lease.scope);
        self.follow_up(run, outbox, wake, released && !yields && !is_woken)
            .await;
        notify_stored(run).await;
        self.keep_subscriptions(run);
        Ok(match released {
            true => Turned::Released {
                continues: yields && !is_woken,
            },
            false => Turned::Held { yields, env },
        })
    }

    fn commit_of(
        &self,
        run: &Run,
        decided: Decided,
        env: &Env,
        require_unchanged_inbox: bool,
    ) -> Commit {
        let calls = !run.closed && run.scope.pending_call().is_some();
        Commit {
            lease: run.lease.clone(),
            scope: run.scope.clone(),
            consumed: decided.consumed,
            refused: decided.refused,
            history: decided.history,
            commands: decided.commands,
            at: env.now,
            require_unchanged_inbox,
            fits: env.room.is_some(),
            release: !calls,
            lease_ms: self.settings.lease_ms,
        }
    }

    /// Wakes the scopes that can continue, and carries out the effects. `is_over`: this scope has nothing more to do
    /// here, so its driver may continue with others.
    async fn follow_up(
        &self,
        run: &mut Run,
        outbox: Vec<OutboxEntry>,
        mut wake: Vec<ScopeRef>,
        is_over: bool,
    ) {
        // Effects come before the next scopes and may take long, so those are left to other workers if there are any.
        let mut here = 0;
        if is_over && outbox.is_empty() {
            here = self.handed_off(&run.header.definition.workflow);
            run.next = wake.drain(..here.min(wake.len())).collect();
        }
        match here {
            0 | 1 => self.wake(wake).await,
            _ if wake.is_empty() => {}
            _ => self.queue.push_together(wake).await,
        }
        if !outbox.is_empty() {
            // Effects may wait for other systems.
            run.active = None;
        }
        self.flush(outbox).await;
    }

    /// How many of the woken scopes the caller may continue with. A message costs more than a short turn; long turns are
    /// for all processes.
    fn handed_off(&self, workflow: &Arc<str>) -> usize {
        let most = self.settings.local_handoff;
        match &self.shares {
            Some(shares) if most > 1 && !shares.are_short(workflow) => 1,
            _ => most,
        }
    }

    /// Repeats the step, because another input arrived first.
    async fn retry_after_newer_input(
        &self,
        run: &mut Run,
        undo: Option<Undo>,
    ) -> Result<Next, Error> {
        if let Some(Undo {
            scope, mut inbox, ..
        }) = undo
            && let Some(answer) = inbox.pop_back()
        {
            run.scope = scope;
            return self.process_newer_inputs_first(run, answer).await;
        }
        self.drain(run).await
    }

    /// Handles a refused commit: the scope was closed, has ended or was taken over. The next reader sees the current
    /// state.
    async fn refused(&self, run: &mut Run) {
        tracing::debug!("the commit was refused");
        if let Some(observer) = &self.observer {
            observer.refused(&run.header);
        }
        // Leave the inbox to the faster process. Release a lease that is still held.
        if run.lease.is_taken() {
            self.give_up(&run.lease).await;
        }
        // A store may have guessed that a branch hasn't begun. Then this task may be for something that came later, so
        // the scope gets another one.
        let may_be_guessed = run.scope.rev == 0 && !run.scope.id.is_root();
        if run.lease.is_taken() || may_be_guessed {
            self.wake(vec![run.lease.scope.clone()]).await;
        }
    }

    /// Ends the subscriptions of tasks that are over.
    fn keep_subscriptions(&self, run: &Run) {
        if !run.def.keeps_subscriptions {
            return;
        }
        let frames = run.scope.frames.iter().filter(|_| !run.closed);
        let sources = frames.filter_map(|frame| frame.listen.as_ref()?.source);
        let numbers: Vec<u32> = sources.map(|source| source.number).collect();
        self.caller.keep_subscriptions(&run.lease.scope, &numbers);
    }

    /// Ends the run after the lease was released. `requeues`: the scope can continue at once, elsewhere.
    async fn finish(&self, run: &mut Run, requeues: bool) {
        if let Some(running) = run.call.take() {
            self.called(run, &running, CallOutcome::Abandoned);
        }
        if requeues {
            self.wake(vec![run.lease.scope.clone()]).await;
        }
    }

    /// Lets other scopes go first, because this one has used up its share of time.
    async fn yield_to_others(&self, run: &mut Run) -> Result<Next, Error> {
        run.wake = true;
        let next = self.release(run).await?;
        if let Next::Done = next {
            self.wake(vec![run.lease.scope.clone()]).await;
        }
        Ok(next)
    }

    async fn wait_or_release(&self, run: &mut Run, env: &Env) -> Result<Next, Error> {
        if run.policy == Policy::Join {
            return self.release(run).await;
        }
        self.follow_call(run, env).await?;
        if run.call.is_some() && !run.closed {
            self.wait(run).await
        } else {
            self.release(run).await
        }
    }
}

/// The report to send to the observer once the decision is committed.
pub(super) fn observed(
    observer: &dyn Observer,
    run: &Run,
    decided: &mut Decided,
    at: Timestamp,
) -> Observed {
    trace_events(observer, &run.header, &run.scope.id, &mut decided.commands);
    let follows = observer.follows(&run.header);
    let is_end = |command: &Command| {
        use Command::*;
        matches!(command, Report(_) | Drop | End { .. })
    };
    let workflow = &run.def.workflow;
    let name = follows.then(|| run.scope.role.name(workflow));
    let name = name.flatten();
    Observed {
        has_tasks: workflow.tasks.is_some(),
        links: std::mem::take(&mut decided.links),
        ended: run.scope.ended() || decided.commands.iter().any(is_end),
        ..Observed::of(
            &run.header,
            (&run.scope, name),
            &decided.history,
            follows,
            at,
        )
    }
}
