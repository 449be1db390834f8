//! Places for findings.

use crate::diagnostic::Place;

/// A place in the document, kept for findings that are made later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Location {
    pub place: Place,
    /// Set for places inside a referenced document: which one, and where in it.
    pub within: Option<String>,
}
