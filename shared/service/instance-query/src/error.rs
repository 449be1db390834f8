//! The reason why a query cannot be answered, with its place.

use thiserror::Error;

/// `at` is counted in characters, from 0.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (at character {})", .at + 1)]
pub struct QueryError {
    /// Where it begins, in characters from 0.
    pub at: usize,
    /// The number of characters that it is about; 0 at the end of the query.
    pub length: usize,
    /// `true`: the query is well formed, and names an attribute that no deployed workflow declares.
    pub unknown_attribute: bool,
    pub message: String,
}

impl QueryError {
    pub(crate) fn new(at: usize, length: usize, message: impl Into<String>) -> QueryError {
        QueryError {
            at,
            length,
            unknown_attribute: false,
            message: message.into(),
        }
    }

    /// The query with a mark below the place, for a terminal.
    pub fn shown(&self, query: &str) -> String {
        let flat = query.replace(['\n', '\t'], " ");
        let mark = "^".repeat(self.length.max(1));
        format!("{flat}\n{}{mark}\n{}", " ".repeat(self.at), self.message)
    }
}
