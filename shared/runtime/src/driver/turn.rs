//! One turn of the loop: decide, commit, then continue or let the scope go.

use swirl_engine::Env;
use swirl_model::event::Command;
use swirl_ports::{Commit, Committed};

use super::decide::{Decided, decide};
use super::inbox::tell_stored;
use super::room::Before;
use super::{Driver, Next, Run};
use crate::Error;
use crate::observe::{CallOutcome, Observed, trace_events};

/// The outcome of a decision.
pub(super) enum Settled {
    /// It is committed, or there was nothing to commit; the scope is still held.
    Held,
    /// It is committed, and the lease was released.
    LetGo {
        /// The scope can continue, and is in the queue already.
        is_woken: bool,
    },
    /// Nothing took effect.
    Not(Next),
}

impl Driver {
    pub(super) async fn turn(&self, run: &mut Run) -> Result<Next, Error> {
        let Some(turn) = self.have_turn(run).await? else {
            return Ok(Next::Done);
        };
        let env = Env {
            now: self.clock.now(),
            secrets: run.secrets.clone(),
            bounds: None,
            room: run.room.take(),
        };
        let before = Before::of(run);
        let decided = turn.counting(|| decide(run, &env));
        drop(turn);
        let yields = decided.commands.contains(&Command::Yield);
        if run.closed && !decided.changed {
            // Only the end of a closed scope can be committed, which releases its events.
            self.give_up(&run.lease).await;
            return Ok(Next::Done);
        }
        match self.settle(run, decided, before, &env).await? {
            Settled::Not(next) => Ok(next),
            Settled::LetGo { is_woken } => {
                self.leave(run, yields && !is_woken).await;
                Ok(Next::Done)
            }
            Settled::Held if yields => self.make_way(run).await,
            Settled::Held => self.wait_or_release(run, &env).await,
        }
    }

    /// Commits a decision, and carries out its consequences.
    pub(super) async fn settle(
        &self,
        run: &mut Run,
        mut decided: Decided,
        before: Option<Before>,
        env: &Env,
    ) -> Result<Settled, Error> {
        // Usually no input came before an answer. The commit checks that.
        let answered = std::mem::take(&mut run.answered);
        if decided.is_empty() {
            return Ok(Settled::Held);
        }
        let yields = decided.commands.contains(&Command::Yield);
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
            at: env.now,
            require_unchanged_inbox: answered && before.is_some(),
            fits: env.room.is_some(),
            release: !calls,
            lease_ms: self.settings.lease_ms,
        };
        let (outbox, mut wake, released, token) = match self.store.commit(commit).await? {
            Committed::Done {
                outbox,
                wake,
                released,
                token,
            } => (outbox, wake, released, token),
            Committed::InboxChanged => return self.look_again(run, before).await.map(Settled::Not),
            Committed::Full(room) => {
                let next = self.make_smaller(run, before, answered, room).await?;
                return Ok(Settled::Not(next));
            }
            Committed::Refused => {
                self.refused(run).await;
                return Ok(Settled::Not(Next::Done));
            }
        };
        run.lease.token = token.unwrap_or(run.lease.token);
        run.scope.rev += 1;
        self.effects.progressed(entries);
        if let (Some(observer), Some(observed)) = (&self.observer, observed) {
            observer.committed(observed);
        }
        let is_woken = wake.contains(&run.lease.scope);
        // Effects come first, and may take long: other workers may continue meanwhile.
        let ends_here = released && !yields && !is_woken && outbox.is_empty();
        if self.settings.local_handoff && ends_here && !wake.is_empty() {
            run.next = Some(wake.remove(0));
        }
        self.wake(wake).await;
        if !outbox.is_empty() {
            // Effects may wait for other systems.
            run.active = None;
        }
        self.flush(outbox).await;
        tell_stored(run).await;
        Ok(match released {
            true => Settled::LetGo { is_woken },
            false => Settled::Held,
        })
    }

    /// Another input came first. The step is made again, with that input.
    async fn look_again(&self, run: &mut Run, before: Option<Before>) -> Result<Next, Error> {
        if let Some(Before {
            scope, mut inbox, ..
        }) = before
            && let Some(answer) = inbox.pop_back()
        {
            run.scope = scope;
            return self.look_first(run, answer).await;
        }
        self.drain(run).await
    }

    /// Closed, ended or taken over meanwhile: the next reader sees the current state.
    async fn refused(&self, run: &mut Run) {
        tracing::debug!("the commit was refused");
        if let Some(observer) = &self.observer {
            observer.refused(&run.header);
        }
        // The inbox is left to the faster process. A lease that is still held is released.
        if run.lease.is_taken() {
            self.give_up(&run.lease).await;
            self.wake(vec![run.lease.scope.clone()]).await;
        }
    }

    /// The lease is released. `wakes`: the scope can continue at once, elsewhere.
    async fn leave(&self, run: &mut Run, wakes: bool) {
        if let Some(running) = run.call.take() {
            self.called(run, &running, CallOutcome::Abandoned);
        }
        if wakes {
            self.wake(vec![run.lease.scope.clone()]).await;
        }
    }

    /// The scope has used up its share of time: others come first.
    async fn make_way(&self, run: &mut Run) -> Result<Next, Error> {
        run.wake = true;
        let next = self.release(run).await?;
        if let Next::Done = next {
            self.wake(vec![run.lease.scope.clone()]).await;
        }
        Ok(next)
    }

    async fn wait_or_release(&self, run: &mut Run, env: &Env) -> Result<Next, Error> {
        self.follow_call(run, env).await?;
        if run.call.is_some() && !run.closed {
            self.wait(run).await
        } else {
            self.release(run).await
        }
    }

    /// The report to the observer once the decision is committed.
    fn observe(&self, run: &Run, decided: &mut Decided) -> Option<Observed> {
        let observer = self.observer.as_ref()?;
        let commands = &mut decided.commands;
        trace_events(&**observer, &run.header, &run.scope.id, commands);
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
}
