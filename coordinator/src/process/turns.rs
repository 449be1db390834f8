//! Turns: concurrent work in which items with a common key run one after another.

use std::collections::HashMap;

use tokio::sync::watch::{Receiver, Sender, channel};

/// When this many keys are remembered, unused ones are removed.
const KEYS: usize = 1_024;

/// The last turn of each key.
#[derive(Default)]
pub struct Turns {
    last: HashMap<u64, Receiver<()>>,
    sweep_at: usize,
}

/// A turn, which ends when this is dropped.
pub struct Turn {
    before: Vec<Receiver<()>>,
    _mine: Sender<()>,
}

impl Turns {
    /// Whether a turn with one of these keys is unfinished.
    pub fn any(&self, keys: &[u64]) -> bool {
        let mut turns = keys.iter().filter_map(|key| self.last.get(key));
        turns.any(|turn| turn.has_changed().is_ok())
    }

    /// Returns the next turn, which comes after all earlier ones with one of these keys.
    pub fn next(&mut self, keys: &[u64]) -> Turn {
        if self.last.len() >= self.sweep_at.max(KEYS) {
            self.last.retain(|_, turn| turn.has_changed().is_ok());
            self.sweep_at = 2 * self.last.len();
        }
        let (mine, over) = channel(());
        let before = keys
            .iter()
            .filter_map(|key| self.last.insert(*key, over.clone()));
        Turn {
            before: before.collect(),
            _mine: mine,
        }
    }
}

impl Turn {
    /// Waits for this turn. The future can be dropped and created again.
    pub async fn come(&mut self) {
        while let Some(before) = self.before.last_mut() {
            // An error means that the turn before is over.
            while before.changed().await.is_ok() {}
            self.before.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn is_next(turn: &mut Turn) -> bool {
        turn.come().now_or_never().is_some()
    }

    #[test]
    fn turns_with_the_same_key_run_one_after_another() {
        let mut turns = Turns::default();
        let (mut first, mut other) = (turns.next(&[1]), turns.next(&[2]));
        let (mut both, mut last) = (turns.next(&[1, 2]), turns.next(&[1]));
        assert!(is_next(&mut first) && is_next(&mut other));
        assert!(!is_next(&mut both) && !is_next(&mut last));
        assert!(turns.any(&[3, 1]) && !turns.any(&[3]));
        drop(first);
        assert!(!is_next(&mut both), "it also waits for the second one");
        drop(other);
        assert!(is_next(&mut both) && !is_next(&mut last));
        drop(both);
        assert!(is_next(&mut last));
        drop(last);
        assert!(!turns.any(&[1, 2]));
    }

    #[test]
    fn unused_keys_are_forgotten() {
        let mut turns = Turns::default();
        for key in 0..10 * KEYS as u64 {
            drop(turns.next(&[key]));
        }
        assert!(turns.last.len() <= KEYS);
        // The keys of unfinished turns stay.
        let all: Vec<Turn> = (0..3 * KEYS as u64).map(|key| turns.next(&[key])).collect();
        assert!(!is_next(&mut turns.next(&[7])));
        drop(all);
    }
}
