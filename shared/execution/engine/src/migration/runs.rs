//! Tasks that have begun, in another version: what they have kept, and the progress of their extensions.

use swirl_model::scope::{ExtensionRun, TaskRun};
use swirl_model::workflow::{StateId, Workflow};

use super::{Fits, Migration, misfit};

impl Migration<'_> {
    /// A task that has begun.
    pub(super) fn task_run(&self, was: StateId, is: StateId, run: &TaskRun) -> Fits<TaskRun> {
        let (from, to) = (&self.from.uses, &self.to.uses);
        let lacks_input = run.input.is_none() && to.keeps_input[is.0 as usize];
        let lacks_raw = !from.task && to.task;
        if lacks_raw || (lacks_input && !from.keeps_input[was.0 as usize]) {
            return misfit(format_args!(
                "an expression in {} uses the input of task '{}', which the instance has not kept",
                self.version(),
                self.named(was)
            ));
        }
        let mut run = run.clone();
        if let Some(progress) = &mut run.extensions {
            self.same_extensions(was, is, progress)?;
        }
        Ok(run)
    }

    /// The extensions of a task are counted in their order, so they must be the same.
    fn same_extensions(&self, was: StateId, is: StateId, run: &mut ExtensionRun) -> Fits<()> {
        let (before, after) = (
            extensions(&self.from.workflow, was),
            extensions(&self.to.workflow, is),
        );
        let names = |all: &[(u16, &str)]| all.iter().map(|(_, name)| (*name).to_owned()).collect();
        let (own, new): (Vec<String>, Vec<String>) = (names(&before), names(&after));
        if own != new {
            return misfit(format_args!(
                "task '{}' has other extensions in {}",
                self.named(was),
                self.version()
            ));
        }
        for index in &mut run.after {
            let place = before.iter().position(|(known, _)| known == index);
            if let Some((number, _)) = place.and_then(|place| after.get(place)) {
                *index = *number;
            }
        }
        Ok(())
    }
}

/// The numbers and names of the extensions that may apply to a task.
fn extensions(workflow: &Workflow, id: StateId) -> Vec<(u16, &str)> {
    let all = workflow.tasks.as_ref().map(|tasks| &tasks.extensions);
    let own = workflow[id].task.as_ref().map(|task| &task.extensions);
    let own = own.into_iter().flatten();
    own.filter_map(|index| Some((*index, &*all?.get(usize::from(*index))?.name)))
        .collect()
}
