//! What is known of a scope in its stored form, as the facts that a decision is made from.

use swirl_commit::{Flags, Hold, Record, kib};
use swirl_ports::Lease;

use crate::plan_input::{PlanInput, Unplanned};
use crate::snapshot::{Item, Snapshot};

/// Timers by number, with their members in the index.
pub(crate) type Armed<'a> = Vec<(&'a str, &'a str)>;

/// The parts of a stored lease: token, when it ends, whether its holder was notified that the scope is closed, the
/// holder, its attempt.
struct Held<'a> {
    token: u64,
    is_notified: bool,
    holder: &'a str,
    attempt: &'a str,
}

impl<'a> Held<'a> {
    fn of(text: &'a str) -> Option<Held<'a>> {
        let mut words = text.split(' ');
        let (token, _, notified) = (words.next()?, words.next()?, words.next()?);
        Some(Held {
            token: token.parse().ok()?,
            is_notified: notified == "1",
            holder: words.next()?,
            attempt: words.next()?,
        })
    }
}

/// Holder and attempt of a stored lease.
pub(crate) fn holder(lease: &str) -> Option<(&str, &str)> {
    let held = Held::of(lease)?;
    Some((held.holder, held.attempt))
}

pub(crate) struct Known<'k> {
    stored: &'k Snapshot,
    items: Option<Vec<swirl_commit::Item<'k>>>,
    pub armed: Armed<'k>,
    timers: Option<Vec<u32>>,
    forks: Vec<u32>,
    hold: Hold,
    version: Option<(u64, u64)>,
    is_other_fork: bool,
}

impl<'k> Known<'k> {
    pub fn of(stored: &'k Snapshot, input: &PlanInput<'_>) -> Result<Known<'k>, Unplanned> {
        let lease = &input.commit.lease;
        let reread = stored.reread.as_deref();
        let hold = match stored.lease.as_deref() {
            Some(text) => {
                let held = Held::of(text).ok_or(Unplanned::Damaged("its lease"))?;
                Hold::By {
                    token: held.token,
                    is_notified: held.is_notified,
                    is_same_attempt: !lease.is_taken()
                        && held.holder == input.holder
                        && held.attempt.parse() == Ok(input.attempt),
                    has_expired: reread.is_some_and(|now| now.has_expired),
                }
            }
            None => Hold::None,
        };
        let version = match &stored.mark {
            Some(mark) => {
                let marks = std::str::from_utf8(mark).ok().and_then(read_marks);
                Some(marks.ok_or(Unplanned::Damaged("the marks of its record"))?)
            }
            None => None,
        };
        let (mut armed, mut timers) = (Armed::new(), None);
        if let (true, Some(known)) = (input.parts.changes_timers, &stored.timers) {
            if let Some(text) = known {
                armed =
                    rmp_serde::from_slice(text).map_err(|_| Unplanned::Damaged("its timers"))?;
            }
            let numbers = armed.iter().map(|(seq, _)| seq.parse());
            let numbers: Result<_, _> = numbers.collect();
            timers = Some(numbers.map_err(|_| Unplanned::Damaged("its timers"))?);
        }
        let forks = stored.forks.as_deref().unwrap_or_default();
        let forks = forks.split_ascii_whitespace().map(str::parse).collect();
        let forks: Result<_, std::num::ParseIntError> = forks;
        Ok(Known {
            stored,
            items: stored
                .items
                .as_ref()
                .map(|items| items.iter().map(Item::fact).collect()),
            armed,
            timers,
            forks: forks.map_err(|_| Unplanned::Damaged("the numbers of its forks"))?,
            hold,
            version,
            is_other_fork: is_other_fork(stored, lease),
        })
    }

    pub fn snapshot(&self) -> swirl_commit::Snapshot<'_> {
        let stored = self.stored;
        let reread = stored.reread.as_deref();
        let has = |flag: u8| {
            stored
                .mark
                .as_ref()
                .is_some_and(|mark| mark.contains(&flag))
        };
        let record = stored.recorded.then(|| Record {
            version: self.version,
            flags: Flags {
                has_ended: has(b'e'),
                is_detached: has(b'd'),
                goes: stored.goes,
            },
            kib: kib(stored.record),
        });
        swirl_commit::Snapshot {
            is_complete: reread.is_some(),
            status: stored.status(),
            is_suspended: stored.is_suspended(),
            is_closed: reread.is_some_and(|now| now.is_closed),
            hold: self.hold,
            record,
            is_unborn: reread.map(|now| now.is_unborn),
            is_other_fork: self.is_other_fork,
            has_reported: stored.has_reported(),
            is_orphan: reread.is_some_and(|now| now.is_orphan),
            enclosing: reread.and_then(|now| now.fork.as_ref()),
            items: self.items.as_deref(),
            timers: self.timers.as_deref(),
            forks: &self.forks,
            own_forks: &stored.own_forks,
            size: reread.map(|now| now.size),
        }
    }
}

/// Revision and stamp of `<revision> <flags> <stamp>`.
fn read_marks(text: &str) -> Option<(u64, u64)> {
    let (rev, rest) = text.split_once(' ')?;
    let (_, stamp) = rest.split_once(' ')?;
    Some((rev.parse().ok()?, stamp.parse().ok()?))
}

/// Whether the fork of a branch isn't the one that was read with it, because a failover lost that one.
fn is_other_fork(stored: &Snapshot, lease: &Lease) -> bool {
    let Some(now) = stored.reread.as_deref().filter(|_| lease.fork_stamp != 0) else {
        return false;
    };
    now.fork
        .as_ref()
        .is_none_or(|fork| fork.stamp != lease.fork_stamp.to_string())
}
