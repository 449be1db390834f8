//! A sub-workflow as an action (0.8, "SubFlowRef Definition"): a separate instance.

use swirl_model::event::{Command, StartInstance};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::ParentLink;
use swirl_model::scope::{ActionStep, ListRun, TimerKind};
use swirl_model::workflow::{Action, Subflow};
use swirl_model::{Data, WorkflowError};

use crate::scope::{Ctx, Next, Rejection, Step};

impl Ctx<'_> {
    pub(crate) fn attempt_subflow(
        &mut self,
        mut run: ListRun,
        action: &Action,
        kind: &Subflow,
        (call, again): (u32, u64),
    ) -> Step {
        run.step = ActionStep::Subflow { call };
        self.list(run);
        let input = self.action_data(action).and_then(|data| match &kind.input {
            Some(template) => self.view().template(template, &data),
            None => Ok(data),
        });
        let input = match input {
            Ok(data) => data,
            Err(error) => return Ok(Next::failed(error)),
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
            scheduled_at: None,
            call,
            again,
            timeout: None,
            depth: self.header.depth + 1,
            hops: self.hops_on(),
            trace: self.header.trace_on(),
            at: self.now(),
        })));
        if kind.detached {
            return Ok(Next::Done(None));
        }
        if let Some(timeout) = &action.timeout
            && let Err(error) = self.arm(TimerKind::Action, timeout)
        {
            return Ok(Next::failed(error));
        }
        Ok(Next::Block)
    }

    pub(crate) fn subflow_done(
        &mut self,
        call: u32,
        result: Result<Data, WorkflowError>,
        terminate: bool,
        generation: u64,
    ) -> Result<Next, Rejection> {
        let waiting = self.scope.list().map(|run| &run.step);
        if waiting != Some(&ActionStep::Subflow { call }) {
            return self.continued(call, result).map(|()| Next::Block);
        }
        if terminate {
            let data = result.unwrap_or_default();
            self.terminate(data, true);
            return Ok(Next::Block);
        }
        if generation > 0
            && let Some(mut run) = self.scope.list().cloned()
        {
            run.child = Some(call);
            self.list(run);
        }
        Ok(match result {
            Ok(output) => Next::Done(Some(output)),
            Err(mut error) => {
                // The error's state belongs to another workflow.
                error.state = None;
                if self.has_tasks()
                    && let Some(problem) = &mut error.problem
                {
                    problem.instance = None;
                }
                // The sub-workflow has ended, so there is nothing to end.
                Next::Failed {
                    error,
                    under_way: false,
                }
            }
        })
    }
}
