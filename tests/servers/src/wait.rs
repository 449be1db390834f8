//! Waits for conditions, never for a fixed time: no test may depend on the machine's speed.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The time limit for a condition. It measures nothing, but ends a test that would hang.
pub const PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(20);

/// Polls until there is a value.
///
/// # Panics
/// If there is none within [`PATIENCE`]. The message contains `what`, which is formatted only then, so that it can show
/// the current state (`std::fmt::from_fn`).
#[track_caller]
pub fn until<T>(what: impl Display, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "it never comes: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// [`until`] for async code.
///
/// # Panics
/// As [`until`].
pub async fn eventually<T>(what: impl Display, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = tokio::time::Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "it never comes: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_polls_until_there_is_a_value() {
        let mut asked = 0;
        let found = until("the third", || {
            asked += 1;
            (asked == 3).then_some(asked)
        });
        assert_eq!(found, 3);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "it never comes: the end of the world")]
    async fn it_does_not_poll_forever() {
        eventually("the end of the world", async || None::<()>).await;
    }
}
