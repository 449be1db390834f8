//! The findings of checks, with their locations.

use std::fmt;

/// A violation of a rule, or a note. A check without violations has passed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// It fails no check, but belongs in the summary.
    pub is_note: bool,
    /// A path relative to the repository, with a line if there is one; or a crate's name.
    pub place: String,
    /// The problem and its solution.
    pub message: String,
}

impl Finding {
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding {
            is_note: false,
            place: place.into(),
            message: message.into(),
        }
    }

    pub fn note(place: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding {
            is_note: true,
            ..Finding::new(place, message)
        }
    }

    /// A finding at a line, counted from 1.
    pub fn at(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding::new(format!("{path}:{line}"), message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}
