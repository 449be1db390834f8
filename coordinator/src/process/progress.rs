//! The progress of the reader: which events have been processed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use swirl_ports::StreamPlace;
use tokio::sync::Notify;

/// The number of events that may be read beyond an unprocessed one. After a crash the next reader reads them again, and
/// the store must still know which of them were processed.
const AFTER_MAX: u64 = 10_000;

/// Shared by all events in progress.
pub struct Progress {
    stream: String,
    state: Mutex<State>,
    moved: Notify,
}

#[derive(Default)]
struct State {
    /// The last event that was read, and when it was published.
    read: Option<(u64, i64)>,
    /// The unprocessed events, and when each was published.
    under_way: BTreeMap<u64, i64>,
    done: u64,
}

impl Progress {
    /// `after`: the event before the first one that is read, and when it was published, if both are known.
    pub fn new(stream: &str, after: Option<(u64, i64)>) -> Progress {
        Progress {
            stream: stream.to_owned(),
            state: Mutex::new(State {
                read: after,
                ..State::default()
            }),
            moved: Notify::new(),
        }
    }

    /// Records that an event was read. Events are read in the order of the stream.
    pub fn begin(&self, sequence: u64, at_ms: i64) {
        let mut state = self.state();
        state.read = Some((sequence, at_ms));
        state.under_way.insert(sequence, at_ms);
    }

    pub fn end(&self, sequence: u64) {
        let mut state = self.state();
        state.under_way.remove(&sequence);
        state.done += 1;
        drop(state);
        self.moved.notify_waiters();
    }

    /// The number of events processed since the beginning.
    pub fn done(&self) -> u64 {
        self.state().done
    }

    /// The position to continue from after a crash; `None` if it isn't known yet.
    pub fn place(&self) -> Option<StreamPlace> {
        let state = self.state();
        let (read, read_at) = state.read?;
        let (done, at_ms) = match state.under_way.first_key_value() {
            Some((first, at)) => (first - 1, *at),
            None => (read, read_at),
        };
        Some(StreamPlace {
            stream: self.stream.clone(),
            done,
            at_ms,
            read,
        })
    }

    /// Waits until another event may be read.
    pub async fn room(&self) {
        loop {
            let moved = self.moved.notified();
            if self.has_room() {
                return;
            }
            moved.await;
        }
    }

    fn has_room(&self) -> bool {
        let state = self.state();
        let first = state.under_way.first_key_value();
        let (Some((read, _)), Some((first, _))) = (state.read, first) else {
            return true;
        };
        read - first < AFTER_MAX
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_position_is_before_the_first_unprocessed_event() {
        let progress = Progress::new("s", None);
        assert_eq!(progress.place(), None);
        let progress = Progress::new("s", Some((4, 40)));
        let place = || {
            let place = progress.place().unwrap();
            (place.done, place.at_ms, place.read)
        };
        assert_eq!(place(), (4, 40, 4));
        for sequence in [5, 7, 8] {
            progress.begin(sequence, 10 * i64::try_from(sequence).unwrap());
        }
        progress.end(7);
        assert_eq!(place(), (4, 50, 8), "later events are read again");
        progress.end(5);
        assert_eq!(place(), (7, 80, 8));
        progress.end(8);
        assert_eq!((place(), progress.done()), ((8, 80, 8), 3));
    }

    #[test]
    fn an_unprocessed_event_limits_the_events_read_after_it() {
        let progress = Progress::new("s", None);
        progress.begin(1, 0);
        for sequence in 2..=AFTER_MAX {
            progress.begin(sequence, 0);
            progress.end(sequence);
        }
        assert!(progress.room().now_or_never().is_some());
        progress.begin(AFTER_MAX + 1, 0);
        assert!(progress.room().now_or_never().is_none());
        progress.end(1);
        assert!(progress.room().now_or_never().is_some());
    }
}
