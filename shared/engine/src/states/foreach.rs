//! ForEach state (0.8, "ForEach State"; docs/language.md#decision-34 and #decision-58): one iteration for each element.

use swirl_model::scope::{BranchResult, Exit, ForkOrigin, ForkRun, TimerKind, Work};
use swirl_model::workflow::{Body, Foreach, IterationMode, StateId, StateKind};
use swirl_model::{Data, WorkflowError, error::names};

use crate::ctx::{Ctx, Step};

/// The order and pace of the iterations.
struct Pace {
    /// The number of iterations that begin together with the state.
    first: u32,
    /// When this many iterations are done, the next ones begin.
    look: u32,
    /// The maximum number of iterations that run at once.
    at_once: u32,
    /// Iterations begin one by one, with a pause in between.
    staggered: bool,
}

impl Pace {
    /// Whether another iteration may begin when `open` have begun and `done` are done.
    fn has_room(&self, open: u32, done: u32, total: u32) -> bool {
        open < total && open.saturating_sub(done) < self.at_once
    }
}

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
        let pace = self.pace(foreach, total)?;
        if total == 0 {
            self.collect(foreach, Vec::new())?;
            return self.finish(Exit::State(id));
        }
        self.fork(
            ForkOrigin::Foreach(id),
            Some(items),
            total,
            pace.first.min(total),
            pace.look.min(total),
        )?;
        if pace.staggered && total.min(pace.at_once) > 1 {
            self.pause_iterations(foreach)?;
        }
        Ok(())
    }

    /// Computes the number of iterations that begin, and the count at which the next ones are considered.
    fn pace(&self, foreach: &Foreach, total: u32) -> Result<Pace, WorkflowError> {
        let data = &self.scope.data;
        let plain = |first, look| Pace {
            first,
            look,
            at_once: first,
            staggered: false,
        };
        let staggered = |at_once| Pace {
            first: 1,
            look: 1,
            at_once,
            staggered: true,
        };
        Ok(match &foreach.mode {
            IterationMode::Sequential => plain(1, 1),
            IterationMode::Parallel if foreach.pause.is_some() => staggered(total),
            IterationMode::Parallel => plain(total, total),
            IterationMode::Batches(count) => {
                let size = self.view().count(*count, data, "batchSize", 2)?;
                plain(size, size)
            }
            IterationMode::Window(count) => {
                let size = match self.view().count(*count, data, "max", 0)? {
                    0 => total,
                    size => size,
                };
                match (&foreach.pause, size < total) {
                    (Some(_), _) => staggered(size),
                    (None, true) => plain(size, 1),
                    (None, false) => plain(total, total),
                }
            }
        })
    }

    fn pause_iterations(&mut self, foreach: &Foreach) -> Step {
        match &foreach.pause {
            Some(pause) => self.arm(TimerKind::Pause, pause),
            None => Ok(()),
        }
    }

    /// The pause between iterations has ended.
    pub(crate) fn paused(&mut self) -> Step {
        let def = self.def.clone();
        let (Some((id, _)), Some(position)) = (self.state(), self.scope.position()) else {
            return Ok(());
        };
        let (StateKind::Foreach(foreach), Work::Fork(run)) =
            (&def.workflow[id].kind, &position.work)
        else {
            return Ok(());
        };
        let run = run.clone();
        let pace = self.pace(foreach, run.total)?;
        if !pace.staggered {
            return self.go_on_iterating(foreach, &run, run.needed, &pace);
        }
        // At least this many are done: one less than the count at which the next ones are considered.
        let done = run.needed.saturating_sub(1);
        if !pace.has_room(run.open, done, run.total) {
            return Ok(());
        }
        let open = run.open + 1;
        self.extend_fork(&run, open, run.needed);
        // The pause before the next iteration begins when there is room for it.
        if pace.has_room(open, done, run.total) {
            return self.pause_iterations(foreach);
        }
        Ok(())
    }

    fn go_on_iterating(
        &mut self,
        foreach: &Foreach,
        run: &ForkRun,
        done: u32,
        pace: &Pace,
    ) -> Step {
        let (open, needed) = match &foreach.mode {
            IterationMode::Window(_) => (done + pace.at_once, done + 1),
            _ => (done + pace.first, done + pace.look),
        };
        self.extend_fork(run, open.min(run.total), needed.min(run.total));
        Ok(())
    }

    pub(crate) fn foreach_done(
        &mut self,
        id: StateId,
        foreach: &Foreach,
        run: &ForkRun,
        results: Vec<(u32, BranchResult)>,
    ) -> Step {
        // After a batch that isn't the last one, the results stay in the fork.
        let done = if results.is_empty() {
            run.needed
        } else {
            results.len() as u32
        };
        if done < run.total {
            let pace = self.pace(foreach, run.total)?;
            if pace.staggered {
                self.extend_fork(run, run.open, (done + 1).min(run.total));
                let waits = self.is_armed(TimerKind::Pause);
                if !waits && pace.has_room(run.open, done, run.total) {
                    return self.pause_iterations(foreach);
                }
                return Ok(());
            }
            if foreach.pause.is_some() && !matches!(foreach.mode, IterationMode::Parallel) {
                return self.pause_iterations(foreach);
            }
            return self.go_on_iterating(foreach, run, done, &pace);
        }
        self.disarm(|kind| kind == TimerKind::Pause);
        // A result has the same position as its input. An iteration without a result gives null, unless its results
        // aren't used (docs/language.md#decision-87).
        let gives = self.gives_results(foreach.body);
        let collected = results.into_iter().filter_map(|(_, result)| match result {
            BranchResult::Done { result, .. } => result.or_else(|| gives.then(Data::default)),
            _ => None,
        });
        self.collect(foreach, collected.collect())?;
        self.close_fork();
        self.finish(Exit::State(id))
    }

    fn gives_results(&self, body: Body) -> bool {
        let Body::Actions(list) = body else {
            return true;
        };
        let mut actions = self.def.workflow[list].actions.iter();
        actions.any(|id| {
            let action = &self.def.workflow[*id];
            // An action that nothing waits for has no result, so `ignore` on it means nothing.
            !action.results.ignore || action.kind.is_detached()
        })
    }

    /// Appends the iterations' results to the output collection, and creates the collection if it is missing.
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
        self.put_data(data)
    }
}
