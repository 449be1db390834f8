//! The timers of a scope that a commit arms and disarms.

use swirl_model::event::Command;
use swirl_model::scope::Timer;
use swirl_ports::Commit;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct TimerChange {
    /// The numbers of armed timers that are disarmed.
    pub disarmed: Vec<u32>,
    /// New timers, in order.
    pub armed: Vec<Timer>,
}

/// Timers that fired too early for the engine: their input was consumed, and the scope still has them.
fn again(commit: &Commit) -> impl Iterator<Item = &Timer> {
    let is_consumed = |seq: u32| {
        let mut fired = commit
            .consumed
            .iter()
            .filter_map(|id| id.strip_prefix("timer-"));
        fired.any(|number| number.parse() == Ok(seq))
    };
    let timers = commit.scope.timers.iter();
    timers.filter(move |timer| !commit.consumed.is_empty() && is_consumed(timer.seq))
}

/// Whether the commit changes timers, if its scope stays.
pub(crate) fn are_changed(commit: &Commit) -> bool {
    let is_about_timers =
        |command: &Command| matches!(command, Command::Arm(_) | Command::Disarm(_));
    commit.commands.iter().any(is_about_timers) || again(commit).next().is_some()
}

/// `known`: the numbers of the timers that are armed.
pub(crate) fn change(commit: &Commit, gone: bool, known: &[u32]) -> TimerChange {
    if gone {
        return TimerChange {
            disarmed: known.to_vec(),
            armed: Vec::new(),
        };
    }
    let mut change = TimerChange::default();
    for timer in again(commit) {
        change.arm(timer, known);
    }
    for command in &commit.commands {
        match command {
            Command::Arm(timer) => change.arm(timer, known),
            Command::Disarm(seq) => change.disarm(*seq, known),
            _ => {}
        }
    }
    change
}

impl TimerChange {
    fn arm(&mut self, timer: &Timer, known: &[u32]) {
        self.disarm(timer.seq, known);
        self.armed.push(*timer);
    }

    fn disarm(&mut self, seq: u32, known: &[u32]) {
        self.armed.retain(|timer| timer.seq != seq);
        if known.contains(&seq) && !self.disarmed.contains(&seq) {
            self.disarmed.push(seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use swirl_contract::kit;
    use swirl_model::event::Input;
    use swirl_model::ids::{InstanceId, ScopeRef};
    use swirl_model::scope::Scope;
    use swirl_ports::Lease;

    use super::*;

    fn commit(timers: &[u32], consumed: &[u32], commands: Vec<Command>) -> Commit {
        let mut scope: Scope = kit::new("a").root;
        scope.timers = timers.iter().map(|seq| kit::timer(*seq, 9)).collect();
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

    #[test]
    fn a_new_timer_replaces_the_previous_one() {
        let commands = vec![Command::Disarm(1), Command::Arm(kit::timer(2, 7))];
        let found = change(&commit(&[2], &[], commands), false, &[1]);
        assert_eq!(
            (found.disarmed, found.armed),
            (vec![1], vec![kit::timer(2, 7)])
        );
        let again = change(
            &commit(&[], &[], vec![Command::Arm(kit::timer(1, 8))]),
            false,
            &[1],
        );
        assert_eq!(
            (again.disarmed, again.armed),
            (vec![1], vec![kit::timer(1, 8)])
        );
    }

    #[test]
    fn a_timer_armed_and_disarmed_at_once_is_nothing_new() {
        let commands = vec![Command::Arm(kit::timer(2, 7)), Command::Disarm(2)];
        let found = change(&commit(&[], &[], commands), false, &[]);
        assert_eq!(found, TimerChange::default());
    }

    #[test]
    fn a_timer_that_fired_too_early_is_armed_again() {
        let commit = commit(&[1, 11], &[1], Vec::new());
        assert!(are_changed(&commit));
        assert_eq!(change(&commit, false, &[]).armed, [kit::timer(1, 9)]);
    }

    #[test]
    fn a_scope_that_is_gone_has_no_timers() {
        let commands = vec![Command::Arm(kit::timer(3, 7))];
        let found = change(&commit(&[], &[], commands), true, &[1, 2]);
        assert_eq!((found.disarmed, found.armed), (vec![1, 2], Vec::new()));
    }
}
