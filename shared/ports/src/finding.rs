//! What an operator should know of a server that a backend uses.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Not as one would expect in production.
    Warning,
    /// Nothing works, or instances or events can be lost.
    Error,
}

/// Something about a server, or about what is kept there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Stands for the kind of finding; doesn't change.
    pub code: &'static str,
    /// Says which server or stream is meant.
    pub message: String,
    /// What to do.
    pub hint: &'static str,
}
