//! Where control goes after a state.

use super::*;

/// Where control goes after a state.
#[derive(Debug, Clone)]
pub enum Next {
    Transition(Transition),
    /// The list of tasks ends, and what is around it goes on.
    Leave,
    /// The list of an extension ends, and the task that would follow it is skipped.
    Skip,
    End(End),
}

#[derive(Debug, Clone)]
pub struct Transition {
    pub to: StateId,
    pub compensate: bool,
    pub produce: Vec<Produce>,
    /// Must hold for the state's output, otherwise the instance faults with `TransitionRefused`.
    pub guard: Option<ExprId>,
}

#[derive(Debug, Clone, Default)]
pub struct End {
    pub terminate: bool,
    pub compensate: bool,
    pub produce: Vec<Produce>,
    pub continue_as: Option<ContinueAs>,
    /// The instance ends as faulted, with an error of this name. In a branch the branch fails with it.
    pub fail: Option<String>,
    /// A `terminate` ends the parents too (docs/language.md#decision-45).
    pub terminate_parents: bool,
}

#[derive(Debug, Clone)]
pub struct ContinueAs {
    pub workflow: String,
    pub version: Option<String>,
    pub data: Option<Template>,
    /// Replaces the continuing workflow's own `workflowExecTimeout`.
    pub timeout: Option<ContinuedTimeout>,
}

/// A [`WorkflowTimeout`] for another workflow, whose states are known by name only.
#[derive(Debug, Clone, PartialEq)]
pub struct ContinuedTimeout {
    pub duration: Period,
    pub interrupt: bool,
    pub run_before: Option<String>,
}

/// A CloudEvent to produce.
#[derive(Debug, Clone)]
pub struct Produce {
    pub event: EventId,
    pub data: Option<Template>,
    pub attributes: Vec<(String, Template)>,
}
