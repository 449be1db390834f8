//! The input of a plan in addition to the snapshot, and the reasons why there may be no plan.

use swirl_commit::{Answer, CommitParts, Undecided};
use swirl_model::event::Input;
use swirl_ports::Commit;

use crate::waits::Change;

/// The parts of a commit in their stored form, and everything else that a plan depends on.
pub(crate) struct PlanInput<'a> {
    pub commit: &'a Commit,
    pub parts: &'a CommitParts<'a>,
    /// The revision before the record's.
    pub rev: u64,
    pub record: Vec<u8>,
    /// The records of the forks that are made, in order.
    pub forks: Vec<Vec<u8>>,
    pub detached: Vec<Vec<u8>>,
    /// The inputs for revived branches.
    pub revivals: Vec<(&'a Input, String)>,
    pub result: Option<Vec<u8>>,
    pub output: Option<Vec<u8>>,
    pub error: Option<Vec<u8>>,
    /// Those that the commit contains, and the ends of other instances.
    pub effects: Vec<String>,
    pub waits: Vec<Change>,
    /// The digests of events that came too late.
    pub freed: Vec<String>,
    /// The number of history lines, and the number of elements that contain them.
    pub lines: usize,
    pub elements: usize,
    pub history_max: u64,
    pub is_followed: bool,
    /// When the first recorded data of the entries expires.
    pub due: Option<i64>,
    /// The size limit of the instance in KiB.
    pub limit: Option<usize>,
    /// Identifies this write. It is greater than that of any earlier write of this process.
    pub stamp: u64,
    pub namespace: &'a str,
    pub holder: &'a str,
    pub attempt: u64,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unplanned {
    /// The snapshot lacks a part of the scope that the commit changes.
    Unknown,
    /// The commit takes no effect. That is final if the snapshot is a second read.
    Answer(Answer),
    /// A stored field isn't as it should be.
    Damaged(&'static str),
}

impl From<Undecided> for Unplanned {
    fn from(why: Undecided) -> Unplanned {
        match why {
            Undecided::Unknown => Unplanned::Unknown,
            Undecided::Answer(answer) => Unplanned::Answer(answer),
        }
    }
}
