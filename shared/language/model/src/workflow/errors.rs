//! Reactions to errors: handlers and retries.

use std::sync::Arc;

use super::*;

/// When a state is repeated as a whole. It continues with the data as it is then; an event state takes the same events
/// again.
#[derive(Debug, Clone)]
pub struct StateRetryRule {
    pub errors: ErrorSet,
    /// The state's successful work is also checked: `When` is evaluated over the state data, `Text` is compared with
    /// it. A state that still matches when its retries are used up continues normally.
    pub results: bool,
    pub policy: Retry,
}

/// A value goes under its own key, before it is merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Under {
    pub key: Arc<str>,
    pub when: UnderWhen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderWhen {
    /// Always. If the filter selects nothing in a value that isn't an object, the value itself goes there.
    Always,
    /// If it isn't an object and doesn't have its own place (`to`).
    NotObject,
}

/// `onErrors` of a state: the first that fits an error takes it.
#[derive(Debug, Clone, Default)]
pub struct Handler {
    pub errors: ErrorSet,
    /// Retries the failed part before the handler's own way is taken.
    pub retry: Option<HandlerRetry>,
    /// Where the error goes in the state data; `None`: nowhere.
    pub data: Option<ErrorFilter>,
    pub then: Then,
}

/// `onErrors` of an action: the first that fits takes the error. An error that none of them takes, or that is thrown
/// again, goes to the state's handlers.
#[derive(Debug, Clone, Default)]
pub struct ActionHandler {
    pub errors: ErrorSet,
    /// The result of a successful attempt is also checked, before it is merged: `When` is evaluated over it,
    /// `Text` is compared with it as text. A matching result is merged and then handled like an error.
    pub results: bool,
    /// Repeats the action; attempts are counted again after a success.
    pub retry: Option<Retry>,
    pub data: Option<ErrorFilter>,
    pub then: Then,
}

#[derive(Debug, Clone)]
pub struct HandlerRetry {
    pub policy: Retry,
    /// Only the source of the error is repeated: an action, wherever in the state it is, or the state itself. The
    /// attempts of an action are counted again after its success. Otherwise the whole state is repeated.
    pub source: bool,
}

/// How the flow continues after a handled error.
#[derive(Debug, Clone, Default)]
pub enum Then {
    Next(Next),
    /// As if there had been no error: after an action's handler comes the next action, after a
    /// state's handler the state's own transition or end.
    #[default]
    Continue,
    /// The error is passed outward: from an action to its state, from a state to the end of the branch or instance.
    Rethrow,
    /// Another error goes there instead.
    Throw(Throw),
}

/// An error to raise. Members that aren't given come from the type of the error, or are left out.
#[derive(Debug, Clone, Default)]
pub struct Throw {
    pub name: Option<String>,
    pub kind: Option<Template>,
    pub status: Option<Template>,
    pub title: Option<Template>,
    pub detail: Option<Template>,
}

/// The part of an error that goes into the state data, and its place there. A value that isn't an object and has no
/// `to` is merged as any value is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorFilter {
    /// Over the error; `None` takes all of it.
    pub data: Option<ExprId>,
    pub to: Option<PathId>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum ErrorSet {
    /// `*`: all that no other handler of the state names, wherever it is in the list.
    #[default]
    Any,
    These(Vec<ErrorId>),
    /// All but these; of none, all errors.
    Except(Vec<ErrorId>),
    /// Those of the first list that aren't of the second.
    TheseExcept(Vec<ErrorId>, Vec<ErrorId>),
    /// An expression over the error and the state data with the error as `error`.
    When(ExprId),
    /// Errors whose name, code or status is this text.
    Text(String),
}

/// `errors`: matched by `code` (equal to the code or the status), without one by `name`; one with a `problem`
/// by that alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorDef {
    pub name: String,
    pub code: Option<String>,
    pub problem: Option<Problem>,
}

/// The properties that an error must have, as RFC 7807 describes errors: all that are given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problem {
    /// `type`, a URI.
    pub kind: Option<String>,
    pub status: Option<u16>,
    /// The JSON pointer of the action or state that it comes from, or of its container.
    pub instance: Option<String>,
}

/// For which errors an action is retried, and how.
#[derive(Debug, Clone)]
pub struct RetryRule {
    pub policy: Retry,
    pub errors: RetryErrors,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RetryErrors {
    All,
    Only(Vec<ErrorId>),
    Except(Vec<ErrorId>),
    /// As in [`ErrorSet::When`].
    When(ExprId),
}

/// A retry policy (docs/language.md#decision-20 and #decision-21).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Retry {
    pub delay: Option<Period>,
    pub increment: Option<Period>,
    pub multiplier: Option<f64>,
    pub max_delay: Option<Period>,
    pub jitter: Jitter,
    /// How many retries may follow the first attempt; `None` is unlimited.
    pub retries_max: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Jitter {
    #[default]
    None,
    /// Of the delay, 0.0 to 1.0, added or subtracted.
    Fraction(f64),
    Absolute(Period),
}
