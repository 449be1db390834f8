//! The engine's inputs ([`Input`]), its decisions ([`Event`]) and the effects that it requests
//! ([`Command`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attribute::Attributes;
use crate::error::WorkflowError;
use crate::ids::{DefinitionId, InstanceId, ScopeRef};
use crate::instance::{EndStatus, ParentLink};
use crate::scope::{
    BranchResult, Compensation, Cursor, Exit, Fork, Frame, Merge, Position, Purpose, Said, Scope,
    StartEvent, Timer,
};
use crate::time::Timestamp;
use crate::trace::Trace;
use crate::workflow::{EventId, OnParentEnd, StateId, TimeoutOverride};
use crate::{CloudEvent, Data};

pub use crate::subscription::{
    ACTION, EventMatch, Slot, Subscription, is_source_pattern, source_fits,
};

/// An input that reaches a scope from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// Continue from the cursor.
    Wake,
    Timer {
        seq: u32,
    },
    /// A timeout came while its instance was faulted. It doesn't count: the operator's retry covers it, like a call that
    /// failed then.
    TimedOutMeanwhile {
        seq: u32,
    },
    CallDone {
        call: u32,
        result: Result<Data, WorkflowError>,
    },
    /// A call failed while its instance was faulted. The operator's retry, which lets the scope continue, is its
    /// action's next attempt.
    CallFailedMeanwhile {
        call: u32,
        /// Absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<WorkflowError>,
    },
    SubflowDone {
        call: u32,
        result: Result<Data, WorkflowError>,
        terminate: bool,
        /// Greater each time that it ends, since it may be retried; 0 if it cannot continue. Absent in records of
        /// older versions.
        #[serde(default, rename = "turn", skip_serializing_if = "is_zero")]
        generation: u64,
    },
    Event {
        wait: u32,
        slot: u16,
        def: EventId,
        event: CloudEvent,
        /// The scope decides whether it consumes the event ([`EventMatch::offers`]).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        offered: bool,
        /// It came before the wait began, so that only filters with a correlation may take it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        early: bool,
    },
    /// Enough branches of a fork are done, or one failed. It is stored without the results, which are those of the
    /// fork: the store adds them when the scope reads its inbox. Older versions stored them with it.
    Joined {
        fork: u32,
        results: Vec<(u32, BranchResult)>,
        /// How many were done, also where no results are passed on. Absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        done: Option<u32>,
    },
    /// After `workflowExecTimeout`: a branch only waits now, or does so no more (docs/language.md#decision-81).
    Waits {
        fork: u32,
        said: Said,
    },
    /// The fork that this scope belongs to is closed, or the instance must end.
    Cancel {
        status: EndStatus,
    },
    /// Continue at the action or branch that failed.
    Retry,
    /// The state around this branch timed out and is retried: what is open goes on with new timeouts, and an action that
    /// began before this instant is performed again. The scope of that state gets it last, and is retried.
    GoOn {
        since: Timestamp,
    },
    /// Take this as the result of the action that failed.
    Skip {
        result: Data,
    },
    /// Continue at this state.
    Rerun {
        state: String,
    },
    /// Continue with this state data: at this state, or at the action that failed.
    Edit {
        state: Option<String>,
        data: Data,
        /// Of tasks: the new `$context`.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::data::present"
        )]
        context: Option<Data>,
    },
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Input {
    /// Inputs are added at most once for an id.
    pub fn id(&self) -> String {
        match self {
            Input::Wake => "wake".to_owned(),
            Input::Timer { seq } | Input::TimedOutMeanwhile { seq } => format!("timer-{seq}"),
            Input::CallDone { call, .. } | Input::CallFailedMeanwhile { call, .. } => {
                format!("call-{call}")
            }
            Input::SubflowDone {
                call,
                generation: 0,
                ..
            } => format!("call-{call}"),
            Input::SubflowDone {
                call, generation, ..
            } => format!("call-{call}-{generation}"),
            Input::Event {
                wait,
                slot,
                event,
                offered,
                ..
            } => {
                let word = if *offered { "offer" } else { "event" };
                format!("{word}-{wait}-{slot}-{}", event.key())
            }
            Input::Joined { fork, .. } => format!("fork-{fork}"),
            Input::Waits { fork, said } => {
                format!("waits-{fork}-{}-{}", said.index, said.turn)
            }
            Input::Cancel { .. } => "cancel".to_owned(),
            Input::Retry => "retry".to_owned(),
            Input::GoOn { since } => format!("go-on-{}", since.0),
            Input::Skip { .. } => "skip".to_owned(),
            Input::Rerun { .. } => "rerun".to_owned(),
            Input::Edit { .. } => "edit".to_owned(),
        }
    }

    /// The number of the timer that has fired.
    pub fn timer(&self) -> Option<u32> {
        match self {
            Input::Timer { seq } | Input::TimedOutMeanwhile { seq } => Some(*seq),
            _ => None,
        }
    }

    /// An inbox takes it however full it is. There are about as many of these as the scope has branches, and they all
    /// come at once.
    pub fn is_unlimited(&self) -> bool {
        matches!(self, Input::Waits { .. })
    }

    /// An input from an operator or a closed fork: it is processed while the instance is suspended or faulted, and
    /// may be repeated.
    pub fn is_operator(&self) -> bool {
        matches!(
            self,
            Input::Cancel { .. }
                | Input::Retry
                | Input::GoOn { .. }
                | Input::Skip { .. }
                | Input::Rerun { .. }
                | Input::Edit { .. }
        )
    }
}

