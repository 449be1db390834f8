//! The answers to commits that take no effect. They follow from what is stored; if that was read before the commit, it
//! is read again first, so an outdated snapshot is no reason to refuse anything.

use crate::commit_parts::is_detached;
use crate::inbox::Inbox;
use crate::plan_input::{Answer, PlanInput, Unplanned};
use crate::size::kib;
use crate::snapshot::{Reread, Snapshot};

/// The words of a lease: token, when it ends, whether its holder was notified that the scope is closed, the holder, its
/// attempt.
struct Held<'a> {
    token: &'a str,
    is_notified: bool,
    holder: &'a str,
    attempt: &'a str,
}

impl<'a> Held<'a> {
    fn of(text: &'a str) -> Option<Held<'a>> {
        let mut words = text.split(' ');
        let (token, _, notified) = (words.next()?, words.next()?, words.next()?);
        Some(Held {
            token,
            is_notified: notified == "1",
            holder: words.next()?,
            attempt: words.next()?,
        })
    }

    fn released(&self) -> Answer {
        Answer::Refused(Some((self.holder.to_owned(), self.attempt.to_owned())))
    }
}

/// The answer if the commit can't take effect.
pub(crate) fn check(
    input: &PlanInput<'_>,
    known: &Snapshot,
    inbox: &Inbox<'_>,
    gone: bool,
) -> Result<(), Unplanned> {
    let commit = input.commit;
    let lease = &commit.lease;
    let is_taken = lease.is_taken();
    let held = known.lease.as_deref();
    let held = held
        .map(|text| Held::of(text).ok_or(Unplanned::Damaged("its lease")))
        .transpose()?;
    match (&held, is_taken) {
        (Some(held), true) if held.token != lease.token.to_string() => {
            return Err(Unplanned::refused());
        }
        (None, true) if known.reread.is_some() => return Err(Unplanned::refused()),
        (Some(held), false) => {
            let attempt = input.attempt.to_string();
            // The commit was carried out already, and is repeated because its response was lost.
            if held.holder == input.holder && held.attempt == attempt {
                return Err(Unplanned::Answer(held.released()));
            }
            let has_expired = known.reread.as_ref().is_some_and(|now| now.has_expired);
            if !has_expired {
                return Err(Unplanned::refused());
            }
        }
        _ => {}
    }
    if !is_taken && known.stands_still() {
        return Err(Unplanned::refused());
    }
    if commit.require_unchanged_inbox {
        let is_notified = held.as_ref().is_some_and(|held| held.is_notified);
        if known.stands_still()
            || is_taken && is_notified != known.is_closed()
            || inbox.has_news(lease.token, false)
        {
            return Err(Unplanned::Answer(Answer::InboxChanged));
        }
    }
    if is_stale(input, known)? || !gone && known.is_closed() {
        // Nothing waits for this lease to expire, so it is released at once.
        let released = held.filter(|_| is_taken).map(|held| held.released());
        return Err(Unplanned::Answer(released.unwrap_or(Answer::Refused(None))));
    }
    match &known.reread {
        Some(now) => has_room(input, known, now, inbox),
        None => Ok(()),
    }
}

/// Whether the commit isn't based on the stored record.
fn is_stale(input: &PlanInput<'_>, known: &Snapshot) -> Result<bool, Unplanned> {
    let commit = input.commit;
    let lease = &commit.lease;
    let reread = known.reread.as_ref();
    // Branches of the fork that was read, not of one with the same name that a failover lost.
    let fork_stamp = reread.map(|now| now.fork.as_ref().map(|fork| fork.stamp.as_str()));
    if let Some(base) = base_of(&input.record) {
        let stamp = lease.fork_stamp.to_string();
        let expected = fork_stamp.unwrap_or(Some(stamp.as_str()));
        if expected != Some(base) {
            return Ok(true);
        }
    }
    if known.recorded {
        let Some(mark) = &known.mark else {
            // It is compared by the function.
            return Ok(false);
        };
        let words = std::str::from_utf8(mark).ok().and_then(|text| {
            let (rev, rest) = text.split_once(' ')?;
            let (_, stamp) = rest.split_once(' ')?;
            Some((rev.parse::<u64>().ok()?, stamp.parse::<u64>().ok()?))
        });
        let (rev, stamp) = words.ok_or(Unplanned::Damaged("the marks of its record"))?;
        return Ok(rev != input.rev || !lease.is_taken() && stamp != lease.read_stamp);
    }
    let is_other_fork = !lease.is_taken()
        && lease.fork_stamp != 0
        && fork_stamp.is_some_and(|stamp| stamp != Some(lease.fork_stamp.to_string().as_str()));
    let may_begin = match reread {
        Some(now) => now.is_unborn,
        // As far as is known.
        None => !lease.scope.scope.is_root() && !is_detached(&commit.scope),
    };
    Ok(input.rev != 0 || !may_begin || is_other_fork)
}

/// The creation time of the fork that the record of a branch refers to, if it contains only a difference.
fn base_of(record: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(record).ok()?;
    let (base, _) = text.strip_prefix("[\"")?.split_once('"')?;
    Some(base)
}

fn has_room(
    input: &PlanInput<'_>,
    known: &Snapshot,
    now: &Reread,
    inbox: &Inbox<'_>,
) -> Result<(), Unplanned> {
    let before = kib(known.record);
    let own = before + inbox.consumed_kib();
    let others = now.size.saturating_sub(own);
    if input.adds > before && others + input.adds > input.most {
        let room = input.most.saturating_sub(others).max(before);
        return Err(Unplanned::Answer(Answer::Full(room)));
    }
    Ok(())
}
