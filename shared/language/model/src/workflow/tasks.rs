//! Workflows of tasks, the form that the language has from DSL 1.0 on.
//!
//! A task is a state with a [`Task`]: its output replaces the data, where other states merge into it. A list of tasks is
//! a flow. A task with lists inside (`Do`, `For`, `Function`, `Try`) runs them in the same scope, as frames; only
//! `Parallel` makes scopes.

use std::sync::Arc;

use super::*;

/// The parts of a workflow that only one of tasks has.
#[derive(Debug, Clone, Default)]
pub struct TaskWorkflow {
    pub namespace: String,
    pub name: String,
    pub title: Option<String>,
    /// Over the raw input: the input of the first task.
    pub from: Option<Template>,
    /// Over the output of the last task: the output of the workflow.
    pub output: Option<Template>,
    /// The events that start instances.
    pub starts: Option<StartOn>,
    /// The document, for `$workflow.definition`.
    pub document: Data,
    pub extensions: Vec<Extension>,
}

/// The parts of a state that only a task has. Schemas, timeout and flow are in the state itself.
#[derive(Debug, Clone, Default)]
pub struct Task {
    /// Over the raw input. If it doesn't hold, the task is skipped, and its raw input goes on.
    pub condition: Option<ExprId>,
    /// `input.from`, over the raw input.
    pub from: Option<Template>,
    /// `output.as`, over the raw output.
    pub output: Option<Template>,
    /// `export.as`, over the transformed output: the new context.
    pub export: Option<Template>,
    pub context_schema: Option<Schema>,
    /// The task as written, for `$task.definition`.
    pub definition: Data,
    /// Its place in the document, where `State.pointer` isn't that: inside a function the pointer is that of the call.
    pub reference: Option<String>,
    /// The extensions that may apply, by their places in [`TaskWorkflow::extensions`].
    pub extensions: Vec<u16>,
    /// It belongs to a function or to an extension, and isn't a task that people look for.
    pub is_inner: bool,
}

/// Tasks before and after other tasks.
#[derive(Debug, Clone)]
pub struct Extension {
    pub name: Arc<str>,
    /// Over the input of the extended task.
    pub when: Option<ExprId>,
    /// They get the input of the extended task.
    pub before: Option<FlowId>,
    /// They get the raw output of the extended task.
    pub after: Option<FlowId>,
}

/// A call of a function that is defined as a task. Each call has its own copy of the function's tasks.
#[derive(Debug, Clone)]
pub struct TaskFunction {
    /// As the call names it.
    pub name: Arc<str>,
    /// `None`: the input of the task that calls it.
    pub input: Option<Template>,
    /// A list of one task.
    pub body: FlowId,
}

/// Tasks for each item of a list, one item after another. Each iteration begins with the output of the last.
#[derive(Debug, Clone)]
pub struct For {
    pub items: Template,
    /// The names of the variables for the item and its index.
    pub item: Arc<str>,
    pub index: Arc<str>,
    /// `while`, over the data before each iteration.
    pub test: Option<ExprId>,
    pub body: FlowId,
}

/// Tasks whose errors may be caught.
#[derive(Debug, Clone)]
pub struct Try {
    pub body: FlowId,
    pub filter: CaughtError,
    /// The name of the variable for the error.
    pub variable: Arc<str>,
    /// Over the error.
    pub when: Option<ExprId>,
    pub except_when: Option<ExprId>,
    pub retry: Option<TaskRetry>,
    /// The tasks that handle the error.
    pub handler: Option<FlowId>,
    /// The way after the error has been handled; `None`: the task's own.
    pub then: Option<Next>,
}

/// The properties that a caught error must have: all that are given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaughtError {
    pub kind: Option<String>,
    pub status: Option<u16>,
    pub title: Option<String>,
    pub detail: Option<String>,
    pub instance: Option<String>,
}

/// Repeats the whole list of a `Try`.
#[derive(Debug, Clone, Default)]
pub struct TaskRetry {
    /// Over the error.
    pub when: Option<ExprId>,
    pub except_when: Option<ExprId>,
    pub delay: Option<Period>,
    pub backoff: Backoff,
    /// Added to each delay: evenly distributed between the two.
    pub jitter: Option<(Period, Period)>,
    /// How many retries may follow the first attempt.
    pub retries_max: Option<u32>,
    /// No retry begins later than this after the beginning of the first attempt.
    pub within: Option<Period>,
    /// Bounds each attempt.
    pub attempt: Option<Period>,
}

/// The factor of the delay before the n-th retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backoff {
    #[default]
    Constant,
    /// n
    Linear,
    /// 2 to the power of n - 1
    Exponential,
}

/// An error to raise, as RFC 7807 describes errors.
#[derive(Debug, Clone)]
pub struct Raise {
    pub kind: Template,
    pub status: Template,
    pub title: Option<Template>,
    pub detail: Option<Template>,
    /// `None`: the task's own place.
    pub instance: Option<Template>,
}

/// An event to publish. The output is the event.
#[derive(Debug, Clone, Default)]
pub struct Emit {
    /// Attributes, among them `type`; `id`, `source` and `time` have values of their own where they aren't given.
    pub attributes: Vec<(String, Template)>,
    pub data: Option<Template>,
}

/// The variables that expressions see.
pub const TASK_VARIABLES: [&str; 8] = [
    "context",
    "input",
    "output",
    "secrets",
    "authorization",
    "task",
    "workflow",
    "runtime",
];
