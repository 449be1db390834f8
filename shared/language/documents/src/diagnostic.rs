//! Findings about a document.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use crate::codes::Code;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Info,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A location in a document. The default is its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// JSON pointer; empty for the whole document.
    pub pointer: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl Default for SourceLocation {
    fn default() -> SourceLocation {
        SourceLocation {
            pointer: String::new(),
            line: 1,
            column: 1,
        }
    }
}

/// The second location of a finding, and how it is related.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    pub place: SourceLocation,
    /// A few words, such as `first here`.
    pub message: String,
}

/// The part of an expression that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionPart {
    /// The whole expression, without its delimiters.
    pub expression: String,
    /// The range of the part in bytes.
    pub bytes: Range<usize>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    pub pointer: String,
    pub line: usize,
    pub column: usize,
    /// A sentence without its full stop.
    pub message: String,
    /// The action to take.
    pub hint: Option<String>,
    /// The names or words that may stand here, if the reader knows them.
    pub words: Arc<Vec<String>>,
    pub related: Option<Box<Related>>,
    /// The part of the text that begins at the location, if that text contains an expression.
    pub part: Option<Box<ExpressionPart>>,
}

impl Diagnostic {
    /// Whether a user sees the same. What completion makes of it doesn't count.
    fn reads_as(&self, other: &Diagnostic) -> bool {
        self.pointer == other.pointer
            && self.code == other.code
            && self.message == other.message
            && self.hint == other.hint
            && self.part == other.part
    }

    pub fn new(
        severity: Severity,
        code: Code,
        pointer: impl Into<String>,
        line: usize,
        column: usize,
        message: impl Into<String>,
    ) -> Diagnostic {
        let (pointer, message) = (pointer.into(), message.into());
        Diagnostic {
            severity,
            code,
            pointer,
            line,
            column,
            message,
            hint: None,
            words: Arc::default(),
            related: None,
            part: None,
        }
    }

    pub fn at(
        severity: Severity,
        code: Code,
        place: impl Into<SourceLocation>,
        message: impl Into<String>,
    ) -> Diagnostic {
        let place = place.into();
        Diagnostic::new(
            severity,
            code,
            place.pointer,
            place.line,
            place.column,
            message,
        )
    }

    pub fn error(
        code: Code,
        place: impl Into<SourceLocation>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::at(Severity::Error, code, place, message)
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint to a finding that was just reported.
    pub fn hint(&mut self, hint: impl Into<String>) -> &mut Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    pub fn related(
        &mut self,
        place: impl Into<SourceLocation>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.related = Some(Box::new(Related {
            place: place.into(),
            message: message.into(),
        }));
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// `error[code] line:column: message`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic {
            severity,
            code,
            line,
            column,
            message,
            ..
        } = self;
        write!(f, "{severity}[{code}] {line}:{column}: {message}")
    }
}

/// All findings about a document, in the order of their locations. Findings at the same location are in the order in
/// which they were reported. Up to [`Diagnostics::MAX`] findings are kept; `omitted` counts the others, and an omitted
/// error still counts as one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    omitted: usize,
    omitted_error: Option<Box<Diagnostic>>,
    /// Receives the findings beyond the limit.
    overflow: Option<Box<Diagnostic>>,
}

impl Diagnostics {
    pub const MAX: usize = 1000;

    /// Adds a finding, and returns it for additions such as `.hint("...")`.
    pub fn push(&mut self, mut diagnostic: Diagnostic) -> &mut Diagnostic {
        cut(&mut diagnostic.pointer);
        if self.is_full() {
            self.omitted += 1;
            if diagnostic.is_error() && self.omitted_error.is_none() {
                self.omitted_error = Some(Box::new(diagnostic.clone()));
            }
            return self.overflow.insert(Box::new(diagnostic));
        }
        let key = (diagnostic.line, diagnostic.column);
        let at = self
            .list
            .partition_point(|other| (other.line, other.column) <= key);
        self.list.insert(at, diagnostic);
        &mut self.list[at]
    }

