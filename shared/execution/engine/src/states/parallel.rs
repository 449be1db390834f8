//! Parallel state (0.8, "Parallel State") and `fork` (DSL 1.0, "Fork"): branches, each with its own copy of the data.

use swirl_model::scope::{BranchResult, ForkOrigin, ForkRun, Work};
use swirl_model::workflow::{Body, Parallel};
use swirl_model::{Data, WorkflowError, error::names};

use super::{At, Kind};
use crate::scope::next::Branches;
use crate::scope::{Check, Next, Step};

impl Kind for Parallel {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        let total = self.branches.iter().filter(|branch| branch.awaited).count() as u32;
        let needed = match self.at_least {
            Some(count) => at.view().count(count, at.data(), "numCompleted", 1)?,
            None => total,
        };
        if needed > total {
            let message = format!("numCompleted is {needed}, and there are {total} branches");
            return Err(WorkflowError::new(names::INVALID_VALUE, message));
        }
        for (index, branch) in self.branches.iter().enumerate() {
            if !branch.awaited {
                at.check_fork()?;
                at.fork_apart(index as u32);
            }
        }
        if total > 0 {
            return Ok(Next::Fork(Branches {
                origin: ForkOrigin::Parallel(at.id),
                items: None,
                total,
                open: total,
                needed,
                pause: None,
            }));
        }
        if self.race {
            // Without branches nobody wins.
            at.put_data(Data::NULL)?;
            return at.done();
        }
        // Branches that nothing waits for begin before this scope continues.
        at.pause();
        merge(self, at, Vec::new())?;
        at.done()
    }

    /// Merges the results of enough branches, in the order of the branches.
    fn joined(
        &self,
        at: &mut At<'_, '_>,
        run: &ForkRun,
        results: Vec<(u32, BranchResult)>,
    ) -> Step {
        if self.race {
            return race(at, run, results);
        }
        let contexts = contexts_of(&results);
        let done = results.into_iter().take(run.needed as usize).collect();
        at.all_or_nothing(|at| merge(self, at, done))?;
        merge_contexts(at, contexts);
        at.close_fork();
        at.done()
    }
}

/// The first branch that completes wins. If all fail, the first error is the state's. Several may have ended before this
/// scope looks, so the time of their ends decides, and for equal times the order in the document.
fn race(at: &mut At<'_, '_>, run: &ForkRun, mut results: Vec<(u32, BranchResult)>) -> Step {
    let reported = results.len() as u32;
    results.sort_by_key(|(index, result)| (result.ended(), *index));
    let mut first = None;
    for (_, result) in results {
        match result {
            BranchResult::Done {
                result, context, ..
            } => {
                at.put_data(result.unwrap_or_default())?;
                if let Some(context) = context {
                    at.put_context(context);
                }
                at.close_fork();
                return at.done();
            }
            BranchResult::Lost { error, .. } => {
                first.get_or_insert(error);
            }
            _ => {}
        }
    }
    match first {
        Some(error) if reported >= run.total => {
            at.close_fork();
            at.work(Work::Begin);
            Err(error)
        }
        _ => {
            at.extend_fork(run, run.open, reported + 1);
            Ok(Next::Block)
        }
    }
}

fn contexts_of(results: &[(u32, BranchResult)]) -> Vec<Data> {
    let contexts = results.iter().filter_map(|(_, result)| match result {
        BranchResult::Done { context, .. } => context.clone(),
        _ => None,
    });
    contexts.collect()
}

/// Takes over the members of the context that a branch has changed or removed, in the order of the branches. A context that
/// is not an object is taken over as a whole.
fn merge_contexts(at: &mut At<'_, '_>, contexts: Vec<Data>) {
    let before = at.context();
    let mut after = before.clone();
    for context in contexts {
        let (Some(had), Some(has)) = (before.as_object(), context.as_object()) else {
            if context != before {
                after = context;
            }
            continue;
        };
        for (key, value) in has.iter() {
            let (key, value) = (Data(key.clone()).to_text(), Data(value.clone()));
            if before.get(&key).as_ref() != Some(&value) {
                after.set(&key, value);
            }
        }
        for (key, _) in had.iter().filter(|(key, _)| !has.contains_key(*key)) {
            after.remove(&Data(key.clone()).to_text());
        }
    }
    if after != before {
        at.put_context(after);
    }
}

fn merge(parallel: &Parallel, at: &mut At<'_, '_>, done: Vec<(u32, BranchResult)>) -> Check {
    if parallel.collect {
        let outputs = done.into_iter().map(|(_, result)| match result {
            BranchResult::Done { result, .. } => result.unwrap_or_default(),
            _ => Data::NULL,
        });
        let outputs = Data::array(outputs.collect());
        let data = match parallel.collect_to {
            Some(path) => at.view().set(path, at.data(), outputs)?,
            None => outputs,
        };
        return at.put_data(data);
    }
    for (index, result) in done {
        let BranchResult::Done { merges, result, .. } = result else {
            continue;
        };
        match parallel.awaited(index).map(|branch| branch.body) {
            // A branch with its own states returns its output (docs/language.md#decision-53).
            Some(Body::Flow(_)) => {
                if let Some(output) = result.filter(|output| !output.is_null()) {
                    at.merge(None, &output)?;
                }
            }
            _ => at.replay(merges)?,
        }
    }
    Ok(())
}
