//! Actions, and the use of their results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::*;

/// Actions that run in sequence, or at once as branches of one action each.
#[derive(Debug, Clone, Default)]
pub struct ActionList {
    pub actions: Vec<ActionId>,
    pub parallel: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Action {
    pub name: Option<Arc<str>>,
    pub kind: ActionKind,
    /// Its place in the document, as a JSON pointer; empty if unused.
    pub pointer: String,
    pub condition: Option<ExprId>,
    pub sleep_before: Option<Period>,
    pub sleep_after: Option<Period>,
    /// `actionDataFilter.fromStateData`.
    pub from: Option<ExprId>,
    pub results: ResultRule,
    /// Asked before the handlers are.
    pub retry: Option<RetryRule>,
    pub on_errors: Vec<ActionHandler>,
    /// Bounds each attempt: `actionExecTimeout` of the branch, the state or the workflow.
    pub timeout: Option<Period>,
    /// It is repeated, each time on the current data.
    pub repeat: Option<Repeat>,
}

/// The use that is made of an action's result.
#[derive(Debug, Clone, Default)]
pub struct ResultRule {
    /// `useResults: false`.
    pub ignore: bool,
    pub results: Option<ExprId>,
    pub to: Option<PathId>,
    /// The value that `results` selects goes under a key.
    pub under: Option<Under>,
    /// A result that cannot be merged, such as one that isn't an object, replaces the value it would be merged with.
    pub replace: bool,
    /// Applied to the state data once the result is in it: its selection becomes the state data.
    pub output: Option<ExprId>,
    /// The result becomes the state data, whatever it is.
    pub whole: bool,
}

#[derive(Debug, Clone)]
pub enum ActionKind {
    Call(Call),
    Event(EventAction),
    Expression {
        function: FunctionId,
        expression: ExprId,
        arguments: Option<Template>,
        detached: bool,
    },
    Subflow(Subflow),
}

impl ActionKind {
    /// `invoke: async`.
    pub fn is_detached(&self) -> bool {
        match self {
            ActionKind::Call(call) => call.detached,
            ActionKind::Event(event) => event.detached,
            ActionKind::Expression { detached, .. } => *detached,
            ActionKind::Subflow(subflow) => subflow.detached,
        }
    }
}

impl Default for ActionKind {
    fn default() -> ActionKind {
        ActionKind::Event(EventAction::default())
    }
}

#[derive(Debug, Clone)]
pub struct Call {
    pub function: FunctionId,
    /// `None`: the action's data itself (docs/language.md#decision-103).
    pub arguments: Option<Template>,
    pub selection_set: Option<Template>,
    /// `invoke: async`.
    pub detached: bool,
    /// It takes messages until it has enough, and gives the list of them.
    pub subscription: Option<Box<MessageRule>>,
}

/// The messages that a subscription takes (DSL 1.0, "AsyncAPI Subscription"). Expressions are over a message, or over the
/// list of those taken so far.
#[derive(Debug, Clone)]
pub struct MessageRule {
    pub filter: Option<ExprId>,
    /// `for`: the time after which it ends.
    pub span: Option<Period>,
    pub enough: Enough,
    /// The call takes one message. Its task processes it, then says whether it has enough.
    pub is_stepwise: bool,
}

/// When a subscription has enough messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enough {
    Amount(u32),
    /// Before each message.
    Until(ExprId),
    /// After each message, if this doesn't hold.
    While(ExprId),
}

/// Produces an event, or waits for one, or produces one and waits for its answer. The consumed event is the action's
/// result.
#[derive(Debug, Clone, Default)]
pub struct EventAction {
    pub produce: Option<Produce>,
    pub consume: Option<EventId>,
    pub timeout: Option<Period>,
    pub detached: bool,
}

#[derive(Debug, Clone)]
pub struct Subflow {
    pub workflow: String,
    pub version: Option<String>,
    /// Its input; `None`: the action's data itself.
    pub input: Option<Template>,
    pub detached: bool,
    /// `onParentComplete`: of a detached one only.
    pub on_parent_end: OnParentEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnParentEnd {
    Terminate,
    Continue,
}
