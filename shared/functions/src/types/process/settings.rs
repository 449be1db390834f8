//! The operator's settings for processes.

use std::time::Duration;

/// A kind of process that the operator allows or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessKind {
    Container,
    /// A server of the Model Context Protocol, over its standard input and output.
    Mcp,
    Script,
    Shell,
}

impl ProcessKind {
    pub const WORDS: [&str; 4] = ["container", "mcp", "script", "shell"];

    pub fn parse(word: &str) -> Option<ProcessKind> {
        Some(match word {
            "container" => ProcessKind::Container,
            "mcp" => ProcessKind::Mcp,
            "script" => ProcessKind::Script,
            "shell" => ProcessKind::Shell,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ProcessKind::Container => "container",
            ProcessKind::Mcp => "mcp",
            ProcessKind::Script => "script",
            ProcessKind::Shell => "shell",
        }
    }
}

/// Which processes may run, and the programs that run them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processes {
    allowed: Vec<ProcessKind>,
    /// The program for JavaScript, with its arguments.
    pub javascript: Vec<String>,
    pub python: Vec<String>,
    /// The command line of Docker or Podman.
    pub containers: Vec<String>,
    /// The limit for a process.
    pub timeout: Duration,
}

impl Default for Processes {
    /// No process may run.
    fn default() -> Processes {
        Processes {
            allowed: Vec::new(),
            javascript: vec!["node".to_owned()],
            python: vec!["python3".to_owned()],
            containers: vec!["docker".to_owned()],
            timeout: Duration::from_secs(3600),
        }
    }
}

/// The reason why a setting is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessesError {
    #[error("`{0}` is not a kind of process: use one of {words}", words = ProcessKind::WORDS.join(", "))]
    Kind(String),
    #[error("`{0}` is not a command")]
    Command(String),
}

impl Processes {
    /// Allows kinds of processes.
    ///
    /// # Errors
    /// [`ProcessesError::Kind`]
    pub fn allowing(mut self, words: &[String]) -> Result<Processes, ProcessesError> {
        for word in words {
            let kind = ProcessKind::parse(word.trim());
            let kind = kind.ok_or_else(|| ProcessesError::Kind(word.clone()))?;
            if !self.allowed.contains(&kind) {
                self.allowed.push(kind);
            }
        }
        Ok(self)
    }

    pub(super) fn allow_any(&self) -> bool {
        !self.allowed.is_empty()
    }

    pub fn allows(&self, kind: ProcessKind) -> bool {
        self.allowed.contains(&kind)
    }

    /// The words of a command line, split as in a shell.
    ///
    /// # Errors
    /// [`ProcessesError::Command`]
    pub fn command(text: &str) -> Result<Vec<String>, ProcessesError> {
        let words = shlex::split(text).filter(|words| !words.is_empty());
        words.ok_or_else(|| ProcessesError::Command(text.to_owned()))
    }
}
