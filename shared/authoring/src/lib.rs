//! Tools for authors of definitions. They work on the document's text, in addition to what the
//! reader makes of it, and do no IO: the command line and editors bring text and show results.

pub mod format;
pub mod lint;
pub mod lsp;
pub mod schema;
pub mod templates;
