//! What is counted while a definition is compiled, and what is found wrong.

use swirl_expr::{PATTERNS_MAX, Pattern};

/// A part of the document that doesn't compile, and its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {message}")]
pub struct Problem {
    pub pointer: String,
    pub message: String,
}

/// The memory of all regular expressions of a definition. It stays in use while the definition is cached.
#[derive(Default)]
pub(super) struct Room {
    pub used: usize,
}

impl Room {
    pub fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.used = self.used.saturating_add(bytes);
        match self.used > PATTERNS_MAX {
            true => Err(format!(
                "the regular expressions of the definition need more than {} MiB of memory",
                PATTERNS_MAX >> 20
            )),
            false => Ok(()),
        }
    }

    pub fn pattern(&mut self, source: &str) -> Result<Pattern, String> {
        // Counted first, so that nothing is compiled beyond the limit.
        self.take(Pattern::weigh(source)?)?;
        Pattern::compile(source)
    }
}
