//! Tools for authors of definitions. They work on the text of a document and on its parsed form. They do no IO: the
//! command line and editors provide the text and show the results.

pub mod format;
pub mod lint;
pub mod lsp;
pub mod operations;
pub mod schema;
pub mod sonataflow;
pub mod templates;
