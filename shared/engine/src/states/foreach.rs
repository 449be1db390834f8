//! ForEach state (0.8, "ForEach State"; decisions 34 and 58): one iteration for each element.

use swirl_model::scope::{BranchResult, ForkOrigin, ForkRun, Way};
use swirl_model::workflow::{Foreach, IterationMode, StateId};
use swirl_model::{Data, WorkflowError, error::names};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_foreach(&mut self, id: StateId, foreach: &Foreach) -> Step {
        let items = self
            .view()
            .eval(foreach.input, &self.scope.data)?
            .unwrap_or_default();
        let Some(total) = items.as_array().map(|items| items.len() as u32) else {
            let message = format!(
                "inputCollection '{}' gave {} instead of an array",
                self.def.workflow[foreach.input].text,
                items.kind()
            );
            return Err(WorkflowError::new(names::COLLECTION_NOT_ARRAY, message));
        };
        let (open, needed) = match &foreach.mode {
            IterationMode::Sequential => (1, 1),
            IterationMode::Parallel => (total, total),
            IterationMode::Batches(count) => {
                let size = self
                    .view()
                    .count(*count, &self.scope.data, "batchSize", 2)?;
                (size, size)
            }
            IterationMode::Window(count) => {
                (self.view().count(*count, &self.scope.data, "max", 1)?, 1)
            }
        };
        if total == 0 {
            self.collect(foreach, Vec::new())?;
            return self.finish(Way::State(id));
        }
        self.fork(
            ForkOrigin::Foreach(id),
            Some(items),
            total,
            open.min(total),
            needed.min(total),
        )
    }

    pub(crate) fn foreach_done(
        &mut self,
        id: StateId,
        foreach: &Foreach,
        run: &ForkRun,
        results: Vec<(u32, BranchResult)>,
    ) -> Step {
        // After a batch that isn't the last the results stay with the fork.
        let done = if results.is_empty() {
            run.needed
        } else {
            results.len() as u32
        };
        if done < run.total {
            let (open, needed) = match &foreach.mode {
                IterationMode::Sequential => (done + 1, done + 1),
                IterationMode::Parallel => (run.total, run.total),
                IterationMode::Batches(count) => {
                    let size = self
                        .view()
                        .count(*count, &self.scope.data, "batchSize", 2)?;
                    (done + size, done + size)
                }
                IterationMode::Window(count) => {
                    let size = self.view().count(*count, &self.scope.data, "max", 1)?;
                    (done + size, done + 1)
                }
            };
            self.extend_fork(run, open.min(run.total), needed.min(run.total));
            return Ok(());
        }
        self.close_fork();
        let collected = results.into_iter().filter_map(|(_, result)| match result {
            BranchResult::Done { result, .. } => result,
            _ => None,
        });
        self.collect(foreach, collected.collect())?;
        self.finish(Way::State(id))
    }

    /// Appends the iterations' results to the output collection, which is made if it is missing.
    fn collect(&mut self, foreach: &Foreach, results: Vec<Data>) -> Step {
        let Some(path) = foreach.output else {
            return Ok(());
        };
        let view = self.view();
        let old = view.get(path, &self.scope.data)?;
        let mut items: Vec<Data> = match old.as_array() {
            Some(items) => items.iter().cloned().map(Data).collect(),
            None if old.is_null() => Vec::new(),
            None => {
                let text = &self.def.workflow[path].text;
                let message = format!("outputCollection '{text}' is {} already", old.kind());
                return Err(WorkflowError::new(names::MERGE_TYPE_MISMATCH, message));
            }
        };
        items.extend(results);
        let data = view.set(path, &self.scope.data, Data::array(items))?;
        self.set_data(data);
        Ok(())
    }
}
