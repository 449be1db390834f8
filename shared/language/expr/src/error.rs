//! Errors of expressions.

use std::ops::Range;

use crate::meter::Abort;

/// The expression is not valid, or uses something that doesn't exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    /// One sentence, with a hint if there is one.
    pub message: String,
    /// The part of the source that it is about, as bytes, if known.
    pub span: Option<Range<usize>>,
}

impl CompileError {
    pub(crate) fn new(message: impl Into<String>) -> CompileError {
        CompileError {
            message: message.into(),
            span: None,
        }
    }

    /// An error about `part`, if that is a part of `source`.
    pub(crate) fn at(message: impl Into<String>, source: &str, part: &str) -> CompileError {
        let start = (part.as_ptr() as usize).checked_sub(source.as_ptr() as usize);
        let span = start.map(|start| start..start + part.len());
        let span = span.filter(|span| span.end <= source.len());
        CompileError {
            message: message.into(),
            span,
        }
    }
}

/// The reason why an evaluation has no value. Retrying with the same data never helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// jq's `error`, or a function applied to a wrong type of value.
    #[error("{0}")]
    Message(String),
    #[error("the expression has more than one output; collect them with [...] or take first(...)")]
    ManyOutputs,
    #[error("the expression took more steps than allowed")]
    StepLimit,
    #[error("the expression ran longer than allowed")]
    TimeLimit,
    #[error("the expression used more memory than allowed")]
    MemoryLimit,
    #[error("the expression recursed more deeply than allowed")]
    StackLimit,
    #[error("the expression produced a value that is nested too deeply")]
    DepthLimit,
    #[error("the result is larger than allowed")]
    OutputLimit,
    /// A value that JSON doesn't have.
    #[error("the result holds {0}, which is not JSON")]
    NotJson(swirl_model::data::NotJson),
    /// An internal bug: the evaluator panicked. The process continues.
    #[error("the expression could not be evaluated because of an internal error")]
    Internal,
}

impl From<Abort> for EvalError {
    fn from(abort: Abort) -> EvalError {
        match abort {
            Abort::Steps => EvalError::StepLimit,
            Abort::Time => EvalError::TimeLimit,
            Abort::Memory => EvalError::MemoryLimit,
            Abort::Stack => EvalError::StackLimit,
            Abort::Depth => EvalError::DepthLimit,
            Abort::Output => EvalError::OutputLimit,
            Abort::Panic => EvalError::Internal,
        }
    }
}

/// A location that cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path leads through a value without such members (the language's error `MergeTypeMismatch`).
    #[error("{at} is {kind}, which has no {step}")]
    Mismatch {
        at: String,
        kind: &'static str,
        step: String,
    },
    #[error("{at} has no element {index}")]
    OutOfBounds { at: String, index: i64 },
    /// An expression used as an index returned neither a string nor a whole number.
    #[error("an index of the path is {0}; it must be a string or a whole number")]
    Index(&'static str),
    /// An expression used as an index could not be evaluated.
    #[error(transparent)]
    Eval(#[from] EvalError),
}
