//! Options, and the errors of opening a folder.

use std::path::PathBuf;

use swirl_ports::{JoinLimits, KeptBytes, SetsBytes};

/// Limits. Anything beyond a limit is refused or, where documented, dropped, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The maximum number of history entries of an instance. Older ones are dropped.
    pub history_max: u64,
    /// The maximum number of inputs waiting in a scope's inbox.
    pub inbox_max: usize,
    /// The maximum total size of an instance's scopes, forks and results; 0 means no limit.
    pub instance_bytes: usize,
    /// How long events are kept for later waits.
    pub retain_ms: u64,
    /// The maximum number of such events. Older ones are dropped.
    pub retain_max: usize,
    /// The maximum total sizes of such events. Older ones are dropped.
    pub retain_bytes: KeptBytes,
    /// How long an event is remembered, so that it isn't accepted twice.
    pub dedup_ms: u64,
    /// The maximum number of such events. Older ones are dropped.
    pub dedup_max: usize,
    /// The maximum number of incomplete sets of events. Older ones are dropped.
    pub sets_max: usize,
    /// The maximum total sizes of such sets. Older ones are dropped.
    pub sets_bytes: SetsBytes,
    /// How long ended instances are kept, except faulted ones.
    pub keep_ended_ms: u64,
    /// The maximum number of such instances. Older ones are dropped.
    pub keep_ended_max: usize,
    /// How long faulted instances are kept, regardless of their number.
    pub keep_faulted_ms: u64,
    /// Forks beyond these limits are left to coordinators; `None`: the reader of a scope always gets all results.
    pub join_limits: Option<JoinLimits>,
    /// The size at which a new log is begun. Logs are merged when they are longer than all records, and at least two.
    pub log_bytes: u64,
    /// Open a damaged folder nevertheless, with what can be read.
    pub accept_loss: bool,
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

impl Default for Options {
    fn default() -> Options {
        Options {
            history_max: 100_000,
            inbox_max: 10_000,
            instance_bytes: 64 << 20,
            retain_ms: DAY_MS,
            retain_max: 100_000,
            retain_bytes: KeptBytes::default(),
            dedup_ms: DAY_MS,
            dedup_max: 250_000,
            sets_max: 100_000,
            sets_bytes: SetsBytes::default(),
            keep_ended_ms: 7 * DAY_MS,
            keep_ended_max: 100_000,
            keep_faulted_ms: 30 * DAY_MS,
            join_limits: None,
            log_bytes: 32 << 20,
            accept_loss: false,
        }
    }
}

/// Why a folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Retrying helps once the other process has ended.
    #[error("the folder {} is in use by another process", folder.display())]
    Locked { folder: PathBuf },
    #[error("the folder {} cannot be used: {error}", folder.display())]
    Io {
        folder: PathBuf,
        error: std::io::Error,
    },
    /// Something that was acknowledged is missing. Nothing in the folder was changed.
    #[error(
        "the store in {} is damaged:\n{}\nNothing was changed. Restore the whole folder from a backup, or start with --accept-loss: it continues with what can be read, reports what is lost, and keeps the damaged files. What happened after the last readable change may then happen again",
        folder.display(),
        damage.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
    )]
    Damaged {
        folder: PathBuf,
        damage: Vec<String>,
    },
    /// The content of the folder cannot be read.
    #[error(transparent)]
    Store(#[from] swirl_ports::Error),
}
