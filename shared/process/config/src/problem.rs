//! Errors in a configuration, and their locations.

use std::fmt;
use std::path::PathBuf;

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    /// Line and column count from 1; 0 stands for the whole file.
    File {
        path: PathBuf,
        line: usize,
        column: usize,
    },
    Variable(String),
    /// With its leading dashes.
    Flag(String),
}

impl SettingSource {
    pub fn file(path: impl Into<PathBuf>) -> SettingSource {
        SettingSource::File {
            path: path.into(),
            line: 0,
            column: 0,
        }
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Default => f.write_str("default"),
            SettingSource::File { path, line: 0, .. } => write!(f, "{}", path.display()),
            SettingSource::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            SettingSource::Variable(name) => write!(f, "variable {name}"),
            SettingSource::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// Never contains the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub place: SettingSource,
    pub message: String,
    pub hint: Option<String>,
    /// The file itself can't be read.
    pub is_unreadable: bool,
}

impl Problem {
    pub fn new(place: SettingSource, message: impl Into<String>) -> Problem {
        Problem {
            place,
            message: message.into(),
            hint: None,
            is_unreadable: false,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  = hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// All errors, one or two lines each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is not valid")?;
        for problem in &self.0 {
            write!(f, "\n{problem}")?;
        }
        Ok(())
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        Problems(vec![problem])
    }
}