/// An event that happened: only events change a scope, and they are the instance's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    InstanceStarted {
        /// The instant for which a schedule started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scheduled_at: Option<Timestamp>,
    },
    StateEntered {
        state: StateId,
        name: Arc<str>,
        purpose: Purpose,
    },
    StateLeft {
        state: StateId,
        name: Arc<str>,
        failed: bool,
    },
    /// The condition of a task doesn't hold.
    StateSkipped {
        state: StateId,
        name: Arc<str>,
    },
    /// A `try` begins another attempt of its list.
    TaskRetried {
        state: StateId,
        name: Arc<str>,
    },
    ActionStarted {
        action: String,
        attempt: u32,
        call: u32,
        /// The name of the state that it belongs to. Absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_state: Option<Arc<str>>,
    },
    ActionCompleted {
        action: String,
        attempt: u32,
        /// The name of the state that it belongs to. Absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_state: Option<Arc<str>>,
    },
    ActionFailed {
        action: String,
        attempt: u32,
        error: WorkflowError,
        retry_ms: Option<u64>,
        /// The name of the state that it belongs to. Absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_state: Option<Arc<str>>,
    },
    ActionSkipped {
        action: String,
        /// The name of the state that it belongs to. Absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_state: Option<Arc<str>>,
    },
    EventConsumed {
        name: Arc<str>,
        source: String,
        id: String,
    },
    EventProduced {
        name: Arc<str>,
        id: String,
    },
    Forked {
        fork: u32,
        branches: u32,
        /// The name of the state that it belongs to. Absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_state: Option<Arc<str>>,
    },
    Joined {
        fork: u32,
        /// The name of the state that it belongs to. Absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_state: Option<Arc<str>>,
    },
    TimedOut {
        timer: Timer,
    },
    ErrorHandled {
        error: WorkflowError,
        /// The handler, if it is one of `onErrors`. It isn't stored: only the coverage of scenarios counts it.
        #[serde(skip)]
        handler: Option<Exit>,
    },
    /// Data that its schema refuses, if the definition says to continue (`failOnValidationErrors: false`).
    ValidationFailed {
        /// The data that was checked: `input` or `output`.
        of: Arc<str>,
        message: String,
    },
    /// A search attribute has no value, because the value cannot be kept. Recorded once.
    AttributeLeftOut {
        attribute: Arc<str>,
        message: String,
    },
    Compensating {
        states: Vec<Arc<str>>,
    },
    Compensated,
    BranchFailed {
        error: WorkflowError,
    },
    Retried,
    /// A call is made again: the process that made it before recorded no answer, since it crashed or
    /// was stopped.
    CallRepeated {
        function: Arc<str>,
        call: u32,
    },
    /// An operator requested this.
    Operated {
        action: Arc<str>,
        /// The token's name, or the name that the provider gives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The state at which the instance continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
        /// The versions of the definition that it is moved from and to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// The batch that it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<String>,
        /// The parent that was suspended or resumed, and this sub-workflow with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        with: Option<InstanceId>,
    },
    /// Another instance, which nothing waits for, was not started: by this one or by an event that it produced.
    StartRefused {
        workflow: Arc<str>,
        error: WorkflowError,
    },
    /// No worker could drive it: the instance is suspended, until an operator resumes it.
    GivenUp {
        reason: String,
    },
    Idle,
    Ended {
        status: EndStatus,
        error: Option<WorkflowError>,
    },

    // Below: internal changes of a scope. They aren't kept as history.
    #[serde(skip)]
    Moved(Cursor),
    #[serde(skip)]
    Data(Data),
    /// `$context`.
    #[serde(skip)]
    Context(Option<Data>),
    /// The tasks around the current one.
    #[serde(skip)]
    Frames(Vec<Frame>),
    #[serde(skip)]
    Params(Vec<(Arc<str>, Data)>),
    #[serde(skip)]
    Seq(u32),
    #[serde(skip)]
    Armed(Timer),
    #[serde(skip)]
    Disarmed(u32),
    #[serde(skip)]
    Waiting(Option<Subscription>),
    /// The event that the running action waits for.
    #[serde(skip)]
    Answering(Option<Subscription>),
    #[serde(skip)]
    Merged(Merge),
    #[serde(skip)]
    Result(Option<Data>),
    #[serde(skip)]
    Completed(StateId),
    #[serde(skip)]
    Apart(Vec<u32>),
    #[serde(skip)]
    Compensation(Option<Compensation>),
    #[serde(skip)]
    StartEvents(Vec<StartEvent>),
    #[serde(skip)]
    LastError(Option<WorkflowError>),
    #[serde(skip)]
    Fault(Option<WorkflowError>),
    #[serde(skip)]
    SoftTimeout,
    /// The branch has told the scope around it whether it only waits.
    #[serde(skip)]
    Told(bool),
    /// The end of the instance has been passed on to its schedule.
    #[serde(skip)]
    Rescheduled,
    /// States and actions run since the scope last waited for anything.
    #[serde(skip)]
    Steps(u64),
    /// The scope waited for something.
    Waited,
    /// The timer with this number is due so soon that it isn't a wait.
    Brief(u32),
    /// The values that the instance is found by, and the attributes that are left out.
    #[serde(skip)]
    Indexed {
        values: Attributes,
        left_out: Vec<Arc<str>>,
    },
}

