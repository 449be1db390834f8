//! The answers to commits that take no effect. They follow from what is stored; if that was read before the commit, it
//! is read again first, so an outdated snapshot is no reason to refuse anything.

use crate::inbox::{Inbox, Item, kib_of};
use crate::request::Request;
use crate::snapshot::{Hold, Snapshot};

/// Why there is no decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecided {
    /// The snapshot lacks a part of the scope that the commit changes.
    Unknown,
    /// The commit takes no effect. That is final if the snapshot is complete.
    Answer(Answer),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// `releases`: the lease is released at once, since nothing waits for it to expire.
    Refused {
        releases: bool,
    },
    InboxChanged,
    /// The KiB that are left.
    Full(usize),
}

impl Undecided {
    fn refused(releases: bool) -> Undecided {
        Undecided::Answer(Answer::Refused { releases })
    }
}

/// The answer if the commit can't take effect.
pub(crate) fn check(
    request: &Request<'_, '_>,
    known: &Snapshot<'_>,
    items: &[Item<'_>],
    inbox: &Inbox,
) -> Result<(), Undecided> {
    let commit = request.commit;
    let lease = &commit.lease;
    let is_taken = lease.is_taken();
    let mut was_notified = false;
    match known.hold {
        Hold::None if is_taken && known.is_complete => return Err(Undecided::refused(false)),
        Hold::None => {}
        Hold::By {
            token, is_notified, ..
        } if is_taken => {
            if token != lease.token {
                return Err(Undecided::refused(false));
            }
            was_notified = is_notified;
        }
        Hold::By {
            is_same_attempt,
            has_expired,
            is_notified,
            ..
        } => {
            // The commit was carried out already, and is repeated because its response was lost.
            if is_same_attempt {
                return Err(Undecided::refused(true));
            }
            if !has_expired {
                return Err(Undecided::refused(false));
            }
            was_notified = is_notified;
        }
    }
    let stands_still = known.stands_still();
    if !is_taken && stands_still {
        return Err(Undecided::refused(false));
    }
    if commit.require_unchanged_inbox
        && (stands_still
            || is_taken && was_notified != known.is_closed
            || inbox.has_news(items, lease.token, false))
    {
        return Err(Undecided::Answer(Answer::InboxChanged));
    }
    if is_stale(request, known) || !request.parts.gone && known.is_closed {
        let is_held = matches!(known.hold, Hold::By { .. });
        return Err(Undecided::refused(is_taken && is_held));
    }
    let (Some(size), Some(limit)) = (known.size, request.limit) else {
        return Ok(());
    };
    let (adds, before) = (request.adds(), known.kib());
    let others = size.saturating_sub(before + kib_of(items, &inbox.consumed));
    if adds > before && others + adds > limit {
        let room = limit.saturating_sub(others).max(before);
        return Err(Undecided::Answer(Answer::Full(room)));
    }
    Ok(())
}

/// Whether the commit isn't based on the stored record.
fn is_stale(request: &Request<'_, '_>, known: &Snapshot<'_>) -> bool {
    let lease = &request.commit.lease;
    // Branches of the fork that was read, not of one with the same name that a failover lost.
    if known.is_other_fork && request.refers_to_fork {
        return true;
    }
    if let Some(record) = &known.record {
        // If the version isn't known, it is compared when the commit is written.
        return record.version.is_some_and(|(rev, stamp)| {
            rev != request.rev || !lease.is_taken() && stamp != lease.read_stamp
        });
    }
    let may_begin = known.is_unborn.unwrap_or_else(|| {
        // As far as is known.
        !lease.scope.scope.is_root() && !request.flags().is_detached
    });
    request.rev != 0 || !may_begin || known.is_other_fork && !lease.is_taken()
}
