//! A scope's record: everything needed to continue one path of an instance.

mod event_run;
mod fork;
mod frame;
mod recent;
mod timer;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attribute::Attributes;
use crate::error::WorkflowError;
use crate::ids::ScopeId;
use crate::subscription::Subscription;
use crate::time::Timestamp;
use crate::workflow::{
    ActionId, Body, ExprId, FlowId, ListId, PathId, StateId, StateKind, Workflow,
};
use crate::{CloudEvent, Data};

pub use event_run::*;
pub use fork::*;
pub use frame::*;
pub use recent::*;
pub use timer::*;

/// One path of execution. The engine's `apply` is the only thing that changes one, except for [`Scope::recent`], which
/// the driver keeps for people.
///
/// The members that may be large come last, and a required one comes after the optional ones that a listing needs: a
/// store reads only the beginning of a record for a listing, and must not take for absent what is cut off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    pub id: ScopeId,
    pub role: Role,
    /// Counts commits; a writer must have read the last one.
    pub rev: u64,
    /// The source of the ids of calls, waits, timers, forks and produced events.
    pub seq: u32,
    /// The error that stopped this scope, while it may be retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<WorkflowError>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Timer>,
    /// The events that this scope waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Subscription>,
    /// The event that an action waits for, while its state may continue to wait for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Subscription>,
    pub cursor: Cursor,
    /// State data; in a scope of actions only, its own copy.
    pub data: Data,
    /// Visible iteration parameters, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<(Arc<str>, Data)>,
    /// The tasks around the current one, the innermost last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    /// `$context`; `None`: an empty object.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::data::present"
    )]
    pub context: Option<Data>,
    /// Of a branch inside an extension: the extended task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended: Option<Box<Extended>>,
    /// Events that created the instance and aren't consumed yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start_events: Vec<StartEvent>,
    /// The merges that the actions of a branch produced, for the state that forked to apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merges: Vec<Merge>,
    /// The value that an iteration yields.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::data::present"
    )]
    pub result: Option<Data>,
    /// Executions of states with `compensatedBy`, in the order in which they were completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completed: Vec<StateId>,
    /// Forks of branches that no state waits for. They end with the scope around them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensation: Option<Compensation>,
    /// The last error that was handled: `$WORKFLOW.error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<WorkflowError>,
    /// `workflowExecTimeout` has passed and the running state is being finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Of a branch after `workflowExecTimeout`: the scope around it knows that it only waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// Of the root: the end of the instance has had its schedule create the next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rescheduled: bool,
    /// States and actions run since the scope last waited for anything, in turns before this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps: u64,
    /// It has waited for something at least once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waited: bool,
    /// The timer, by its number, that is due so soon that it isn't a wait; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub brief: u32,
    /// Of the root: the values of its instance's search attributes.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
    /// Of the root: the search attributes whose values cannot be kept. The history says so already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Arc<str>>,
    /// The last answered calls, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<RecentCall>,
}

fn is_zero(steps: &u64) -> bool {
    *steps == 0
}

fn is_none(seq: &u32) -> bool {
    *seq == 0
}

/// The role of a scope in its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    Root,
    Branch {
        state: StateId,
        index: u32,
    },
    Iteration {
        state: StateId,
        index: u32,
    },
    /// The actions of one entry of an event state, in parallel with those of the others.
    Entry {
        state: StateId,
        entry: u16,
    },
    /// A branch that its state doesn't wait for.
    Apart {
        state: StateId,
        index: u32,
    },
    /// One of several parallel actions.
    Action {
        list: ListId,
        index: u32,
    },
    /// An action invoked async: nothing waits for it.
    Detached {
        list: ListId,
        index: u32,
    },
}

