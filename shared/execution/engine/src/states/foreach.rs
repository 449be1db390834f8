//! ForEach state (0.8, "ForEach State"; docs/language.md#decision-34 and #decision-58): one iteration for each element.

use swirl_model::scope::{BranchResult, ForkOrigin, ForkRun, TimerKind};
use swirl_model::workflow::{Body, Foreach, IterationMode, Workflow};
use swirl_model::{Data, WorkflowError, error::names};

use super::{At, Kind};
use crate::scope::next::Branches;
use crate::scope::{Check, Next, Step};

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

impl Kind for Foreach {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        let items = at.view().collection(self.input, at.data())?;
        let Some(total) = items.as_array().map(|items| items.len() as u32) else {
            let message = format!(
                "inputCollection '{}' gave {} instead of an array",
                at.workflow()[self.input].text,
                items.kind_in_words()
            );
            return Err(WorkflowError::new(names::COLLECTION_NOT_ARRAY, message));
        };
        let pace = pace(self, at, total)?;
        if total == 0 {
            collect(self, at, Vec::new())?;
            return at.done();
        }
        let pauses = pace.staggered && total.min(pace.at_once) > 1;
        Ok(Next::Fork(Branches {
            origin: ForkOrigin::Foreach(at.id),
            items: Some(items),
            total,
            open: pace.first.min(total),
            needed: pace.look.min(total),
            pause: self.pause.filter(|_| pauses),
        }))
    }

    fn paused(&self, at: &mut At<'_, '_>, run: &ForkRun) -> Step {
        let pace = pace(self, at, run.total)?;
        if !pace.staggered {
            return go_on(self, at, run, run.needed, &pace);
        }
        // At least this many are done: one less than the count at which the next ones are considered.
        let done = run.needed.saturating_sub(1);
        if !pace.has_room(run.open, done, run.total) {
            return Ok(Next::Block);
        }
        let open = run.open + 1;
        at.extend_fork(run, open, run.needed);
        // The pause before the next iteration begins when there is room for it.
        if pace.has_room(open, done, run.total) {
            return pause(self, at);
        }
        Ok(Next::Block)
    }

    fn joined(
        &self,
        at: &mut At<'_, '_>,
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
            let pace = pace(self, at, run.total)?;
            if pace.staggered {
                let needed = (done + 1).min(run.total);
                at.extend_fork(run, run.open, needed);
                if pace.has_room(run.open, done, run.total) && !at.is_armed(TimerKind::Pause) {
                    pause(self, at)?;
                }
                if done >= run.open {
                    at.only_pauses(run, needed);
                }
                return Ok(Next::Block);
            }
            if self.pause.is_some() && !matches!(self.mode, IterationMode::Parallel) {
                at.only_pauses(run, run.needed);
                return pause(self, at);
            }
            return go_on(self, at, run, done, &pace);
        }
        at.disarm(|kind| kind == TimerKind::Pause);
        // A result has the same position as its input. An iteration without a result gives null, unless its results
        // aren't used (docs/language.md#decision-87).
        let gives = gives_results(at.workflow(), self.body);
        let collected = results.into_iter().filter_map(|(_, result)| match result {
            BranchResult::Done { result, .. } => result.or_else(|| gives.then(Data::default)),
            _ => None,
        });
        collect(self, at, collected.collect())?;
        at.close_fork();
        at.done()
    }
}

/// Computes the number of iterations that begin, and the count at which the next ones are considered.
fn pace(foreach: &Foreach, at: &At<'_, '_>, total: u32) -> Result<Pace, WorkflowError> {
    let data = at.data();
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
            let size = at.view().count(*count, data, "batchSize", 2)?;
            plain(size, size)
        }
        IterationMode::Window(count) => {
            let size = match at.view().count(*count, data, "max", 0)? {
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

fn pause(foreach: &Foreach, at: &mut At<'_, '_>) -> Step {
    if let Some(pause) = &foreach.pause {
        at.arm(TimerKind::Pause, pause)?;
    }
    Ok(Next::Block)
}

fn go_on(foreach: &Foreach, at: &mut At<'_, '_>, run: &ForkRun, done: u32, pace: &Pace) -> Step {
    let (open, needed) = match &foreach.mode {
        IterationMode::Window(_) => (done + pace.at_once, done + 1),
        _ => (done + pace.first, done + pace.look),
    };
    at.extend_fork(run, open.min(run.total), needed.min(run.total));
    Ok(Next::Block)
}

fn gives_results(workflow: &Workflow, body: Body) -> bool {
    let Body::Actions(list) = body else {
        return true;
    };
    let mut actions = workflow[list].actions.iter();
    actions.any(|id| {
        let action = &workflow[*id];
        // An action that nothing waits for has no result, so `ignore` on it means nothing.
        !action.results.ignore || action.kind.is_detached()
    })
}

/// Appends the iterations' results to the output collection, and creates the collection if it is missing.
fn collect(foreach: &Foreach, at: &mut At<'_, '_>, results: Vec<Data>) -> Check {
    let Some(path) = foreach.output else {
        return Ok(());
    };
    let view = at.view();
    let old = view.get(path, at.data())?;
    let mut items: Vec<Data> = match old.as_array() {
        Some(items) => items.iter().cloned().map(Data).collect(),
        None if old.is_null() => Vec::new(),
        None => {
            let text = &at.workflow()[path].text;
            let message = format!(
                "outputCollection '{text}' is {} already",
                old.kind_in_words()
            );
            return Err(WorkflowError::new(names::MERGE_TYPE_MISMATCH, message));
        }
    };
    items.extend(results);
    let data = view.set(path, at.data(), Data::array(items))?;
    at.put_data(data)
}
