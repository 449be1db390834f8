//! Work outside of the scope that an action begins: sub-workflows, and actions that are invoked async.

use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{ActionStep, ListRun, Role};

use crate::scope::ids::child_id;
use crate::scope::{Check, Ctx};

impl Ctx<'_> {
    pub(crate) fn subflow_id(&self, call: u32) -> InstanceId {
        InstanceId::new(child_id(self.header, &self.scope.id, call))
    }

    /// Ends the awaited sub-workflow, because nothing waits for it any more.
    pub(crate) fn abandon_subflow(&mut self) {
        // DSL 1.0 has no other word for it (docs/editions/1.0.md).
        let status = match self.has_tasks() {
            true => EndStatus::Cancelled,
            false => EndStatus::Terminated,
        };
        if let Some(ActionStep::Subflow { call }) = self.scope.list().map(|run| &run.step) {
            let id = self.subflow_id(*call);
            self.command(Command::EndInstance { id, status });
        }
    }

    /// Invokes an action async: a separate scope runs it, and nothing waits for that scope.
    pub(crate) fn detach(&mut self, run: &ListRun, call: u32) -> Check {
        self.check_fork(None)?;
        let role = Role::Detached {
            list: run.list,
            index: run.index.into(),
        };
        let mut scope = swirl_model::scope::Scope::new(
            self.scope.id.child(call, 0),
            role,
            self.scope.data.clone(),
        );
        scope.params = self.scope.params.clone();
        scope.last_error = self.scope.last_error.clone();
        self.command(Command::Detach(Box::new(scope)));
        self.pause = true;
        Ok(())
    }
}
