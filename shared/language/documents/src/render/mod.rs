//! Output formats for findings: text, JSON, and SARIF for code scanners.
//!
//! These are pure functions of the file's name, its text and the findings.

mod human;
mod json;
mod sarif;

pub use human::{Colour, human};
pub use json::json;
pub use sarif::{SarifFile, sarif};

/// Example findings for the tests of all formats.
#[cfg(test)]
mod testing {
    use crate::diagnostic::Diagnostic;
    use crate::source::{Limits, read};

    pub const TEXT: &str = "id: greet\nstates: &s\n  - name: A\n    name: B\nyear: 012\n";

    pub fn findings() -> Vec<Diagnostic> {
        read(TEXT.as_bytes(), &Limits::default())
            .diagnostics
            .into_vec()
    }
}
