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
