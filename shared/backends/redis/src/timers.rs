//! The armed timers of a scope after a commit, in the instance's hash and in the index of timers.

use serde::Serialize;
use swirl_model::event::{Command, Input};
use swirl_model::scope::Timer;
use swirl_ports::Commit;

use crate::plan_input::Unplanned;
use crate::record::timer_kind;

/// The position of the index's key in the call's keys, members to remove, scores and members to add, and the lowest of
/// these scores.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct TimerChange {
    pub key: usize,
    removed: Vec<String>,
    added: Vec<(i64, String)>,
    earliest: Option<i64>,
    /// The new value of the field.
    #[serde(skip)]
    pub text: Option<Vec<u8>>,
}

impl TimerChange {
    pub fn is_indexed(&self) -> bool {
        !self.removed.is_empty() || !self.added.is_empty()
    }
}

/// Timers by number, with their members in the index.
type Armed = Vec<(String, String)>;

/// `known`: the field, if it was read. Returns `Ok(None)` if the commit changes no timers. `stamp` orders timers that
/// are due at the same time.
pub(crate) fn change(
    commit: &Commit,
    gone: bool,
    known: Option<&Option<Vec<u8>>>,
    stamp: u64,
) -> Result<Option<TimerChange>, Unplanned> {
    let commands = commit.commands.iter();
    let mut commands = commands
        .filter(|command| is_about_timers(command))
        .peekable();
    let has_consumed = |timer: &&Timer| {
        let id = Input::Timer { seq: timer.seq }.id();
        commit.consumed.contains(&id)
    };
    // A timer that fired too early for the engine is armed again.
    let mut again = commit.scope.timers.iter().filter(has_consumed).peekable();
    if commands.peek().is_none() && again.peek().is_none() && !gone {
        return Ok(None);
    }
    let before = known.ok_or(Unplanned::Unknown)?.as_deref();
    let armed = before.map_or(Ok(Armed::new()), rmp_serde::from_slice);
    let mut draft = Draft {
        armed: armed.map_err(|_| Unplanned::Damaged("its timers"))?,
        change: TimerChange::default(),
        commit,
        stamp,
        count: 0,
    };
    for timer in again {
        draft.arm(timer);
    }
    for command in commands {
        match command {
            Command::Arm(timer) => draft.arm(timer),
            Command::Disarm(seq) => draft.disarm(*seq),
            _ => {}
        }
    }
    draft.finish(gone).map(Some)
}

fn is_about_timers(command: &Command) -> bool {
    matches!(command, Command::Arm(_) | Command::Disarm(_))
}

struct Draft<'a> {
    armed: Armed,
    change: TimerChange,
    commit: &'a Commit,
    stamp: u64,
    count: u32,
}

impl Draft<'_> {
    fn arm(&mut self, timer: &Timer) {
        self.disarm(timer.seq);
        self.count += 1;
        let scope = &self.commit.lease.scope;
        let (stamp, count, seq) = (self.stamp, self.count, timer.seq);
        let kind = timer_kind(timer.kind);
        let member = format!(
            "{stamp}{count:04} {} {seq} {kind} {}",
            scope.scope, scope.instance
        );
        self.armed.push((seq.to_string(), member.clone()));
        self.change.added.push((timer.due.0, member));
    }

    fn disarm(&mut self, seq: u32) {
        let seq = seq.to_string();
        let Some(place) = self.armed.iter().position(|(other, _)| *other == seq) else {
            return;
        };
        let (_, member) = self.armed.remove(place);
        let added = self.change.added.len();
        self.change.added.retain(|(_, other)| *other != member);
        if self.change.added.len() == added {
            self.change.removed.push(member);
        }
    }

    fn finish(mut self, gone: bool) -> Result<TimerChange, Unplanned> {
        if gone {
            let members = self.armed.drain(..).map(|(_, member)| member);
            let added = std::mem::take(&mut self.change.added);
            let is_new = |member: &String| added.iter().any(|(_, other)| other == member);
            self.change
                .removed
                .extend(members.filter(|member| !is_new(member)));
        }
        self.change.earliest = self.change.added.iter().map(|(due, _)| *due).min();
        if !self.armed.is_empty() {
            let text = rmp_serde::to_vec(&self.armed);
            let text = text.map_err(|_| Unplanned::Damaged("its timers cannot be packed"))?;
            self.change.text = Some(text);
        }
        Ok(self.change)
    }
}

#[cfg(test)]
mod tests {
    use swirl_contract::kit;
    use swirl_model::ids::{InstanceId, ScopeRef};
    use swirl_model::scope::Scope;
    use swirl_ports::Lease;

    use super::*;

    fn commit(timers: &[u32], consumed: &[u32], commands: Vec<Command>) -> Commit {
        let mut scope: Scope = kit::new("a").root;
        let timers = timers.iter();
        scope.timers = timers.map(|seq| kit::timer(*seq, 9)).collect();
        let consumed = consumed.iter();
        Commit {
            lease: Lease::new(ScopeRef::root(InstanceId::new("a")), 1),
            scope,
            consumed: consumed
                .map(|seq| Input::Timer { seq: *seq }.id())
                .collect(),
            refused: Vec::new(),
            history: Vec::new(),
            commands,
            at: kit::at(0),
            require_unchanged_inbox: false,
            release: true,
            lease_ms: 1,
            fits: false,
        }
    }

    fn armed(seqs: &[u32]) -> Option<Vec<u8>> {
        let armed = seqs.iter().map(|seq| (seq.to_string(), format!("m{seq}")));
        let armed: Armed = armed.collect();
        rmp_serde::to_vec(&armed).ok()
    }

    #[test]
    fn a_new_timer_replaces_the_previous_one() {
        let commands = vec![Command::Disarm(1), Command::Arm(kit::timer(2, 7))];
        let known = Some(armed(&[1]));
        let change = change(&commit(&[2], &[], commands), false, known.as_ref(), 5);
        let change = change.unwrap().unwrap();
        assert_eq!(change.removed, ["m1"]);
        assert_eq!(change.added, [(7, "50001 r 2 sleep a".to_owned())]);
        assert_eq!(change.earliest, Some(7));
        assert!(change.text.is_some());
    }

    #[test]
    fn a_timer_armed_and_disarmed_at_once_is_not_indexed() {
        let commands = vec![Command::Arm(kit::timer(2, 7)), Command::Disarm(2)];
        let change = change(&commit(&[], &[], commands), false, Some(&None), 5);
        let change = change.unwrap().unwrap();
        assert!(!change.is_indexed() && change.text.is_none());
    }

    #[test]
    fn a_timer_that_fired_too_early_is_armed_again() {
        let change = change(&commit(&[1], &[1], Vec::new()), false, Some(&None), 5);
        assert_eq!(change.unwrap().unwrap().earliest, Some(9));
    }

    #[test]
    fn a_scope_that_is_gone_has_no_timers() {
        let known = Some(armed(&[1, 2]));
        let commands = vec![Command::Arm(kit::timer(3, 7))];
        let change = change(&commit(&[], &[], commands), true, known.as_ref(), 5);
        let change = change.unwrap().unwrap();
        assert_eq!(change.removed, ["m1", "m2"]);
        assert!(change.added.is_empty() && change.text.is_none());
    }

    #[test]
    fn timers_must_be_read_before_they_change() {
        let commands = vec![Command::Disarm(1)];
        let found = change(&commit(&[], &[], commands), false, None, 5);
        assert_eq!(found, Err(Unplanned::Unknown));
        assert_eq!(
            change(&commit(&[], &[], Vec::new()), false, None, 5),
            Ok(None)
        );
    }
}
