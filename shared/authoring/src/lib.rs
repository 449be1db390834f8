//! Tools for those who write definitions. They work on the document's text, beside what the
//! reader makes of it, and do no IO: the command line and editors bring text and show results.

pub mod format;
pub mod lint;
pub mod lsp;
pub mod schema;
pub mod templates;
