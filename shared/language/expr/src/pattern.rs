//! Regular expressions that are parts of a definition: compiled once, matched in linear time.

use regex::{Regex, RegexBuilder};

use crate::weight::{WEIGHT_MAX, weight};

/// The maximum size of the automaton, as in expressions.
const SIZE_MAX: usize = 1 << 20;

/// A compiled regular expression of a definition.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    weight: usize,
}

impl Pattern {
    /// # Errors
    /// It isn't a regular expression, or too big to be compiled.
    pub fn compile(source: &str) -> Result<Pattern, String> {
        let weight = Pattern::weigh(source)?;
        let mut builder = RegexBuilder::new(source);
        builder.size_limit(SIZE_MAX).dfa_size_limit(SIZE_MAX);
        let regex = builder.build().map_err(|error| reason(&error))?;
        Ok(Pattern { regex, weight })
    }

    /// Checks it without compiling it, since the memory of all patterns of a document has no bounds. Returns the
    /// approximate memory in bytes that it takes when it is compiled.
    ///
    /// # Errors
    /// As [`Pattern::compile`].
    pub fn weigh(source: &str) -> Result<usize, String> {
        regex_syntax::parse(source).map_err(|error| reason(&error))?;
        let weight = weight(source);
        if weight > WEIGHT_MAX {
            return Err(format!(
                "it takes about {weight} bytes of memory, more than {WEIGHT_MAX}"
            ));
        }
        Ok(weight)
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The approximate memory in bytes.
    pub fn weight(&self) -> usize {
        self.weight
    }
}

fn reason(error: &dyn std::fmt::Display) -> String {
    let error = error.to_string();
    let reason = error.lines().last().unwrap_or_default();
    reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
}
