//! Parallel state (0.8, "Parallel State"): branches, each with its own copy of the state data.

use swirl_model::scope::{BranchResult, ForkOrigin, ForkRun, Way};
use swirl_model::workflow::{Parallel, StateId};
use swirl_model::{Data, WorkflowError, error::names};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_parallel(&mut self, id: StateId, parallel: &Parallel) -> Step {
        let total = parallel.branches.len() as u32;
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
        self.fork(ForkOrigin::Parallel(id), None, total, total, needed)
    }

    /// Enough branches are done: merges what they produced, in the order of the branches.
    pub(crate) fn parallel_done(
        &mut self,
        id: StateId,
        parallel: &Parallel,
        run: &ForkRun,
        results: Vec<(u32, BranchResult)>,
    ) -> Step {
        self.close_fork();
        let done = results.into_iter().take(run.needed as usize);
        if parallel.collect {
            let outputs = done.map(|(_, result)| match result {
                BranchResult::Done { result, .. } => result.unwrap_or_default(),
                _ => Data::NULL,
            });
            self.set_data(Data::array(outputs.collect()));
            return self.finish(Way::State(id));
        }
        for (_, result) in done {
            if let BranchResult::Done { merges, .. } = result {
                self.replay(merges)?;
            }
        }
        self.finish(Way::State(id))
    }
}
