//! Records of events that wait for others are changed one after another in a process. Each change reads and writes the
//! whole record, so changes at the same time would only repeat each other's work.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swirl_ports::{Error, Result};
use tokio::sync::{Mutex as Turn, OwnedMutexGuard, Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::connect::damaged;
use crate::line::{LARGE, On};

/// How many large records are changed at a time.
const LARGE_AT_ONCE: usize = 2;
/// An event that waits longer is tried again later.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// How many large ones are remembered.
const REMEMBERED_MAX: usize = 1_000;

pub(crate) struct Turns {
    all: Mutex<HashMap<String, Arc<Record>>>,
    large: Semaphore,
}

#[derive(Default)]
struct Record {
    turn: Arc<Turn<()>>,
    /// The size when it was last read or written.
    bytes: AtomicUsize,
}

/// The right of a task to change a record.
pub(super) struct InTurn<'a> {
    turns: &'a Turns,
    digest: &'a str,
    record: Arc<Record>,
    _turn: OwnedMutexGuard<()>,
    _large: Option<SemaphorePermit<'a>>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            all: Mutex::default(),
            large: Semaphore::new(LARGE_AT_ONCE),
        }
    }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Record>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other task of this process changes the record.
    pub(super) async fn of<'a>(&'a self, digest: &'a str) -> Result<InTurn<'a>> {
        let in_turn = async {
            let record = self.lock().entry(digest.to_owned()).or_default().clone();
            let turn = record.turn.clone().lock_owned().await;
            let large = match record.is_large() {
                true => self.large.acquire().await.ok(),
                false => None,
            };
            InTurn {
                turns: self,
                digest,
                record,
                _turn: turn,
                _large: large,
            }
        };
        timeout(WAIT_MAX, in_turn).await.map_err(|_| {
            Error::Unavailable("too many events come for one set of events at a time".to_owned())
        })
    }
}

impl Record {
    fn is_large(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= LARGE
    }
}

impl InTurn<'_> {
    /// The connection for the record with the size that it is known to have.
    pub fn on(&self) -> On {
        match self.record.is_large() {
            true => On::Aside,
            false => On::Shared,
        }
    }

    pub fn has(&self, bytes: usize) {
        self.record.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Works on a record. A large one takes so long that other tasks of the thread would wait.
pub(super) async fn work_on<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if bytes < LARGE {
        return work();
    }
    let done = spawn_blocking(work).await;
    done.map_err(|error| damaged("events that wait for others", error))?
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        let mut all = self.turns.lock();
        let is_awaited = |record: &Arc<Record>| Arc::strong_count(record) > 2;
        if !self.record.is_large() && !is_awaited(&self.record) {
            all.remove(self.digest);
        }
        if all.len() > REMEMBERED_MAX {
            all.retain(|_, record| Arc::strong_count(record) > 1);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// A task that holds its turn for ever, as with a server that doesn't answer, doesn't hold others for ever.
    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_turn_has_a_limit() {
        let turns = Turns::default();
        let _first = turns.of("a").await.unwrap();
        let refused = timeout(2 * WAIT_MAX, turns.of("a")).await.unwrap();
        assert!(matches!(refused, Err(Error::Unavailable(_))));
    }

    #[tokio::test]
    async fn one_task_after_another_changes_a_record() {
        let turns = Turns::default();
        let first = turns.of("a").await.unwrap();
        let mut second = Box::pin(turns.of("a"));
        assert!((&mut second).now_or_never().is_none());
        drop(turns.of("b").now_or_never().unwrap().unwrap());
        first.has(LARGE);
        drop(first);
        let second = second.await.unwrap();
        assert_eq!(second.on(), On::Aside, "the size is known");
        drop(second);
        let third = turns.of("a").await.unwrap();
        assert_eq!(third.on(), On::Aside, "and remembered");
        third.has(0);
        drop(third);
        assert!(turns.lock().is_empty());
        for number in 0..REMEMBERED_MAX + 10 {
            turns.of(&number.to_string()).await.unwrap().has(LARGE);
        }
        assert!(turns.lock().len() <= REMEMBERED_MAX);
    }
}
