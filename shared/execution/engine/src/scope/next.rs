//! What follows a part of a step.

use swirl_model::scope::{Exit, ForkOrigin, Purpose};
use swirl_model::workflow::{FlowId, ListId, Period, StateId};
use swirl_model::{Data, WorkflowError};

/// The parts of a step return it instead of calling what follows, and one place carries it out: `follow` in
/// `step/run.rs`. So no part needs to know the others.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing: the scope's record says how it continues, by itself or after an input.
    Block,
    /// Begins a list of actions.
    List(ListId),
    /// All actions of the list are done.
    Listed,
    /// The attempt of the action succeeded. Actions that are invoked async have no result.
    Done(Option<Data>),
    /// The attempt of the action failed. If it is `under_way`, it may still be running and must be ended.
    Failed {
        error: WorkflowError,
        under_way: bool,
    },
    /// Begins branches, and waits for them.
    Fork(Branches),
    /// The work of the state is done: the state ends by this way.
    Finish(Exit),
    /// Takes a way whose compensation is done.
    Onward(Exit, Purpose),
    /// Begins a list of tasks in the current task.
    Tasks(FlowId),
    /// A list of tasks has ended, after the task that this way leaves.
    Left(Exit),
    /// A list of an extension has ended, and the task that it extends is skipped.
    Skipped,
    /// Enters a state.
    Enter(StateId, Purpose),
    /// An error for the handlers of the state. In contrast to an error of the part itself, the scope's record already
    /// says where a retry continues.
    Raise(WorkflowError),
}

impl Next {
    /// The attempt of the action failed, and may still be running.
    pub fn failed(error: WorkflowError) -> Next {
        Next::Failed {
            error,
            under_way: true,
        }
    }
}

/// What follows, or an error of the part itself, which is raised.
pub(crate) type Step = Result<Next, WorkflowError>;

/// The branches of a fork.
#[derive(Debug)]
pub(crate) struct Branches {
    pub origin: ForkOrigin,
    /// The elements that they iterate over.
    pub items: Option<Data>,
    pub total: u32,
    /// This many begin at once.
    pub open: u32,
    /// How many must be done before the fork is considered again.
    pub needed: u32,
    /// The pause before the next branch begins.
    pub pause: Option<Period>,
}
