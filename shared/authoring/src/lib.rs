//! Tools for authors of definitions. They work on the text of a document as well as on its parsed form, and do no IO:
//! the command line and editors pass in the text and show the results.

pub mod format;
pub mod lint;
pub mod lsp;
pub mod schema;
pub mod templates;
