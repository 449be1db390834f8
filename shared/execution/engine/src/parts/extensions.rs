//! Tasks before and after other tasks (DSL 1.0, "Extension").
//!
//! They run in a frame of the task that they extend, so their errors are the task's and its timeout holds for them.
//! What they give is dropped, unless one before the task skips it.

use swirl_model::WorkflowError;
use swirl_model::scope::{Exit, Extending, Frame, Position};
use swirl_model::workflow::{Extension, FlowId, Task};

use crate::definition::Definition;
use crate::scope::{Ctx, Next, Step};

impl Ctx<'_> {
    /// Begins the next extension before the current task. Returns nothing once the task itself begins.
    pub(crate) fn extend_before(&mut self, task: &Task) -> Result<Option<Next>, WorkflowError> {
        if task.extensions.is_empty() {
            return Ok(None);
        }
        loop {
            let Some(mut position) = self.scope.position().cloned() else {
                return Ok(None);
            };
            let Some(run) = &mut position.task else {
                return Ok(None);
            };
            let progress = run.extensions.get_or_insert_default();
            let Some(index) = task.extensions.get(usize::from(progress.begun)).copied() else {
                return Ok(None);
            };
            let Some(extension) = extension(self.def, index) else {
                return Ok(None);
            };
            let applies = match extension.when {
                Some(when) => self.view().condition(when, &self.scope.data)?,
                None => true,
            };
            progress.begun += 1;
            if applies && extension.after.is_some() {
                progress.after.push(index);
            }
            self.move_to(position);
            if let Some(list) = extension.before.filter(|_| applies) {
                let data = self.scope.data.clone();
                self.push_extension(Extending { data, way: None })?;
                return Ok(Some(Next::Tasks(list)));
            }
        }
    }

    /// Begins the next extension after the current task, whose raw output is there.
    ///
    /// # Errors
    /// The tasks around it would hold too much.
    pub(crate) fn extend_after(&mut self, way: Exit) -> Result<Option<Next>, WorkflowError> {
        let Some((position, list)) = self.next_after() else {
            return Ok(None);
        };
        self.move_to(position);
        let data = self.scope.data.clone();
        self.push_extension(Extending {
            data,
            way: Some(way),
        })?;
        Ok(Some(Next::Tasks(list)))
    }

    /// The tasks of the next extension after the current task, and the position from which they begin.
    fn next_after(&self) -> Option<(Position, FlowId)> {
        let mut position = self.scope.position()?.clone();
        let progress = position.task.as_mut()?.extensions.as_mut()?;
        if progress.after.is_empty() {
            return None;
        }
        let index = progress.after.remove(0);
        let list = extension(self.def, index)?.after?;
        Some((position, list))
    }

    /// The tasks of an extension have ended: the extended task continues.
    pub(crate) fn extension_left(&mut self, frame: &Frame) -> Step {
        let Some(extending) = frame.extending.clone() else {
            return Ok(Next::Block);
        };
        self.pop_frame();
        self.set_data(extending.data);
        Ok(match extending.way {
            Some(way) => Next::Finish(way),
            None => Next::Block,
        })
    }

    /// A task of an extension skips the extended task, and gives its raw output.
    pub(crate) fn extended_skipped(&mut self) -> Step {
        let Some(frame) = self.scope.frames.last().cloned() else {
            return Ok(Next::Block);
        };
        self.pop_frame();
        if let Some(mut position) = self.scope.position().cloned()
            && let Some(run) = &mut position.task
        {
            run.extensions = None;
            self.move_to(position);
        }
        Ok(Next::Finish(Exit::State(frame.state)))
    }
}

fn extension(def: &Definition, index: u16) -> Option<&Extension> {
    let tasks = def.workflow.tasks.as_ref()?;
    tasks.extensions.get(usize::from(index))
}
