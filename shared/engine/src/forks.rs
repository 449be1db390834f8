//! Branches: they are created in one step and joined once.
//!
//! The fork's record has the common initial data of all branches, so its size doesn't depend on the number of branches.
//! Results are a set keyed by branch. The parent is notified when there are enough results, or at the first error.

use swirl_model::error::names;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{BranchResult, Fork, ForkOrigin, ForkRun, Merge, Role, Scope, Work};
use swirl_model::workflow::{ListId, StateId, StateKind};
use swirl_model::{Data, WorkflowError};

use crate::ctx::{Ctx, Step};
use crate::definition::Definition;
use crate::step::Rejection;

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

fn is_timeout(error: &WorkflowError) -> bool {
    let timeouts = [
        names::STATE_TIMEOUT,
        names::ACTION_TIMEOUT,
        names::BRANCH_TIMEOUT,
        names::EVENT_TIMEOUT,
    ];
    timeouts.contains(&error.name.as_str())
}

fn was_left(results: &[(u32, BranchResult)]) -> bool {
    results
        .iter()
        .any(|(_, result)| matches!(result, BranchResult::Done { left: true, .. }))
}

fn merges_of(results: &[(u32, BranchResult)]) -> Vec<Merge> {
    let merges = results.iter().filter_map(|(_, result)| match result {
        BranchResult::Done { merges, .. } => Some(merges.iter().cloned()),
        _ => None,
    });
    merges.flatten().collect()
}

impl Ctx<'_> {
    pub fn fork(
        &mut self,
        origin: ForkOrigin,
        items: Option<Data>,
        total: u32,
        open: u32,
        needed: u32,
    ) -> Step {
        if total > self.def.fork_max {
            let message = format!("{total} branches; the limit is {}", self.def.fork_max);
            return Err(WorkflowError::new(names::LIMIT_EXCEEDED, message));
        }
        self.check_fork(items.as_ref())?;
        let fork = self.seq();
        self.emit(Event::Forked {
            fork,
            branches: total,
            in_state: self.state_name(),
        });
        let record = self.fork_record(fork, origin, items, (total, open, needed));
        self.command(Command::Fork(record));
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
        }));
        Ok(())
    }

    /// Parallel actions behave like branches with one action each (docs/language.md#decision-33).
    pub fn fork_actions(&mut self, list: ListId, total: u32) -> Step {
        self.fork(ForkOrigin::Actions(list), None, total, total, total)
    }

    pub fn extend_fork(&mut self, run: &ForkRun, open: u32, needed: u32) {
        self.command(Command::ExtendFork {
            fork: run.fork,
            open,
            needed,
        });
        self.work(Work::Fork(ForkRun {
            open,
            needed,
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

    pub fn joined(
        &mut self,
        fork: u32,
        results: Vec<(u32, BranchResult)>,
        done: Option<u32>,
    ) -> Result<(), Rejection> {
        if self.scope.apart.contains(&fork) {
            self.detached_branch_reported(fork, results);
            return Ok(());
        }
        if let Some(entry) = self.entry_of(fork) {
            self.entry_joined(entry, results);
            return Ok(());
        }
        let run = match self.scope.position().map(|position| &position.work) {
            Some(Work::Fork(run)) if run.fork == fork => run.clone(),
            _ => return Err(Rejection::ForkOver),
        };
        let bad = results
            .iter()
            .find(|(_, result)| !matches!(result, BranchResult::Done { .. }));
        match bad {
            Some((_, BranchResult::Failed(error)))
                if is_timeout(error) && self.is_last_timeout(error) => {}
            Some((index, BranchResult::Failed(error))) => {
                self.work(Work::Fork(ForkRun {
                    failed: Some(*index),
                    ..run
                }));
                self.raise(error.clone());
            }
            Some((_, BranchResult::Left { way, error })) => self.leave_by(*way, error.clone()),
            Some((_, BranchResult::Terminated { data, parents })) => {
                self.abandon();
                self.terminate(data.clone(), *parents);
            }
            _ => return self.branches_done(fork, &run, results, done),
        }
        Ok(())
    }

    /// Nothing waits for the branch, but it may still end the instance or follow a transition of its handler.
    fn detached_branch_reported(&mut self, fork: u32, results: Vec<(u32, BranchResult)>) {
        self.command(Command::CloseFork(fork));
        let left = self.scope.apart.iter().copied();
        let left = left.filter(|other| *other != fork).collect();
        self.emit(Event::Apart(left));
        if let Some((_, BranchResult::Terminated { data, parents })) = results.into_iter().next() {
            self.abandon();
            self.terminate(data, parents);
        }
    }

    /// Begins a branch that nothing waits for, as a separate fork. Only a `terminate` in it affects this scope.
    pub(crate) fn fork_apart(&mut self, state: StateId, index: u32) {
        let fork = self.seq();
        let origin = ForkOrigin::Apart(state, index);
        self.emit(Event::Forked {
            fork,
            branches: 1,
            in_state: self.state_name(),
        });
        self.command(Command::Fork(self.fork_record(
            fork,
            origin,
            None,
            (1, 1, 2),
        )));
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
    pub(crate) fn check_fork(&self, items: Option<&Data>) -> Step {
        let data = &self.scope.data;
        self.check_room(&[data, data, items.unwrap_or(&Data::NULL)])
    }

    /// `(total, open, needed)`
    pub(crate) fn fork_record(
        &self,
        fork: u32,
        origin: ForkOrigin,
        items: Option<Data>,
        (total, open, needed): (u32, u32, u32),
    ) -> Fork {
        Fork {
            parent: self.scope.id.clone(),
            fork,
            origin,
            data: self.scope.data.clone(),
            items,
            params: self.scope.params.clone(),
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
        }
    }

    fn branches_done(
        &mut self,
        fork: u32,
        run: &ForkRun,
        results: Vec<(u32, BranchResult)>,
        done: Option<u32>,
    ) -> Result<(), Rejection> {
        // This notification belongs to an earlier batch of the fork and is too late.
        let enough = done.is_none_or(|done| done >= run.needed);
        let batch = results.is_empty() && enough && run.open == run.needed && run.open < run.total;
        if !batch && (results.len() as u32) < run.needed {
            return Err(Rejection::ForkOver);
        }
        self.emit(Event::Joined {
            fork,
            in_state: self.state_name(),
        });
        if was_left(&results) {
            self.leave();
            return Ok(());
        }
        let step = self.join(run, results);
        self.raise_failure(step);
        Ok(())
    }

    /// Merges the results of all branches, or of none if one fails.
    pub(crate) fn replay_all(
        &mut self,
        results: impl IntoIterator<Item = (u32, BranchResult)>,
    ) -> Step {
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

    fn join(&mut self, run: &ForkRun, results: Vec<(u32, BranchResult)>) -> Step {
        let def = self.def.clone();
        if let Some(list) = run.list {
            let alone = self.scope.state().is_none();
            let reported = alone.then(|| merges_of(&results));
            self.replay_all(results)?;
            // The enclosing scope, in whose fork this scope is a branch, merges them too.
            for merge in reported.into_iter().flatten() {
                self.emit(Event::Merged(merge));
            }
            self.close_fork();
            let end = def.workflow[list].actions.len() as u16;
            self.list(swirl_model::scope::ListRun::new(list, end, end));
            return Ok(());
        }
        let Some((id, state)) = self.state() else {
            return Ok(());
        };
        match &state.kind {
            StateKind::Parallel(parallel) => self.parallel_done(id, parallel, run, results),
            StateKind::Foreach(foreach) => self.foreach_done(id, foreach, run, results),
            _ => Ok(()),
        }
    }
}
