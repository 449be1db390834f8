//! The decision about a commit.

use swirl_model::instance::Status;

use crate::answer::{Undecided, check};
use crate::branch::{self, BranchChange, BranchPosition};
use crate::forks::{self, ForkChange};
use crate::inbox::{Inbox, kib_of};
use crate::request::Request;
use crate::snapshot::{Flags, Hold, Snapshot, has_work};
use crate::status::StatusChange;
use crate::timers::{self, TimerChange};

/// The changes of a commit. They depend on what the snapshot says about: the instance's status; the scope's lease,
/// record and inbox; and as far as they are changed, the scope's timers, the list of its forks, their numbers, and the
/// list of the instances that end with this one. For a branch they depend on whether it has reported.
#[derive(Debug)]
pub struct Decision<'a> {
    pub inbox: Inbox,
    /// `None` if no timers are concerned.
    pub timers: Option<TimerChange>,
    pub forks: ForkChange<'a>,
    /// `None` if the scope isn't a branch of a fork that it could report to.
    pub branch: Option<BranchChange<'a>>,
    pub status: Option<StatusChange<'a>>,
    /// The commit ends the instance for good.
    pub is_over: bool,
    /// The record is written, and these are its facts; `None` if the record is removed.
    pub record: Option<Flags>,
    /// The scope leaves no waits. A branch without a record never had any.
    pub ends_waits: bool,
    /// Only an operator's inputs matter after the commit.
    pub stands_still: bool,
    /// A fork around the scope is closed, or its instance is over.
    pub is_closed: bool,
    pub lease: LeaseChange,
    /// Inputs are waiting for the scope, and no process holds it.
    pub is_woken: bool,
    /// Whether the scope has something to do, and whether it had.
    pub has_work: bool,
    pub had_work: bool,
    /// The KiB that the instance gains, without results of the scope's own fork.
    pub gain: i64,
    /// The KiB that must be free, if the limit applies.
    pub room: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseChange {
    /// The lease is released, or not taken.
    pub is_released: bool,
    /// A lease is taken for a scope that was read without one.
    pub is_taken: bool,
    /// A lease that there was is gone.
    pub is_removed: bool,
}

/// Decides what a commit changes.
///
/// # Errors
/// The commit takes no effect, or the snapshot lacks a part of the scope that it changes.
pub fn decide<'a>(
    request: &Request<'a, '_>,
    known: &Snapshot<'_>,
) -> Result<Decision<'a>, Undecided> {
    let Request { commit, parts, .. } = *request;
    let gone = parts.gone;
    let is_root = commit.lease.scope.scope.is_root();
    let items = known.items.ok_or(Undecided::Unknown)?;
    let inbox = Inbox::of(commit, items, gone);
    check(request, known, items, &inbox)?;

    let status = StatusChange::of(&parts.status, known.status);
    let is_over = status.as_ref().is_some_and(StatusChange::is_over);
    let status_after = status.as_ref().map_or(known.status, |change| change.to);
    let stands_still = known.is_suspended && !is_over || status_after == Status::Faulted;
    let is_closed = known.is_closed || is_root && is_over;
    let timers = match parts.changes_timers {
        true => {
            let armed = known.timers.ok_or(Undecided::Unknown)?;
            Some(timers::change(commit, gone, armed))
        }
        false => None,
    };
    let forks = forks::change(request, known)?;
    let flags = request.flags();
    let place = BranchPosition::of(commit.lease.scope.scope.as_str()).filter(|_| {
        let has_fork = known.enclosing.is_some() || !known.is_complete;
        has_fork && !flags.is_detached
    });
    let branch = place.map(|place| branch::change(request, known, place));

    // The lease. If the worker continued, it could overtake effects that haven't been carried out.
    let is_taken = commit.lease.is_taken();
    let joins_itself = !forks.joined.is_empty() && !stands_still;
    let token = commit.lease.token;
    let has_news = !gone && (joins_itself || inbox.has_news(items, token, stands_still));
    let may_release = commit.release && (gone || request.effects == 0);
    let is_released = may_release && !(is_taken && has_news);
    let takes = !is_taken && !is_released;
    let was_held = is_taken || matches!(known.hold, Hold::By { .. });
    let lease = LeaseChange {
        is_released,
        is_taken: takes,
        is_removed: was_held && !takes && (is_released || gone && !is_root),
    };

    // A branch that leaves no result may begin again.
    let restarts = branch.as_ref().is_some_and(|branch| {
        gone && branch.report.is_none() && !branch.is_closed && !known.has_reported
    });
    let is_there = !(gone && !is_root || flags.has_ended);
    let goes = flags.goes && !is_closed;
    let has_input = joins_itself || inbox.has_work(items, stands_still);
    let has_work = restarts && !stands_still || is_there && has_work(stands_still, goes, has_input);

    let (before, adds) = (known.kib(), request.adds());
    let lost = before + kib_of(items, &inbox.consumed) + kib_of(items, &inbox.dropped);
    let gained = request.size.record + request.size.detached.iter().sum::<usize>();
    let room = before + kib_of(items, &inbox.consumed);
    let room = (adds > before).then(|| adds as i64 - room as i64);
    Ok(Decision {
        timers,
        branch,
        is_over,
        record: (!gone || is_root).then_some(flags),
        ends_waits: gone && known.record.is_some(),
        stands_still,
        is_closed,
        lease,
        is_woken: is_released && (!forks.joined.is_empty() || !is_taken && has_news),
        has_work,
        had_work: known.had_work(items),
        gain: forks.gain + gained as i64 - lost as i64,
        room,
        status,
        forks,
        inbox,
    })
}

impl Snapshot<'_> {
    /// The size of the record in KiB.
    pub(crate) fn kib(&self) -> usize {
        self.record.map_or(0, |record| record.kib)
    }
}