impl Role {
    /// A name for a branch: that of a branch of a parallel state, the state's and the index for an iteration. `None`
    /// for the main flow, and for a part that doesn't exist.
    pub fn name(self, workflow: &Workflow) -> Option<String> {
        let state = |id: StateId| workflow.states.get(id.0 as usize);
        match self {
            Role::Root => None,
            Role::Branch { state: id, index } => match &state(id)?.kind {
                StateKind::Parallel(parallel) => parallel
                    .awaited(index)
                    .map(|branch| branch.name.to_string()),
                _ => None,
            },
            Role::Iteration { state: id, index } => Some(format!("{}[{index}]", state(id)?.name)),
            Role::Entry { state: id, entry } => Some(format!("{} #{entry}", state(id)?.name)),
            Role::Apart { state: id, index } => match &state(id)?.kind {
                StateKind::Parallel(parallel) => {
                    let mut apart = parallel.branches.iter().filter(|branch| !branch.awaited);
                    apart
                        .nth(index as usize)
                        .map(|branch| branch.name.to_string())
                }
                _ => None,
            },
            Role::Action { list, index } | Role::Detached { list, index } => {
                let list = workflow.lists.get(list.0 as usize)?;
                let action = list.actions.get(index as usize)?;
                let action = workflow.actions.get(action.0 as usize)?;
                Some(
                    workflow
                        .action_name(action)
                        .unwrap_or_else(|| format!("#{index}")),
                )
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Cursor {
    /// Nothing is done yet.
    Fresh,
    At(Position),
    /// No active path, but kept active (`keepActive`).
    Idle,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Absent in a scope of actions only.
    pub state: Option<StateId>,
    pub purpose: Purpose,
    /// The input filter has been applied and the schema checked, or there is neither.
    pub entered: bool,
    pub work: Work,
    /// Of an event state: the events that have arrived and the entries that have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Box<EventRun>>,
    /// The retries of the state as a whole so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Retried>,
    /// Of a task that has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskRun>>,
}

impl Position {
    /// At the beginning of a state.
    pub fn at(state: StateId, purpose: Purpose, entered: bool) -> Position {
        Position {
            state: Some(state),
            purpose,
            entered,
            work: Work::Begin,
            events: None,
            attempts: Vec::new(),
            task: None,
        }
    }
}

/// The number of retries, their rule, and the wait before the last one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retried {
    pub by: RetriedBy,
    pub retries: u32,
    pub waited_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetriedBy {
    /// One of the running action's handlers.
    ActionHandler(u16),
    /// One of the state's handlers.
    StateHandler(u16),
    /// One of the state's rules.
    StateRule(u16),
}

/// The reason why a state runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    Main,
    Compensation,
    /// `runBefore` of an elapsed workflow timeout.
    RunBefore,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// The state's own work is next.
    Begin,
    List(ListRun),
    Fork(ForkRun),
    Sleep,
    /// Waits for the events in [`Scope::wait`].
    Events,
    /// Waits to retry the state as a whole.
    Retry,
    /// Its work is done, and a later step failed: a retry continues there.
    Finish {
        way: Exit,
        from: FinishFrom,
    },
    /// Its work is done: waits for the instance that continues in place of this one (`continueAs`).
    Continue {
        call: u32,
        way: Exit,
        input: Data,
    },
}

/// The progress of a state after its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FinishFrom {
    /// The output filter is next.
    Output,
    /// The state has been left; its way is taken next.
    Exit,
    /// Everything that the way compensates is compensated.
    Onward,
}

/// A list of actions under way, one after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListRun {
    pub list: ListId,
    pub index: u16,
    /// Exclusive.
    pub end: u16,
    /// The running attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The delay before this attempt, as it was waited.
    pub waited_ms: u64,
    /// The call whose key the attempts carry until the service has given a definite answer
    /// (docs/language.md#decision-95).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<u32>,
    pub step: ActionStep,
    /// The call of the sub-workflow that the action failed with: an operator's retry continues it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<u32>,
    /// The first attempt that asked for an answer with an event: the events of all attempts name it, so that none of
    /// them is taken for the answer (docs/language.md#decision-107).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u32>,
    /// How often the action has been done before, if it repeats.
    #[serde(default, skip_serializing_if = "is_first")]
    pub times: u32,
    /// An event has come that ends the repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The retries of this action by handlers, its own and those of its state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retried: Vec<Retried>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ActionStep {
    Ready,
    SleepBefore,
    /// The attempt is made now.
    Attempt,
    /// A function call is under way; `at` is the clock that its arguments see.
    Call {
        call: u32,
        at: Timestamp,
    },
    /// The event has been produced; its answer is awaited in [`Scope::wait`].
    Event {
        call: u32,
    },
    Subflow {
        call: u32,
    },
    RetryDelay,
    /// Its condition or sleep could not be evaluated, and is evaluated again after a delay.
    ReadyDelay,
    /// It is done and its result is taken; the next step is not known yet. A retry continues there.
    Done,
    SleepAfter,
}

/// Branches under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForkRun {
    pub fork: u32,
    pub total: u32,
    /// This many have been allowed to begin.
    pub open: u32,
    /// How many must be done before the fork is considered again.
    pub needed: u32,
    /// Set for a list of actions that run in parallel.
    pub list: Option<ListId>,
    /// The branch whose error faulted the instance: a retry continues there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// What branches said last. Some of them may be done since.
    #[serde(default, skip_serializing_if = "Heard::is_empty")]
    pub said: Heard,
    /// All branches that aren't done only wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

/// A result that will be merged into the state data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Merge {
    pub to: Option<PathId>,
    pub value: Data,
    /// It replaces the existing value, unless both are objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// A filter of the state data once the value is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ExprId>,
}

