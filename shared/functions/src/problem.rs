//! Problems of a definition's functions.

/// The reason why a function of a definition cannot be called. Trying again with the same documents
/// never helps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("function `{function}`: {message}")]
pub struct Problem {
    pub function: String,
    pub message: String,
    pub site: Site,
}

/// The part of a definition that a [`Problem`] is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Site {
    /// The function's `operation`.
    Operation,
    /// The function's `authRef`.
    Auth,
    /// The arguments that an action calls it with.
    Arguments {
        /// JSON pointer to the action.
        action: String,
        /// JSON pointer below the arguments; empty for all of them.
        within: String,
    },
    /// The part of the result that an action selects; a JSON pointer to the action.
    Selection(String),
}
