//! Scenario files: a workflow, its simulated environment, and the expected outcome.
//!
//! [`mod@file`] reads a file, a [`Runner`] runs it, [`expect`] compares the outcome, and [`report`] and [`junit`]
//! report it. This crate doesn't know how a workflow runs.

pub mod answer;
mod described;
pub mod differ;
pub mod discover;
pub mod expect;
pub mod file;
pub mod histories;
pub mod junit;
#[cfg(test)]
mod kit;
pub mod migrate;
pub mod mock;
pub mod observed;
mod order;
mod parse;
pub mod places;
mod rehearsed;
pub mod report;
pub mod requests;
mod resources;
mod rows;
pub mod run;
pub mod suite;

pub use answer::Answered;
pub use expect::{Difference, Expect};
pub use file::{FileError, Scenario};
pub use mock::is_sysout;
pub use observed::{Observed, ObservedCall, ObservedInstance};
pub use rehearsed::rehearse;
pub use requests::makes_requests;
pub use rows::millis;

/// Runs scenarios, in virtual time or against a cluster.
pub trait Runner: Sync {
    /// Runs the scenario until nothing more can happen or `until` is reached.
    ///
    /// # Errors
    /// [`RunError`] if the run has no result.
    fn run(&self, scenario: &Scenario) -> Result<Observed, RunError>;
}

/// The reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file that the scenario refers to cannot be read. The exit code is 2.
    #[error("{0}")]
    Unreadable(String),
    /// The scenario cannot run here and counts as skipped, for this reason.
    #[error("{0}")]
    Skipped(String),
    /// The scenario fails because it called a function that it doesn't mock.
    #[error(
        "the function '{0}' was called, and the scenario doesn't say how it answers; list it under 'functions'"
    )]
    UnlistedFunction(String),
    /// The scenario fails because a mocked function could not answer.
    #[error(transparent)]
    Answer(#[from] answer::AnswerError),
    /// The scenario fails for another reason.
    #[error("{0}")]
    Failed(String),
}
