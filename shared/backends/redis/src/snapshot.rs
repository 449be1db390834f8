//! A scope as it was read. A commit is computed from it, and takes effect only if it is still correct. An outdated
//! snapshot only costs a second request.

use std::sync::Arc;

use swirl_commit::{Numbers, OwnFork};
use swirl_model::instance::{Header, Status};
use swirl_model::scope::Scope;

use crate::creation::Creation;
use crate::record::read_kind;

/// A waiting input.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub number: String,
    pub id: String,
    pub kind: String,
    /// The token of the lease that it was handed to.
    pub handed_to: String,
    /// Its share of the instance's size.
    pub kib: usize,
}

impl Item {
    /// Its meaning for a decision.
    pub fn fact(&self) -> swirl_commit::Item<'_> {
        swirl_commit::Item {
            id: &self.id,
            kind: read_kind(&self.kind),
            handed_to: self.handed_to.parse().ok(),
            kib: self.kib,
        }
    }

    /// Whether its id is remembered when it is consumed.
    pub fn is_remembered(&self) -> bool {
        read_kind(&self.kind).is_remembered()
    }

    /// The key of an event: `event-<wait>-<slot>-<key>`.
    pub fn event_key(&self) -> Option<&str> {
        let id = Some(&self.id).filter(|_| self.kind == "e")?;
        id.strip_prefix("event-")?.splitn(3, '-').nth(2)
    }
}

/// The facts that are only known if the scope was read for this commit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reread {
    pub status: Status,
    pub is_suspended: bool,
    /// A fork around the scope is closed, or its instance is over.
    pub is_closed: bool,
    /// It is a branch without a record, and may begin.
    pub is_unborn: bool,
    /// It is a branch that has reported its result.
    pub has_reported: bool,
    /// The fork that it is a branch of.
    pub fork: Option<Numbers>,
    /// The scope that made that fork has ended.
    pub is_orphan: bool,
    /// It is held, but not for longer than until now.
    pub has_expired: bool,
    /// The size of the instance in KiB.
    pub size: usize,
    /// The instances that end with this one, in their stored form.
    pub children: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The scope has a record.
    pub recorded: bool,
    /// The scope continues without an input.
    pub goes: bool,
    /// The marks in their stored form, if known; and the lease, if the scope is held.
    pub mark: Option<Vec<u8>>,
    pub lease: Option<String>,
    /// The inbox in its stored form, and its items; `None` if it was handed to this holder, or isn't known.
    pub inbox: Option<Vec<u8>>,
    pub items: Option<Vec<Item>>,
    /// The ids of consumed inputs; `None` if not known.
    pub seen: Option<Option<String>>,
    /// The numbers of its forks.
    pub forks: Option<String>,
    /// The armed timers in their stored form; `None` if not known.
    pub timers: Option<Option<Vec<u8>>>,
    /// For a root, the heads of the instance's search attributes; `None` if not known.
    pub attributes: Option<String>,
    /// The size of the record in bytes.
    pub record: usize,
    /// Those of its forks that were read, and their numbers in their stored form.
    pub own_forks: Vec<OwnFork>,
    pub fork_texts: Vec<Vec<u8>>,
    /// Of a branch: its result probably completes the fork.
    pub completes: bool,
    /// The header of its instance, and its bytes as stored, if they were read.
    pub header: Option<(Arc<Header>, usize)>,
    /// Set if everything was read for this commit, because it lacked something or a field had changed. What isn't known
    /// then doesn't exist.
    pub reread: Option<Box<Reread>>,
    /// Set if the instance doesn't exist yet.
    pub creation: Option<Box<Creation>>,
}

impl Snapshot {
    pub fn status(&self) -> Status {
        let reread = self.reread.as_ref();
        reread.map_or(Status::Running, |reread| reread.status)
    }

    pub fn is_suspended(&self) -> bool {
        let reread = self.reread.as_ref();
        reread.is_some_and(|reread| reread.is_suspended)
    }

    pub fn has_reported(&self) -> bool {
        let reread = self.reread.as_ref();
        reread.is_some_and(|reread| reread.has_reported)
    }

    /// A scope that this process holds. As far as it knows, no inputs are waiting.
    pub fn held(record: Option<usize>, goes: bool) -> Snapshot {
        Snapshot {
            recorded: record.is_some(),
            record: record.unwrap_or(0),
            goes,
            items: Some(Vec::new()),
            timers: record.is_none().then_some(None),
            ..Snapshot::default()
        }
    }

    /// The root scope of an instance that doesn't exist yet.
    pub fn of_new(root: &Scope, creation: Creation) -> Snapshot {
        Snapshot {
            recorded: true,
            goes: root.goes_on(),
            items: Some(Vec::new()),
            seen: Some(None),
            timers: Some(None),
            attributes: Some(String::new()),
            reread: Some(Box::default()),
            creation: Some(Box::new(creation)),
            ..Snapshot::default()
        }
    }
}
