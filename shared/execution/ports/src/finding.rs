//! A fact that an operator should know about a server that a backend uses.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Unusual in production.
    Warning,
    /// Nothing works, or instances or events can be lost.
    Error,
}

/// A finding about a server or about the data kept there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// The stable code of the kind of finding.
    pub code: &'static str,
    /// Names the server or stream.
    pub message: String,
    /// The action to take.
    pub hint: &'static str,
}
