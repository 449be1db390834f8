//! Branches: they are created in one step and joined once.
//!
//! The fork's record has the common initial data of all branches, so its size doesn't depend on the number of branches.
//! Results are a set keyed by branch. The parent is notified when there are enough results, or at the first error.

use std::sync::Arc;
use swirl_model::error::names;
use swirl_model::event::{Command, Event, Input};

use swirl_model::scope::{
    BranchResult, Extended, Fork, ForkOrigin, ForkRun, Role, Scope, TimerKind, Work,
};
use swirl_model::workflow::{StateId, StateKind};
use swirl_model::{Data, WorkflowError};

use crate::definition::Definition;
use crate::scope::next::Branches;
use crate::scope::{Check, Ctx};

/// Creates the scope of a branch that has not begun yet.
pub fn branch_scope(def: &Definition, fork: &Fork, index: u32) -> Scope {
    let role = match fork.origin {
        ForkOrigin::Parallel(state) => Role::Branch { state, index },
        ForkOrigin::Foreach(state) => Role::Iteration { state, index },
        ForkOrigin::Actions(list) => Role::Action { list, index },
        ForkOrigin::Entry(state, entry) => Role::Entry { state, entry },
        ForkOrigin::Apart(state, index) => Role::Apart { state, index },
    };
    let mut scope = Scope::new(fork.parent.child(fork.fork, index), role, fork.data.clone());
    scope.params = fork.params.clone();
    scope.context = fork.context.clone();
    scope.extended = fork.extended.clone();
    scope.last_error = fork.last_error.clone();
    if let ForkOrigin::Foreach(state) = fork.origin
        && let Some(state) = def.workflow.states.get(state.0 as usize)
        && let StateKind::Foreach(foreach) = &state.kind
    {
        let items = fork.items.as_ref().and_then(Data::as_array);
        let item = items
            .and_then(|items| items.get(index as usize))
            .cloned()
            .map(Data);
        let item = item.unwrap_or_default();
        if scope.data.is_object() {
            scope.data.set(&foreach.param, item.clone());
        }
        scope.params.push((foreach.param.clone(), item));
    }
    scope
}

impl Ctx<'_> {
    pub fn fork(&mut self, branches: Branches) -> Check {
        let Branches {
            origin,
            items,
            total,
            open,
            needed,
            pause,
        } = branches;
        if total > self.def.fork_max {
            let message = format!("{total} branches; the limit is {}", self.def.fork_max);
            return Err(WorkflowError::new(names::LIMIT_EXCEEDED, message));
        }
        self.check_fork(items.as_ref())?;
        let fork = self.create_fork(origin, items, (total, open, needed));
        let list = match origin {
            ForkOrigin::Actions(list) => Some(list),
            _ => None,
        };
        self.work(Work::Fork(ForkRun {
            fork,
            total,
            open,
            needed,
            list,
            failed: None,
            said: Default::default(),
            waits: false,
        }));
        if let Some(pause) = pause {
            self.arm(TimerKind::Pause, &pause)?;
        }
        Ok(())
    }

    /// The scope is notified again when enough branches are done, or all that don't only wait.
    pub fn extend_fork(&mut self, run: &ForkRun, open: u32, needed: u32) {
        let news = match run.said.idle() {
            0 => needed,
            idle => needed.min(open.saturating_sub(idle)),
        };
        self.command(Command::ExtendFork {
            fork: run.fork,
            open,
            needed: news,
        });
        self.work(Work::Fork(ForkRun {
            open,
            needed,
            waits: false,
            ..run.clone()
        }));
    }

    /// Cancels the remaining branches. Their events are not used.
    pub fn close_fork(&mut self) {
        if let Some(Work::Fork(run)) = self.scope.position().map(|position| &position.work) {
            let fork = run.fork;
            self.command(Command::CloseFork(fork));
        }
    }

    /// Begins a branch that nothing waits for, as a separate fork. Only a `terminate` in it affects this scope.
    pub(crate) fn fork_apart(&mut self, state: StateId, index: u32) {
        let fork = self.create_fork(ForkOrigin::Apart(state, index), None, (1, 1, 2));
        let mut all = self.scope.apart.clone();
        all.push(fork);
        self.emit(Event::Apart(all));
    }

    /// Ends work that no state waits for, because its enclosing scope ends.
    pub(crate) fn abandon_apart(&mut self) {
        if self.scope.apart.is_empty() {
            return;
        }
        for fork in self.scope.apart.clone() {
            self.command(Command::CloseFork(fork));
        }
        self.emit(Event::Apart(Vec::new()));
    }

    /// # Errors
    /// The initial data of the branches would exceed the instance's size limit.
    pub(crate) fn check_fork(&self, items: Option<&Data>) -> Check {
        let data = &self.scope.data;
        self.check_room(&[data, data, items.unwrap_or(&Data::NULL)])
    }

    /// `(total, open, needed)`. Returns the number of the fork.
    pub(crate) fn create_fork(
        &mut self,
        origin: ForkOrigin,
        items: Option<Data>,
        (total, open, needed): (u32, u32, u32),
    ) -> u32 {
        let fork = self.seq();
        self.emit(Event::Forked {
            fork,
            branches: total,
            in_state: self.state_name(),
        });
        self.command(Command::Fork(Fork {
            parent: self.scope.id.clone(),
            fork,
            origin,
            data: self.scope.data.clone(),
            items,
            params: self.scope.params.clone(),
            context: self.scope.context.clone(),
            extended: self.scope.extended().map(|(state, task, output)| {
                Box::new(Extended {
                    state,
                    task: Arc::new(task.clone()),
                    output: output.cloned(),
                })
            }),
            last_error: self.scope.last_error.clone(),
            total,
            open,
            needed,
            results: Default::default(),
            failed: 0,
            results_max: self.def.sizes.fork_bytes,
            bytes: 0,
            notified: false,
            closed: false,
        }));
        fork
    }

    /// Merges the results of all branches, or of none if one fails.
    pub(crate) fn replay_all(
        &mut self,
        results: impl IntoIterator<Item = (u32, BranchResult)>,
    ) -> Check {
        let (before, plain) = (self.scope.data.clone(), self.scope.result.clone());
        for (_, result) in results {
            let BranchResult::Done { merges, result, .. } = result else {
                continue;
            };
            if let Err(error) = self.replay(merges) {
                self.set_data(before);
                if self.scope.result != plain {
                    self.emit(Event::Result(plain));
                }
                return Err(error);
            }
            // The unmerged result of an action in an iteration's state.
            if result.is_some() && matches!(self.scope.role, Role::Iteration { .. }) {
                self.emit(Event::Result(result));
            }
        }
        Ok(())
    }

    pub(crate) fn revive(&mut self, fork: u32, index: u32, input: Input, others: bool) {
        self.command(Command::ReviveBranch {
            fork,
            index,
            input: Box::new(input),
            others,
        });
    }
}
