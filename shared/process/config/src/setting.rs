//! The columns of the settings table.

use super::kind::ValueKind;

/// A process that has settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Process {
    Worker,
    Coordinator,
}

impl Process {
    pub const ALL: &'static [Process] = &[Process::Worker, Process::Coordinator];

    pub fn as_str(self) -> &'static str {
        match self {
            Process::Worker => "worker",
            Process::Coordinator => "coordinator",
        }
    }
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The name in the file, such as `redis.url`. The other two names are derived from it.
    pub key: &'static str,
    pub kind: ValueKind,
    /// In the notation of variables; `None` if there is no default.
    pub default: Option<&'static str>,
    /// One or more sentences for the help, the page and the default file.
    pub help: &'static str,
    pub used_by: &'static [Process],
    /// The value is never shown.
    pub secret: bool,
}

impl Setting {
    pub const fn new(key: &'static str, kind: ValueKind, help: &'static str) -> Setting {
        Setting {
            key,
            kind,
            default: None,
            help,
            used_by: Process::ALL,
            secret: false,
        }
    }

    pub const fn default(mut self, default: &'static str) -> Setting {
        self.default = Some(default);
        self
    }

    pub const fn worker(mut self) -> Setting {
        self.used_by = &[Process::Worker];
        self
    }

    pub const fn coordinator(mut self) -> Setting {
        self.used_by = &[Process::Coordinator];
        self
    }

    pub const fn secret(mut self) -> Setting {
        self.secret = true;
        self
    }

    /// For example, `SWIRL_REDIS_URL`.
    pub fn variable(&self) -> String {
        let key = self.key.replace('.', "_").to_ascii_uppercase();
        format!("{VARIABLES}{key}")
    }

    /// For example, `redis-url`, without leading dashes.
    pub fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    /// For example, `redis`; empty for a top-level setting.
    pub fn section(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// For example, `url`.
    pub fn name(&self) -> &'static str {
        self.key.rsplit_once('.').map_or(self.key, |(_, name)| name)
    }
}

/// The prefix of all variables.
pub const VARIABLES: &str = "SWIRL_";