impl Merge {
    pub fn new(to: Option<PathId>, value: Data) -> Merge {
        Merge {
            to,
            value,
            replace: false,
            output: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compensation {
    /// Still to be compensated, the next one last.
    pub left: Vec<StateId>,
    /// The way that is taken afterwards.
    pub then: Exit,
    /// The state that the way leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<StateId>,
    /// The purpose of taking the way.
    #[serde(default = "main_flow")]
    pub purpose: Purpose,
}

fn main_flow() -> Purpose {
    Purpose::Main
}

/// Identifies a `transition` or `end` of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    State(StateId),
    Handler(StateId, u16),
    Condition(StateId, u16),
    EventCondition(StateId, u16),
    Default(StateId),
    Entry(StateId, u16),
    /// Of an action's handler.
    Action(ActionId, u16),
}

impl Scope {
    pub fn new(id: ScopeId, role: Role, data: Data) -> Scope {
        Scope {
            id,
            role,
            rev: 0,
            seq: 0,
            data,
            params: Vec::new(),
            cursor: Cursor::Fresh,
            frames: Vec::new(),
            context: None,
            extended: None,
            timers: Vec::new(),
            wait: None,
            answer: None,
            start_events: Vec::new(),
            merges: Vec::new(),
            result: None,
            completed: Vec::new(),
            apart: Vec::new(),
            compensation: None,
            last_error: None,
            fault: None,
            timed_out: false,
            told: false,
            rescheduled: false,
            steps: 0,
            waited: false,
            brief: 0,
            attributes: Attributes::new(),
            left_out: Vec::new(),
            recent: Vec::new(),
        }
    }

    pub fn position(&self) -> Option<&Position> {
        match &self.cursor {
            Cursor::At(position) => Some(position),
            _ => None,
        }
    }

    pub fn state(&self) -> Option<StateId> {
        self.position()?.state
    }

    pub fn list(&self) -> Option<&ListRun> {
        match &self.position()?.work {
            Work::List(run) => Some(run),
            _ => None,
        }
    }

    /// The function call that is under way, if any.
    pub fn pending_call(&self) -> Option<u32> {
        match self.list()?.step {
            ActionStep::Call { call, .. } if self.fault.is_none() => Some(call),
            _ => None,
        }
    }

    pub fn ended(&self) -> bool {
        matches!(self.cursor, Cursor::Ended)
    }

    /// Whether it continues without an input.
    pub fn goes_on(&self) -> bool {
        if self.fault.is_some() {
            return false;
        }
        match &self.cursor {
            Cursor::Fresh => true,
            Cursor::Idle | Cursor::Ended => false,
            Cursor::At(position) => match &position.work {
                Work::Begin => true,
                Work::List(run) => matches!(
                    run.step,
                    ActionStep::Ready | ActionStep::Attempt | ActionStep::Call { .. }
                ),
                Work::Fork(_)
                | Work::Sleep
                | Work::Events
                | Work::Retry
                | Work::Finish { .. }
                | Work::Continue { .. } => false,
            },
        }
    }
}

impl Role {
    /// The fork's index of this scope, if it is one of a fork's.
    pub fn index(&self) -> Option<u32> {
        match self {
            Role::Branch { index, .. }
            | Role::Iteration { index, .. }
            | Role::Action { index, .. } => Some(*index),
            // Each has its own fork.
            Role::Entry { .. } | Role::Apart { .. } => Some(0),
            Role::Root | Role::Detached { .. } => None,
        }
    }
}

/// The work of a fork's branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    Body(Body),
    One(ListId, u32),
}

impl From<FlowId> for Body {
    fn from(flow: FlowId) -> Body {
        Body::Flow(flow)
    }
}

fn is_first(times: &u32) -> bool {
    *times == 0
}

impl ListRun {
    pub fn new(list: ListId, index: u16, end: u16) -> ListRun {
        ListRun {
            list,
            index,
            end,
            attempt: 0,
            waited_ms: 0,
            key: None,
            step: ActionStep::Ready,
            child: None,
            asked: None,
            times: 0,
            stopped: false,
            retried: Vec::new(),
        }
    }
}
