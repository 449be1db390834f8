//! Timeouts are pushed down from the workflow to states, branches, actions and waits (section "Workflow Timeouts").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ContinuedTimeout, Period, WorkflowTimeout};

use super::ctx::{Ctx, Obj, Timeouts};

const ALL: &[&str] = &[
    "workflowExecTimeout",
    "stateExecTimeout",
    "actionExecTimeout",
    "branchExecTimeout",
    "eventTimeout",
];

impl Ctx<'_> {
    /// The workflow's `timeouts`. The state in `runBefore` is looked up when all states are known.
    pub fn workflow_timeouts(&mut self, node: &Node) {
        self.inline_or_resource(node, "timeouts", |ctx, node| {
            let Some(obj) = ctx.object(node, "'timeouts'", ALL) else {
                return;
            };
            ctx.timeouts = ctx.read_timeouts(obj, Timeouts::default());
            let Some(node) = obj.get("workflowExecTimeout") else {
                return;
            };
            ctx.workflow.timeout = ctx.workflow_exec_timeout(node);
        });
    }

    /// The timeout of the workflow itself. All states are known already.
    fn workflow_exec_timeout(&mut self, node: &Node) -> Option<WorkflowTimeout> {
        let timeout = self.timeout_override(node);
        // The state is looked up even if the rest of the timeout is wrong.
        let place = node.get("runBefore");
        let place = place.filter(|node| node.as_str().is_some_and(|name| !name.is_empty()));
        let run_before = place.and_then(|node| {
            let state = self.state_ref(node, "'runBefore'");
            let location = self.location(node);
            self.run_before = state.map(|state| (state, location));
            state
        });
        let timeout = timeout?;
        Some(WorkflowTimeout {
            duration: timeout.duration,
            interrupt: timeout.interrupt,
            run_before,
        })
    }

    /// A `workflowExecTimeout`. That of `continueAs` refers to states of another workflow.
    pub fn timeout_override(&mut self, node: &Node) -> Option<ContinuedTimeout> {
        let bare = |duration| ContinuedTimeout {
            duration,
            interrupt: false,
            run_before: None,
        };
        if node.as_str().is_some() {
            return Some(bare(self.positive(node, "'workflowExecTimeout'")?));
        }
        if node.members().is_none() {
            self.wrong_type(node, "'workflowExecTimeout'", "a duration or an object");
            return None;
        }
        let known = &["duration", "interrupt", "runBefore"];
        let obj = self.object(node, "'workflowExecTimeout'", known)?;
        let interrupt = self.boolean(obj, "interrupt", false);
        let run_before = self.opt_string(obj, "runBefore");
        if !obj.has("duration") {
            self.missing(obj, "'workflowExecTimeout'", &["duration"]);
        }
        // The message doesn't quote the property, because it may have another name in the document's edition.
        let duration = self.positive(obj.get("duration")?, "the duration of the timeout")?;
        Some(ContinuedTimeout {
            interrupt,
            run_before,
            ..bare(duration)
        })
    }

    /// `timeouts` of a state or branch. The members depend on its kind.
    pub fn timeouts_of(
        &mut self,
        obj: Obj<'_>,
        what: &str,
        allowed: &[&str],
        outer: Timeouts,
    ) -> Timeouts {
        let Some(node) = obj.get("timeouts") else {
            return outer;
        };
        match self.object(node, &format!("'timeouts' of {what}"), allowed) {
            Some(obj) => self.read_timeouts(obj, outer),
            None => outer,
        }
    }

    /// In the schemas of 0.7 and 0.8 it may also be an object, with `total` for the state's time and `single` for its
    /// time without retries. Only actions are retried, so `single` limits nothing.
    fn state_timeout(&mut self, obj: Obj<'_>) -> Option<Period> {
        const NAME: &str = "stateExecTimeout";
        let node = obj.get(NAME)?;
        if node.members().is_none() || self.dialect.parts.state_timeout_is_text {
            return self.timeout(obj, NAME);
        }
        let inner = self.object(node, "'stateExecTimeout'", &["total", "single"])?;
        if let Some(single) = inner.get("single") {
            self.positive(single, "'single'");
            let message =
                "'single' has no effect: actions are retried, not states; 'total' is used";
            let hint = "write 'stateExecTimeout' as a duration, and 'actionExecTimeout' for each attempt \
                        of an action";
            self.warn(
                single,
                codes::IGNORED_PROPERTY,
                message.to_owned(),
                hint.to_owned(),
            );
        }
        match inner.get("total") {
            Some(total) => self.positive(total, "'total'"),
            None => {
                self.missing(inner, "'stateExecTimeout'", &["total"]);
                None
            }
        }
    }

    fn read_timeouts(&mut self, obj: Obj<'_>, outer: Timeouts) -> Timeouts {
        Timeouts {
            state: self.state_timeout(obj).or(outer.state),
            action: self.timeout(obj, "actionExecTimeout").or(outer.action),
            branch: self.timeout(obj, "branchExecTimeout").or(outer.branch),
            event: self.timeout(obj, "eventTimeout").or(outer.event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::parts::testing::workflow;
    use swirl_model::workflow::{Body, StateKind};

    fn seconds(duration: Option<Period>) -> u64 {
        duration
            .and_then(|duration| duration.fixed())
            .map_or(0, |duration| duration.millis / 1000)
    }

    #[test]
    fn the_nearest_timeout_applies() {
        let workflow = workflow(
            "timeouts: {stateExecTimeout: PT1S, actionExecTimeout: PT2S, branchExecTimeout: PT3S, eventTimeout: PT4S, workflowExecTimeout: PT9S}
functions: [{name: f, operation: 'a#f'}]
events: [{name: e, type: e}]
states:
- {name: A, type: operation, actions: [{functionRef: f}], timeouts: {actionExecTimeout: PT20S}, transition: B}
- name: B
  type: parallel
  timeouts: {branchExecTimeout: PT30S}
  branches:
  - {name: x, actions: [{functionRef: f}], timeouts: {actionExecTimeout: PT200S, branchExecTimeout: PT300S}}
  - {name: y, actions: [{functionRef: f}]}
  transition: C
- {name: C, type: sleep, duration: PT1S, transition: D}
- {name: D, type: event, onEvents: [{eventRefs: [e]}], end: true}
",
        );
        assert_eq!(
            workflow
                .timeout
                .as_ref()
                .and_then(|timeout| Some(timeout.duration.fixed()?.millis)),
            Some(9000)
        );
        let states: Vec<u64> = workflow
            .states
            .iter()
            .map(|state| seconds(state.timeout))
            .collect();
        assert_eq!(states, [1, 1, 0, 1]);
        let actions: Vec<u64> = workflow
            .actions
            .iter()
            .map(|action| seconds(action.timeout))
            .collect();
        assert_eq!(actions, [20, 200, 2]);
        let StateKind::Parallel(parallel) = &workflow.states[1].kind else {
            panic!()
        };
        let branches: Vec<u64> = parallel
            .branches
            .iter()
            .map(|branch| seconds(branch.timeout))
            .collect();
        assert_eq!(branches, [300, 30]);
        assert!(
            parallel
                .branches
                .iter()
                .all(|branch| matches!(branch.body, Body::Actions(_)))
        );
        let StateKind::Event(event) = &workflow.states[3].kind else {
            panic!()
        };
        assert_eq!(seconds(event.timeout), 4);
    }
}