    pub fn error(
        &mut self,
        code: Code,
        place: impl Into<SourceLocation>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Diagnostic::at(Severity::Error, code, place, message))
    }

    pub fn warning(
        &mut self,
        code: Code,
        place: impl Into<SourceLocation>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Diagnostic::at(Severity::Warning, code, place, message))
    }

    pub fn info(
        &mut self,
        code: Code,
        place: impl Into<SourceLocation>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Diagnostic::at(Severity::Info, code, place, message))
    }

    pub fn extend(&mut self, others: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in others {
            self.push(diagnostic);
        }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether a finding that reads the same is there.
    pub fn contains(&self, finding: &Diagnostic) -> bool {
        let place = |one: &Diagnostic| (one.line, one.column);
        let first = self.list.partition_point(|one| place(one) < place(finding));
        let from = self.list[first..].iter();
        from.take_while(|one| place(one) == place(finding))
            .any(|one| one.reads_as(finding))
    }

    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.list
    }

    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }

    pub fn has_errors(&self) -> bool {
        self.first_error().is_some()
    }

    /// The first error in the document, or an omitted one if there is no other.
    pub fn first_error(&self) -> Option<&Diagnostic> {
        let kept = self.list.iter().find(|diagnostic| diagnostic.is_error());
        kept.or(self.omitted_error.as_deref())
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_full(&self) -> bool {
        self.list.len() >= Diagnostics::MAX
    }

    /// The number of omitted findings.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

/// Very long keys would make each finding as long, so such a pointer ends at a parent.
fn cut(pointer: &mut String) {
    const LENGTH_MAX: usize = 4096;
    if pointer.len() > LENGTH_MAX {
        let parent = pointer.as_bytes()[..LENGTH_MAX]
            .iter()
            .rposition(|byte| *byte == b'/');
        pointer.truncate(parent.unwrap_or(0));
        pointer.shrink_to_fit();
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    fn place(line: usize, column: usize) -> SourceLocation {
        SourceLocation {
            pointer: String::new(),
            line,
            column,
        }
    }

    #[test]
    fn findings_are_in_the_order_of_the_document() {
        let mut diagnostics = Diagnostics::default();
        diagnostics
            .error(codes::WRONG_TYPE, place(3, 1), "c")
            .hint("fix it");
        diagnostics.warning(codes::WRONG_TYPE, place(1, 9), "a");
        diagnostics.info(codes::WRONG_TYPE, place(3, 1), "d");
        diagnostics.error(codes::WRONG_TYPE, place(2, 1), "b");
        let order: String = diagnostics.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(order, "abcd");
        assert_eq!(
            diagnostics
                .first_error()
                .map(ToString::to_string)
                .as_deref(),
            Some("error[wrong-type] 2:1: b")
        );
        assert_eq!(
            diagnostics
                .iter()
                .filter_map(|d| d.hint.as_deref())
                .collect::<String>(),
            "fix it"
        );
    }

    #[test]
    fn long_pointers_end_at_a_parent() {
        let mut diagnostics = Diagnostics::default();
        let pointer = format!("/a/{}", "\u{e9}".repeat(5000));
        let place = SourceLocation {
            pointer,
            line: 1,
            column: 1,
        };
        assert_eq!(
            diagnostics.error(codes::WRONG_TYPE, place, "").pointer,
            "/a"
        );
    }

    #[test]
    fn the_number_of_findings_is_bounded() {
        let mut diagnostics = Diagnostics::default();
        for line in 0..Diagnostics::MAX {
            diagnostics.warning(codes::WRONG_TYPE, place(line, 1), "w");
        }
        assert!(!diagnostics.has_errors());
        diagnostics
            .error(codes::WRONG_TYPE, place(1, 1), "e")
            .hint("h");
        assert!(diagnostics.has_errors());
        assert_eq!(
            (diagnostics.len(), diagnostics.omitted()),
            (Diagnostics::MAX, 1)
        );
    }
}
