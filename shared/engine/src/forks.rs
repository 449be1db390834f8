//! Branches: made in one step, joined once.
//!
//! The fork's record holds the data that all branches begin with, so a fork costs the same however
//! many branches it has. Results are a set by branch; the parent is told when enough are there, or
//! at the first error.

use swirl_model::error::names;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{BranchResult, Fork, ForkOrigin, ForkRun, Role, Scope, Work};
use swirl_model::workflow::{ListId, StateKind};
use swirl_model::{Data, WorkflowError};

use crate::ctx::{Ctx, Step};
use crate::definition::Definition;
use crate::step::Rejection;

/// Makes the scope of a branch that has not begun yet.
pub fn branch_scope(def: &Definition, fork: &Fork, index: u32) -> Scope {
    let role = match fork.origin {
        ForkOrigin::Parallel(state) => Role::Branch { state, index },
        ForkOrigin::Foreach(state) => Role::Iteration { state, index },
        ForkOrigin::Actions(list) => Role::Action { list, index },
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
        let fork = self.seq();
        self.emit(Event::Forked {
            fork,
            branches: total,
        });
        self.command(Command::Fork(Fork {
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
            told: false,
            closed: false,
        }));
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

    /// Actions in parallel behave like branches of one action each (decision 33).
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

    /// The branches that are left, if any, are cancelled; what they would produce is not wanted.
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
    ) -> Result<(), Rejection> {
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
            Some((_, BranchResult::Terminated { data, parents })) => {
                self.abandon();
                self.terminate(data.clone(), *parents);
            }
            _ => return self.branches_done(fork, &run, results),
        }
        Ok(())
    }

    fn branches_done(
        &mut self,
        fork: u32,
        run: &ForkRun,
        results: Vec<(u32, BranchResult)>,
    ) -> Result<(), Rejection> {
        let batch = results.is_empty() && run.open == run.needed && run.open < run.total;
        if !batch && (results.len() as u32) < run.needed {
            return Err(Rejection::ForkOver);
        }
        self.emit(Event::Joined { fork });
        let step = self.join(run, results);
        self.settle(step);
        Ok(())
    }

    fn join(&mut self, run: &ForkRun, results: Vec<(u32, BranchResult)>) -> Step {
        let def = self.def.clone();
        if let Some(list) = run.list {
            self.close_fork();
            for (_, result) in results {
                if let BranchResult::Done { merges, .. } = result {
                    self.replay(merges)?;
                }
            }
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
