//! Problems of a definition's functions.

/// The reason why a function of a definition cannot be called. Retrying with the same documents never helps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("function `{function}`: {message}")]
pub struct Problem {
    pub function: String,
    pub message: String,
    pub site: Site,
}

/// The part of a definition that has a [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Site {
    /// The function's `operation`.
    Operation,
    /// The function's `authRef`.
    Auth,
    /// The arguments in an action's call.
    Arguments {
        /// JSON pointer to the action.
        action: String,
        /// JSON pointer below the arguments; empty if it concerns all of them.
        within: String,
    },
    /// The part of the result that an action selects, with a JSON pointer to the action.
    Selection(String),
}
