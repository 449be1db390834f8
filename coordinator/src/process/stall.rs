//! Tells a queue that only waits from one that is worked on.

use std::time::Duration;

use swirl_nats::Backlog;

/// A queue stands still if it hasn't become shorter for this long, while its first message waits.
const STILL: Duration = Duration::from_secs(30);

/// What was seen of a queue.
#[derive(Debug, Default, Clone, Copy)]
pub struct Stall {
    /// The shortest length since it last became shorter, and when that was.
    shortest: Option<(u64, Duration)>,
    /// The position up to which everything is done, and when it last changed.
    done: Option<(u64, Duration)>,
}

impl Stall {
    /// Takes over an observation at the time `now`. Returns how long the queue hasn't become shorter, if that is too
    /// long. `done` is the position up to which everything is done, if there is one.
    pub fn see(&mut self, backlog: &Backlog, done: Option<u64>, now: Duration) -> Option<Duration> {
        let length = backlog.pending + backlog.unacknowledged;
        let since = match self.shortest {
            Some((shortest, since)) if shortest > 0 && length >= shortest => since,
            _ => {
                self.shortest = Some((length, now));
                now
            }
        };
        let done_since = match (self.done, done) {
            (Some((known, since)), Some(done)) if known == done => Some(since),
            (_, Some(done)) => {
                self.done = Some((done, now));
                Some(now)
            }
            (_, None) => None,
        };
        let still = now.saturating_sub(since);
        let is_first_old = backlog.oldest >= STILL;
        let is_done_old = done_since.is_some_and(|since| now.saturating_sub(since) >= STILL);
        (length > 0 && still >= STILL && (is_first_old || is_done_old)).then_some(still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(pending: u64, unacknowledged: u64, oldest_s: u64) -> Backlog {
        Backlog {
            pending,
            unacknowledged,
            oldest: Duration::from_secs(oldest_s),
        }
    }

    #[test]
    fn a_queue_that_does_not_shrink_is_noticed() {
        let second = Duration::from_secs;
        let mut stall = Stall::default();
        assert_eq!(stall.see(&backlog(0, 0, 0), Some(7), second(0)), None);
        for at in (5..35).step_by(5) {
            let seen = backlog(115, 0, at - 5);
            assert_eq!(stall.see(&seen, Some(7), second(at)), None, "{at}");
        }
        let seen = stall.see(&backlog(115, 0, 40), Some(7), second(45));
        assert_eq!(seen, Some(second(40)));
        // One is done.
        let seen = stall.see(&backlog(114, 0, 45), Some(8), second(50));
        assert_eq!(seen, None);
        // Nothing waits to be read, but what was read isn't done.
        assert_eq!(
            stall.see(&backlog(0, 120, 0), Some(8), second(90)),
            Some(second(40))
        );
        assert_eq!(stall.see(&backlog(0, 0, 0), Some(128), second(95)), None);
    }

    #[test]
    fn a_queue_that_is_worked_on_is_not() {
        let mut stall = Stall::default();
        for at in 0..100 {
            // The same length, but other messages.
            let seen = backlog(3, 2, 1);
            assert_eq!(stall.see(&seen, Some(at), Duration::from_secs(at)), None);
        }
        // Tasks have no position.
        let mut stall = Stall::default();
        for at in 0..100 {
            assert_eq!(
                stall.see(&backlog(3, 2, 1), None, Duration::from_secs(at)),
                None
            );
        }
    }
}
