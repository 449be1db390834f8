//! Parallel state (0.8, "Parallel State"): branches, each with its own copy of the state data.

use swirl_model::scope::{BranchResult, Exit, ForkOrigin, ForkRun};
use swirl_model::workflow::{Body, Parallel, StateId};
use swirl_model::{Data, WorkflowError, error::names};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_parallel(&mut self, id: StateId, parallel: &Parallel) -> Step {
        let awaited = parallel.branches.iter().filter(|branch| branch.awaited);
        let total = awaited.count() as u32;
        let needed = match parallel.at_least {
            Some(count) => self
                .view()
                .count(count, &self.scope.data, "numCompleted", 1)?,
            None => total,
        };
        if needed > total {
            let message = format!("numCompleted is {needed}, and there are {total} branches");
            return Err(WorkflowError::new(names::INVALID_VALUE, message));
        }
        for (index, branch) in parallel.branches.iter().enumerate() {
            if !branch.awaited {
                self.check_fork(None)?;
                self.fork_apart(id, index as u32);
            }
        }
        if total > 0 {
            return self.fork(ForkOrigin::Parallel(id), None, total, total, needed);
        }
        // Branches that nothing waits for begin before this scope continues.
        self.pause = true;
        self.merge_branches(parallel, Vec::new())?;
        self.finish(Exit::State(id))
    }

    /// Enough branches are done: merges their results, in the order of the branches.
    pub(crate) fn parallel_done(
        &mut self,
        id: StateId,
        parallel: &Parallel,
        run: &ForkRun,
        results: Vec<(u32, BranchResult)>,
    ) -> Step {
        let done = results.into_iter().take(run.needed as usize);
        let before = self.scope.data.clone();
        // Merges all results or none, because a retry finds the branches as they ended.
        if let Err(error) = self.merge_branches(parallel, done.collect()) {
            self.set_data(before);
            return Err(error);
        }
        self.close_fork();
        self.finish(Exit::State(id))
    }

    fn merge_branches(&mut self, parallel: &Parallel, done: Vec<(u32, BranchResult)>) -> Step {
        if parallel.collect {
            let outputs = done.into_iter().map(|(_, result)| match result {
                BranchResult::Done { result, .. } => result.unwrap_or_default(),
                _ => Data::NULL,
            });
            let outputs = Data::array(outputs.collect());
            let data = match parallel.collect_to {
                Some(path) => self.view().set(path, &self.scope.data, outputs)?,
                None => outputs,
            };
            self.put_data(data)?;
            return Ok(());
        }
        for (index, result) in done {
            let BranchResult::Done { merges, result, .. } = result else {
                continue;
            };
            match parallel.awaited(index).map(|branch| branch.body) {
                // A branch with its own states returns its output (docs/language.md#decision-53).
                Some(Body::Flow(_)) => {
                    if let Some(output) = result.filter(|output| !output.is_null()) {
                        self.merge_into_data(None, &output)?;
                    }
                }
                _ => self.replay(merges)?,
            }
        }
        Ok(())
    }
}
