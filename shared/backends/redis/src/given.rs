//! What a plan starts from besides the snapshot, and why there may be no plan.

use swirl_ports::Commit;

use crate::steps::Steps;
use crate::waits::Change;

/// The parts of a commit as they are stored, and what else a plan depends on.
pub(crate) struct Given<'a> {
    pub commit: &'a Commit,
    pub steps: &'a Steps<'a>,
    /// Before that of the record.
    pub rev: u64,
    pub record: Vec<u8>,
    pub fork: Option<Vec<u8>>,
    pub result: Option<Vec<u8>>,
    pub output: Option<Vec<u8>>,
    pub error: Option<Vec<u8>>,
    pub effects: Vec<String>,
    pub waits: Vec<Change>,
    /// Digests of events that came too late.
    pub freed: Vec<String>,
    /// Lines of history, and how many elements hold them.
    pub lines: usize,
    pub elements: usize,
    pub history_max: u64,
    pub is_followed: bool,
    /// When the first recorded data of its entries is removed.
    pub due: Option<i64>,
    /// The KiB that an instance may hold, and those that this adds at most (0: the limit doesn't apply).
    pub most: usize,
    pub adds: usize,
    /// Identifies this write: larger than any of this process before.
    pub stamp: u64,
    pub namespace: &'a str,
    pub holder: &'a str,
    pub attempt: u64,
}

/// Why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unplanned {
    /// The snapshot lacks a part of the scope that the commit changes.
    Unknown,
    /// It is for the general function.
    General,
}