impl Event {
    /// Whether it is part of the history that people read.
    pub fn is_history(&self) -> bool {
        use Event::*;
        !matches!(
            self,
            Moved(_)
                | Data(_)
                | Context(_)
                | Frames(_)
                | Params(_)
                | Seq(_)
                | Armed(_)
                | Disarmed(_)
                | Waiting(_)
                | Answering(_)
                | Merged(_)
                | Result(_)
                | Completed(_)
                | Apart(_)
                | Compensation(_)
                | StartEvents(_)
                | LastError(_)
                | Fault(_)
                | SoftTimeout
                | Told(_)
                | Rescheduled
                | Steps(_)
                | Waited
                | Brief(_)
                | Indexed { .. }
        )
    }
}

/// An effect to carry out once the decision is committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    Arm(Timer),
    Disarm(u32),
    Subscribe(Subscription),
    Unsubscribe(u32),
    /// The scope consumes an event that was offered to it.
    Take {
        wait: u32,
        /// [`CloudEvent::key`]
        key: String,
    },
    Publish(CloudEvent),
    /// Values that events with these attributes must have to be this instance's.
    Correlate(Vec<(Arc<str>, String)>),
    Fork(Fork),
    /// Lets more branches of a fork run. The parent is notified at once if enough are done, or if any
    /// failed.
    ExtendFork {
        fork: u32,
        open: u32,
        needed: u32,
    },
    /// Cancels the branches that are left.
    CloseFork(u32),
    /// Lets a branch continue if it failed; otherwise it stays unchanged. The parent is notified at once if enough
    /// are done, or if any failure remains.
    ReviveBranch {
        fork: u32,
        index: u32,
        input: Box<Input>,
        /// All other branches that failed get the same input.
        #[serde(default)]
        others: bool,
    },
    /// A separate scope that nothing waits for.
    Detach(Box<Scope>),
    /// This branch's result, for the fork that it belongs to.
    Report(BranchResult),
    /// The end of this instance has the schedule of its workflow create the next one.
    Schedule {
        definition: DefinitionId,
        at: Timestamp,
    },
    Start(Box<StartInstance>),
    EndInstance {
        id: InstanceId,
        status: EndStatus,
    },
    /// Suspends or resumes the sub-workflows that this instance waits for, like the instance
    /// itself.
    SuspendAwaited,
    /// The same, for an instance that was suspended (`on`) or resumed because `with` was. If `with` has changed since,
    /// this instance follows it first. A later suspension or resumption of this instance replaces this command.
    FollowSuspended {
        with: InstanceId,
        on: bool,
    },
    /// Notifies the scope that waits for this sub-workflow.
    #[serde(rename = "Tell")]
    Send {
        to: ScopeRef,
        input: Box<Input>,
    },
    /// This instance is over.
    End {
        status: EndStatus,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::data::present"
        )]
        output: Option<Data>,
        error: Option<WorkflowError>,
    },
    /// From now on the instance is found by the attributes in its root's record.
    Index,
    /// This instance, faulted before, is running again.
    Reopen,
    /// The scope has more to do, but others get a turn first.
    Yield,
    /// The scope has ended, and its record is deleted.
    Drop,
}

