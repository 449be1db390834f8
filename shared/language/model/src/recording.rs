//! The amount of data that the history keeps.

use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recording {
    #[default]
    None,
    /// The arguments of calls that failed. The last calls of an instance are kept beside its history
    /// ([`Scope::recent`](crate::scope::Scope::recent)).
    Errors,
    /// Arguments and results of all calls, and events that were consumed and produced.
    All,
}

impl Recording {
    /// The shortest time for which recorded data may be kept, in milliseconds.
    pub const KEEP_MS_MIN: u64 = 60_000;

    pub const ALL: [Recording; 3] = [Recording::None, Recording::Errors, Recording::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Recording::None => "none",
            Recording::Errors => "errors",
            Recording::All => "all",
        }
    }

    pub fn of_word(word: &str) -> Option<Recording> {
        Recording::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

impl FromStr for Recording {
    type Err = String;

    fn from_str(text: &str) -> Result<Recording, String> {
        Recording::of_word(text).ok_or_else(|| format!("'{text}' must be none, errors or all"))
    }
}
