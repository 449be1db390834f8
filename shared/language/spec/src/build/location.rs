//! Locations for findings.

use swirl_documents::diagnostic::SourceLocation;

/// A location in the document, kept for findings that are made later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Location {
    pub place: SourceLocation,
    /// Set for locations inside a referenced document: which document, and where in it.
    pub within: Option<String>,
    /// That document was fetched, so nothing of it is quoted: the deploying client may have no right to read it.
    pub is_fetched: bool,
}