impl Command {
    /// The effect of suspending or resuming an instance, by itself or because of another one.
    pub fn suspended(on: bool, with: Option<&InstanceId>) -> Command {
        match with {
            Some(with) => Command::FollowSuspended {
                with: with.clone(),
                on,
            },
            None => Command::SuspendAwaited,
        }
    }
}

/// A sub-workflow or a continuation to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartInstance {
    pub id: InstanceId,
    pub workflow: String,
    pub version: Option<String>,
    pub input: Data,
    pub parent: Option<ParentLink>,
    pub on_parent_end: Option<OnParentEnd>,
    pub continued_from: Option<InstanceId>,
    /// As of the instance that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// The number with which the root scope of `continued_from` is notified of the start's outcome.
    #[serde(default)]
    pub call: u32,
    /// Not 0: it was started before and has ended. It continues where it failed, or its outcome is delivered again.
    /// Greater each time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u64,
    pub timeout: Option<TimeoutOverride>,
    pub depth: u16,
    /// How many instances led to this one without one of them waiting for anything.
    #[serde(default)]
    pub hops: u32,
    #[serde(default, skip_serializing_if = "Trace::is_empty")]
    pub trace: Trace,
    pub at: Timestamp,
}

/// A line of an instance's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub at: Timestamp,
    pub scope: crate::ids::ScopeId,
    #[serde(flatten)]
    pub event: Event,
    /// Arguments, a result, an event, as far as they are recorded: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// When `data` is removed, unless it is kept as long as the entry. It stays when the data is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_until: Option<Timestamp>,
}

/// Used by `apply`.
pub type At = Position;
