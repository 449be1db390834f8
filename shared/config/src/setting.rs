//! The columns of the table of settings.

use super::kind::ValueKind;

/// A process that is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Its name in the file, such as `redis.url`; the other two names follow from it.
    pub key: &'static str,
    pub kind: ValueKind,
    /// As it would be written in a variable; `None` if there is no default.
    pub default: Option<&'static str>,
    /// A sentence or several, for the help, the page and the default file.
    pub help: &'static str,
    pub used_by: &'static [Process],
    /// Never shown.
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

    /// `SWIRL_REDIS_URL`
    pub fn variable(&self) -> String {
        let key = self.key.replace('.', "_").to_ascii_uppercase();
        format!("{VARIABLES}{key}")
    }

    /// `redis-url`, without the dashes in front.
    pub fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    /// `redis`; nothing for a setting at the top.
    pub fn section(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// `url`
    pub fn name(&self) -> &'static str {
        self.key.rsplit_once('.').map_or(self.key, |(_, name)| name)
    }
}

/// The prefix of all variables.
pub const VARIABLES: &str = "SWIRL_";
