//! Forks of which enough branches are done, or one has failed.

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{BranchResult, EntryFork, ForkRun, ListRun, Merge, Work};

use crate::scope::{Ctx, Next, Rejection, Step};
use crate::states::{At, kind_of};

impl Ctx<'_> {
    pub fn joined(
        &mut self,
        fork: u32,
        results: Vec<(u32, BranchResult)>,
        done: Option<u32>,
    ) -> Result<Step, Rejection> {
        if self.scope.apart.contains(&fork) {
            self.detached_branch_reported(fork, results);
            return Ok(Ok(Next::Block));
        }
        if let Some(entry) = self.entry_of(fork) {
            return Ok(self.entry_joined(entry, results));
        }
        let run = match self.scope.position().map(|position| &position.work) {
            Some(Work::Fork(run)) if run.fork == fork => run.clone(),
            _ => return Err(Rejection::ForkOver),
        };
        let bad = results.iter().find(|(_, result)| !result.is_done());
        Ok(Ok(match bad {
            Some((_, BranchResult::Failed(error)))
                if is_timeout(error) && self.is_last_timeout(error) =>
            {
                Next::Block
            }
            Some((index, BranchResult::Failed(error))) => {
                self.work(Work::Fork(ForkRun {
                    failed: Some(*index),
                    ..run
                }));
                Next::Raise(error.clone())
            }
            Some((_, BranchResult::Left { way, error })) => self.leave_by(*way, error.clone()),
            Some((_, BranchResult::Terminated { data, context, .. })) if self.ends_tasks() => {
                self.abandon();
                self.end_with(data.clone(), context.clone());
                Next::Block
            }
            Some((
                _,
                BranchResult::Terminated {
                    data,
                    parents,
                    context,
                },
            )) => {
                self.abandon();
                self.take_context(context.clone());
                self.terminate(data.clone(), *parents);
                Next::Block
            }
            _ => return self.branches_done(fork, &run, results, done),
        }))
    }

    /// Nothing waits for the branch, but it may still end the instance or follow a transition of its handler.
    fn detached_branch_reported(&mut self, fork: u32, results: Vec<(u32, BranchResult)>) {
        self.command(Command::CloseFork(fork));
        let left = self.scope.apart.iter().copied();
        let left = left.filter(|other| *other != fork).collect();
        self.emit(Event::Apart(left));
        if let Some((_, BranchResult::Terminated { data, parents, .. })) =
            results.into_iter().next()
        {
            self.abandon();
            self.terminate(data, parents);
        }
    }

    fn branches_done(
        &mut self,
        fork: u32,
        run: &ForkRun,
        results: Vec<(u32, BranchResult)>,
        done: Option<u32>,
    ) -> Result<Step, Rejection> {
        let enough = done.is_none_or(|done| done >= run.needed);
        let batch = results.is_empty() && enough && run.open == run.needed && run.open < run.total;
        if !batch && (results.len() as u32) < run.needed {
            // This notification belongs to an earlier batch of the fork and is too late.
            if run.said.idle() == 0 {
                return Err(Rejection::ForkOver);
            }
            self.others_wait(run, &results);
            return Ok(Ok(Next::Block));
        }
        self.emit(Event::Joined {
            fork,
            in_state: self.state_name(),
        });
        let mut run = run.clone();
        match batch {
            true => run.said.clear(),
            false => run.said.forget(&results),
        }
        Ok(self.join(&run, results))
    }

    fn join(&mut self, run: &ForkRun, results: Vec<(u32, BranchResult)>) -> Step {
        if let Some(list) = run.list {
            let alone = self.scope.state().is_none();
            let reported = alone.then(|| merges_of(&results));
            self.replay_all(results)?;
            // The enclosing scope, in whose fork this scope is a branch, merges them too.
            for merge in reported.into_iter().flatten() {
                self.emit(Event::Merged(merge));
            }
            self.close_fork();
            let end = self.def.workflow[list].actions.len() as u16;
            self.list(ListRun::new(list, end, end));
            return Ok(Next::Block);
        }
        let Some((id, state)) = self.state() else {
            return Ok(Next::Block);
        };
        kind_of(&state.kind).joined(&mut At::new(self, id), run, results)
    }

    /// The actions of an entry in its own fork are done, or failed.
    fn entry_joined(&mut self, entry: EntryFork, results: Vec<(u32, BranchResult)>) -> Step {
        Ok(match results.into_iter().next() {
            Some((_, BranchResult::Done { merges, .. })) => {
                let Some((id, state)) = self.state() else {
                    return Ok(Next::Block);
                };
                return kind_of(&state.kind).entry_done(&mut At::new(self, id), entry, merges);
            }
            Some((_, BranchResult::Failed(error) | BranchResult::Lost { error, .. })) => {
                if error.code.as_deref() == Some("timeout") && self.is_last_timeout(&error) {
                    return Ok(Next::Block);
                }
                self.change_events(|run| {
                    for other in &mut run.forks {
                        if other.fork == entry.fork {
                            other.failed = true;
                        }
                    }
                });
                Next::Raise(error)
            }
            Some((_, BranchResult::Left { way, error })) => self.leave_by(way, error),
            Some((_, BranchResult::Terminated { data, parents, .. })) => {
                self.abandon();
                self.terminate(data, parents);
                Next::Block
            }
            None => Next::Block,
        })
    }
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

fn merges_of(results: &[(u32, BranchResult)]) -> Vec<Merge> {
    let merges = results.iter().filter_map(|(_, result)| match result {
        BranchResult::Done { merges, .. } => Some(merges.iter().cloned()),
        _ => None,
    });
    merges.flatten().collect()
}
