//! What the watch of the connections found: a process that cannot recover is known.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// A watch that hasn't looked for this long has stopped.
const STOPPED: Duration = Duration::from_secs(60);

/// What the watch found.
pub(crate) struct Watched {
    begun: Instant,
    /// When it last looked, in milliseconds since `begun`.
    looked: AtomicU64,
    stuck: Mutex<Option<String>>,
    /// Counts the connections that were given up.
    renewals: watch::Sender<u64>,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched {
            begun: Instant::now(),
            looked: AtomicU64::new(0),
            stuck: Mutex::default(),
            renewals: watch::Sender::new(0),
        }
    }
}

impl Watched {
    /// The time since it began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The watch has looked at connections, of which so many were given up so far.
    pub fn looked(&self, renewals: u64) {
        self.renewals.send_if_modified(|known| {
            let is_new = *known != renewals;
            *known = renewals;
            is_new
        });
        let now = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.looked.store(now, Ordering::Relaxed);
    }

    pub fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    pub fn note(&self, stuck: Option<String>) {
        *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) = stuck;
    }

    /// The reason why this process cannot recover by itself, `now` after the beginning.
    pub fn beyond_recovery(&self, now: Duration) -> Option<String> {
        let looked = Duration::from_millis(self.looked.load(Ordering::Relaxed));
        if now.saturating_sub(looked) > STOPPED {
            return Some("the watch of the connections to Redis has stopped".to_owned());
        }
        let stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        stuck.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_watch_stopped_is_beyond_recovery() {
        let watched = Watched::default();
        let moment = Duration::from_secs(1);
        let late = STOPPED + moment;
        assert_eq!(watched.beyond_recovery(STOPPED), None);
        assert!(watched.beyond_recovery(late).is_some());
        watched
            .looked
            .store(moment.as_millis() as u64, Ordering::Relaxed);
        assert_eq!(watched.beyond_recovery(late), None);
        watched.note(Some("stuck".to_owned()));
        assert_eq!(watched.beyond_recovery(late).as_deref(), Some("stuck"));
    }
}
