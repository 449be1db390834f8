//! Tasks: states whose output replaces the data (DSL 1.0, "Data Flow").
//!
//! | step | what happens to the data |
//! | --- | --- |
//! | `if` | evaluated over the raw input; false: the raw input goes on, and nothing else of the task applies |
//! | `input.schema`, `input.from` | the raw input is checked, then becomes the input |
//! | extensions | their tasks before the task run over its input (`parts/extensions.rs`) |
//! | the task | the input becomes the raw output |
//! | extensions | their tasks after the task run over its raw output |
//! | `output.as`, `output.schema` | the raw output becomes the output, which is checked |
//! | `export.as`, `export.schema` | evaluated over the output: the new context |
//! | `then` | the next task of the list, the end of the list, or the end of the workflow |
//!
//! A task with lists inside (`Do`, `For`, `Function`, `Try`) pushes a frame and enters a list in the same scope (`scope/frames.rs`).

use swirl_model::event::{Command, Event};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Cursor, Exit, FinishFrom, Purpose, Role, TaskRun, Work};
use swirl_model::workflow::{self, State, StateId, Task, Workflow};
use swirl_model::{Data, WorkflowError};

use crate::definition::flow::next_of;
use crate::scope::validation::Checked;
use crate::scope::{Check, Ctx, Next, Step};

