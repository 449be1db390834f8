//! An operator's retry of a state with branches that timed out. Its branches haven't failed: each goes on with new
//! timeouts, and performs the action again that was under way (docs/language.md#decision-104).
//!
//! The branches get their input first, while the instance is still faulted and takes in nothing else. The scope of the
//! state follows once all of them have it. A branch may have timed out in the meantime. That doesn't count, whatever the
//! instance was faulted for: the branch goes on in the same way.

use swirl_model::error::names;
use swirl_model::event::{Command, Input};
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_model::scope::{ActionStep, ForkRun, ListRun, Role, TimerKind, Work};
use swirl_model::time::Timestamp;
use swirl_model::workflow::StateKind;

use crate::scope::{Check, Ctx, Next, Rejection, Step};

impl Ctx<'_> {
    /// The branches that were under way when the state of this faulted scope timed out.
    pub(super) fn timed_out_fork(&self) -> Option<ForkRun> {
        let fault = self.scope.fault.as_ref()?;
        match &self.scope.position()?.work {
            Work::Fork(run) if run.failed.is_none() && fault.name == names::STATE_TIMEOUT => {
                Some(run.clone())
            }
            _ => None,
        }
    }

    /// Effects are carried out in order, so the branches get the input before this scope does.
    pub(super) fn let_branches_go_on(&mut self, run: &ForkRun) {
        let since = self.now();
        self.send_to_branches(run, since);
        self.send_go_on(self.scope.id.clone(), since);
    }

    fn send_to_branches(&mut self, run: &ForkRun, since: Timestamp) {
        for index in 0..run.open {
            self.send_go_on(self.scope.id.child(run.fork, index), since);
        }
    }

    fn send_go_on(&mut self, scope: ScopeId, since: Timestamp) {
        let instance = self.header.id.clone();
        self.command(Command::Send {
            to: ScopeRef { instance, scope },
            input: Box::new(Input::GoOn { since }),
        });
    }

    pub(super) fn go_on_in_branch(&mut self, since: Timestamp) {
        let Some(position) = self.scope.position().cloned() else {
            return;
        };
        self.disarm(|kind| matches!(kind, TimerKind::Branch | TimerKind::State | TimerKind::Task));
        if let Err(error) = self.rearm_around() {
            self.follow(Err(error));
        }
        match position.work {
            Work::List(run) => self.perform_again(run, since),
            Work::Fork(run) => self.send_to_branches(&run, since),
            _ => {}
        }
    }

    /// A timeout of a branch that came while the instance was faulted.
    pub(super) fn timed_out_meanwhile(&mut self, seq: u32) -> Result<Step, Rejection> {
        if matches!(self.scope.role, Role::Detached { .. } | Role::Apart { .. }) {
            // Nothing waits for the scope, so no retry concerns it.
            return self.timer(seq);
        }
        if !self.scope.timers.iter().any(|timer| timer.seq == seq) {
            return Err(Rejection::TimerDisarmed);
        }
        self.disarm_one(seq);
        self.go_on_in_branch(self.now());
        Ok(Ok(Next::Block))
    }

    fn perform_again(&mut self, mut run: ListRun, since: Timestamp) {
        let is_open = match &run.step {
            ActionStep::Call { at, .. } => *at < since,
            ActionStep::Event { .. } | ActionStep::Subflow { .. } => true,
            _ => false,
        };
        if !is_open {
            return;
        }
        self.disarm(|kind| matches!(kind, TimerKind::Action | TimerKind::ConsumeEvent));
        self.unsubscribe_answer();
        self.abandon_subflow();
        run.attempt = 0;
        run.waited_ms = 0;
        run.retried = Vec::new();
        run.step = ActionStep::Attempt;
        self.list(run);
    }

    /// Restarts the timeouts of the state and the branch, and what waits around the current task.
    pub(super) fn rearm_around(&mut self) -> Check {
        if self.has_tasks() {
            self.rearm_tasks()?;
            return self.listen_around();
        }
        let def = self.def;
        if let Role::Branch { state, index } = self.scope.role
            && let StateKind::Parallel(parallel) = &def.workflow[state].kind
            && let Some(branch) = parallel.awaited(index)
            && let Some(timeout) = &branch.timeout
        {
            self.arm(TimerKind::Branch, timeout)?;
        }
        if let Some(timeout) = self.state().and_then(|(_, state)| state.timeout.as_ref()) {
            self.arm(TimerKind::State, timeout)?;
        }
        Ok(())
    }
}
