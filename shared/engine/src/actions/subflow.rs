//! A sub-workflow as an action (0.8, "SubFlowRef Definition"): a separate instance.

use swirl_model::event::{Command, StartInstance};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, ParentLink};
use swirl_model::scope::{ActionStep, ListRun, TimerKind};
use swirl_model::workflow::{Action, Subflow};
use swirl_model::{Data, WorkflowError};

use crate::ctx::{Ctx, Step};
use crate::ids::child_id;
use crate::step::Rejection;

impl Ctx<'_> {
    pub(super) fn attempt_subflow(
        &mut self,
        mut run: ListRun,
        action: &Action,
        kind: &Subflow,
        (call, again): (u32, u64),
    ) -> Step {
        run.step = ActionStep::Subflow { call };
        self.list(run);
        let input = match self.action_data(action) {
            Ok(data) => data,
            Err(error) => return self.action_failed(error),
        };
        let parent = ParentLink {
            scope: ScopeRef {
                instance: self.header.id.clone(),
                scope: self.scope.id.clone(),
            },
            call,
            detached: kind.detached,
        };
        self.command(Command::Start(Box::new(StartInstance {
            id: self.subflow_id(call),
            workflow: kind.workflow.clone(),
            version: kind.version.clone(),
            input,
            parent: Some(parent),
            on_parent_end: kind.detached.then_some(kind.on_parent_end),
            continued_from: None,
            call,
            again,
            timeout: None,
            depth: self.header.depth + 1,
            hops: self.hops_on(),
            trace: self.header.trace_on(),
            at: self.now(),
        })));
        if kind.detached {
            return self.action_done(None);
        }
        if let Some(timeout) = &action.timeout {
            self.arm(TimerKind::Action, timeout)?;
        }
        Ok(())
    }

    pub(crate) fn subflow_id(&self, call: u32) -> InstanceId {
        InstanceId::new(child_id(self.header, &self.scope.id, call))
    }

    pub(crate) fn subflow_done(
        &mut self,
        call: u32,
        result: Result<Data, WorkflowError>,
        terminate: bool,
        generation: u64,
    ) -> Result<(), Rejection> {
        let waiting = self.scope.list().map(|run| &run.step);
        if waiting != Some(&ActionStep::Subflow { call }) {
            return self.continued(call, result);
        }
        if terminate {
            let data = result.unwrap_or_default();
            self.terminate(data, true);
            return Ok(());
        }
        if generation > 0
            && let Some(mut run) = self.scope.list().cloned()
        {
            run.child = Some(call);
            self.list(run);
        }
        let step = match result {
            Ok(output) => self.action_done(Some(output)),
            Err(mut error) => {
                // The error's state belongs to another workflow.
                error.state = None;
                // The sub-workflow has ended, so there is nothing to end.
                self.action_failed_with(error, false)
            }
        };
        self.raise_failure(step);
        Ok(())
    }

    /// Ends the awaited sub-workflow, because nothing waits for it any more.
    pub(crate) fn abandon_subflow(&mut self, status: EndStatus) {
        if let Some(ActionStep::Subflow { call }) = self.scope.list().map(|run| &run.step) {
            let id = self.subflow_id(*call);
            self.command(Command::EndInstance { id, status });
        }
    }
}