impl Ctx<'_> {
    /// The first task begins.
    pub(crate) fn begin_tasks(&mut self) -> Step {
        let def = self.def;
        let Some(tasks) = &def.workflow.tasks else {
            return Ok(Next::Block);
        };
        if let Some(schema) = &def.input_schema {
            self.validate(schema, &self.header.input, Checked::Input)?;
        }
        if let Some(template) = &tasks.from {
            let input = self.view().template(template, &self.header.input)?;
            self.put_data(input)?;
        }
        Ok(Next::Tasks(Workflow::ROOT))
    }

    /// Begins a task, or continues one that has begun. Returns what follows if it is skipped.
    pub(crate) fn begin_task(
        &mut self,
        id: StateId,
        state: &State,
        task: &Task,
    ) -> Result<Option<Next>, WorkflowError> {
        let position = self.scope.position().filter(|position| !position.entered);
        let Some(mut position) = position.cloned() else {
            return Ok(None);
        };
        let def = self.def;
        let raw = self.scope.data.clone();
        if position.task.is_none() {
            let run = TaskRun {
                raw: def.uses.task.then(|| raw.clone()),
                started_at: self.now(),
                ..TaskRun::default()
            };
            if let Some(condition) = task.condition {
                let mut view = self.view();
                view.task.run = Some(&run);
                if !view.condition(condition, &raw)? {
                    self.emit(Event::StateSkipped {
                        state: id,
                        name: state.name.clone(),
                    });
                    return Ok(Some(self.after_skipped(id)));
                }
            }
            self.emit(Event::StateEntered {
                state: id,
                name: state.name.clone(),
                purpose: Purpose::Main,
            });
            position.task = Some(Box::new(run));
            self.move_to(position.clone());
        }
        if let (Some(schema), _) = &def.state_schemas[id.0 as usize] {
            self.validate(schema, &raw, Checked::Input)?;
        }
        if let Some(template) = &task.from {
            let input = self.view().template(template, &raw)?;
            self.put_data(input)?;
        }
        let mut run = position.task.take().unwrap_or_default();
        if def.uses.keeps_input[id.0 as usize] {
            run.input = Some(self.scope.data.clone());
        }
        position.entered = true;
        position.task = Some(run);
        self.move_to(position);
        self.arm_task(state)?;
        Ok(None)
    }

    /// Ends a task whose work is done: the data is its raw output.
    pub(crate) fn finish_task(&mut self, id: StateId, task: &Task, way: Exit) -> Step {
        if let Some(next) = self.extend_after(way)? {
            return Ok(next);
        }
        let def = self.def;
        let raw = self.scope.data.clone();
        if let Err(error) = self.put_output(id, task, &raw) {
            self.set_data(raw);
            self.work(Work::Finish {
                way,
                from: FinishFrom::Output,
            });
            return Err(error);
        }
        let timer = self
            .scope
            .position()
            .and_then(|position| position.task.as_ref());
        if let Some(timer) = timer.map(|run| run.timer) {
            self.disarm_one(timer);
        }
        self.emit(Event::StateLeft {
            state: id,
            name: def.workflow[id].name.clone(),
            failed: false,
        });
        Ok(self.take_task(way))
    }

    fn put_output(&mut self, id: StateId, task: &Task, raw: &Data) -> Check {
        let def = self.def;
        if let Some(template) = &task.output {
            let mut view = self.view();
            view.task.raw_output = Some(raw);
            let output = view.template(template, raw)?;
            self.put_data(output)?;
        }
        if let (_, Some(schema)) = &def.state_schemas[id.0 as usize] {
            let output = self.scope.data.clone();
            self.validate(schema, &output, Checked::Output)?;
        }
        if let Some(template) = &task.export {
            let mut view = self.view();
            view.task.raw_output = Some(raw);
            view.task.output = Some(&self.scope.data);
            let context = view.template(template, &self.scope.data)?;
            if let Some(schema) = &def.context_schemas[id.0 as usize] {
                self.validate(schema, &context, Checked::Output)?;
            }
            self.check_data(&context, "the context")?;
            self.emit(Event::Context(Some(context)));
        } else if let Some(schema) = &def.context_schemas[id.0 as usize] {
            // Without `as`, the existing context is what is exported.
            let context = self.scope.context.clone().unwrap_or_else(Data::object);
            self.validate(schema, &context, Checked::Output)?;
        }
        Ok(())
    }

    /// Takes the way behind a task.
    pub(crate) fn take_task(&mut self, way: Exit) -> Next {
        match next_of(&self.def.workflow, way) {
            Some(workflow::Next::Transition(transition)) => {
                Next::Enter(transition.to, Purpose::Main)
            }
            Some(workflow::Next::Leave) | None => Next::Left(way),
            Some(workflow::Next::Skip) => Next::Skipped,
            Some(workflow::Next::End(_)) => {
                self.end_tasks(way);
                Next::Block
            }
        }
    }

    /// The next task of the list follows, whatever the way of the skipped task is.
    fn after_skipped(&self, id: StateId) -> Next {
        let list = &self.def.workflow[self.def.workflow[id].flow].states;
        let place = list.iter().position(|state| *state == id);
        let next = place.and_then(|place| list.get(place + 1)).copied();
        match next {
            Some(next) => Next::Enter(next, Purpose::Main),
            None => Next::Left(Exit::State(id)),
        }
    }

    /// A task ends the workflow, from any depth: its output is that of the last task.
    fn end_tasks(&mut self, way: Exit) {
        if !self.scope.id.is_root() {
            let data = self.scope.data.clone();
            self.emit(Event::Moved(Cursor::Ended));
            self.disarm(|_| true);
            self.command(Command::Report(BranchResult::Terminated {
                data,
                parents: false,
                context: self.scope.context.clone(),
            }));
            return;
        }
        self.complete_tasks(way);
    }

    /// Whether an end in a branch is the end of this workflow of tasks.
    pub(crate) fn ends_tasks(&self) -> bool {
        self.scope.id.is_root() && self.has_tasks()
    }

    /// A branch ended the workflow with this output of its last task, and with its context.
    pub(crate) fn end_with(&mut self, output: Data, context: Option<Data>) {
        self.take_context(context);
        self.set_data(output);
        self.complete_tasks(Exit::State(self.scope.state().unwrap_or_default()));
    }

    pub(crate) fn take_context(&mut self, context: Option<Data>) {
        if let Some(context) =
            context.filter(|context| Some(context) != self.scope.context.as_ref())
        {
            self.emit(Event::Context(Some(context)));
        }
    }

    /// The list of the scope itself has ended.
    pub(crate) fn tasks_done(&mut self, way: Exit) {
        if matches!(self.scope.role, Role::Root) {
            self.complete_tasks(way);
            return;
        }
        let data = self.scope.data.clone();
        self.emit(Event::Result(Some(data)));
        self.scope_done();
    }

    fn complete_tasks(&mut self, way: Exit) {
        match self.output_of_tasks() {
            Ok(output) => {
                self.notify_parent(Ok(output.clone()), false);
                self.close(EndStatus::Completed, Some(output));
            }
            Err(error) => {
                let error = self.described(error, "/");
                self.work(Work::Finish {
                    way,
                    from: FinishFrom::Exit,
                });
                self.fail(error);
            }
        }
    }

    /// The workflow's output: `output.as` over the data, checked.
    fn output_of_tasks(&mut self) -> Result<Data, WorkflowError> {
        let def = self.def;
        let template = def
            .workflow
            .tasks
            .as_ref()
            .and_then(|tasks| tasks.output.as_ref());
        let output = match template {
            Some(template) => self.view().template(template, &self.scope.data)?,
            None => self.scope.data.clone(),
        };
        self.check_data(&output, "the output")?;
        if let Some(schema) = &def.output_schema {
            self.validate(schema, &output, Checked::Output)?;
        }
        Ok(output)
    }
}
