//! Embedded backends: in memory, and durable in one folder.
//!
//! [`Embedded`] is the store, the event log and the definitions of one process. Everything is in memory behind one
//! lock. If there is a folder, every change is also written there, and a call returns only when its changes are on
//! disk. `docs/adr/0004-embedded-store.md` explains why.
//!
//! Invariants: the lock is never held across an await; every collection that is iterated has a defined order, so equal
//! inputs give equal runs; nothing here reads the clock, except that changes on disk carry the time for messages.

mod attributes;
mod audit;
mod batched;
mod batches;
mod branch;
mod buckets;
mod clock;
mod commit;
mod decide;
mod definitions;
mod deliver;
mod disk;
mod events;
mod fingerprint;
mod forks;
mod inbox;
mod joins;
mod journal;
mod key;
mod known;
mod lifecycle;
mod listing;
mod migration;
mod options;
mod page;
mod pending_starts;
mod queue;
mod record;
mod recorded;
mod retained;
mod sets;
mod shelves;
mod state;
mod store;
mod subscriptions;
mod trends;
mod views;
mod waits;
mod watchers;
mod watching;
mod weight;

use std::path::Path;
use std::sync::Mutex;

use swirl_ports::{Error, Result};

pub use clock::SystemClock;
#[doc(hidden)]
pub use disk::raw;
use journal::{Journal, redeem};
pub use options::{OpenError, Options};
pub use queue::MemoryQueue;
use state::State;

/// The state of one process: in memory, or also in a folder.
pub struct Embedded {
    state: Mutex<State>,
    journal: Option<Journal>,
}

impl Embedded {
    /// A store in memory, whose content ends with the process.
    pub fn memory() -> Embedded {
        Embedded::memory_with(Options::default())
    }

    pub fn memory_with(options: Options) -> Embedded {
        let state = State {
            options,
            ..State::default()
        };
        Embedded {
            state: Mutex::new(state),
            journal: None,
        }
    }

    /// Sets the name that distinguishes this store from all others, unless it has one. Returns the store's name.
    ///
    /// # Errors
    /// The name could not be written.
    pub async fn installation(&self, drawn: String) -> Result<String> {
        self.write(|state| {
            if state.installation.is_none() {
                state.touch(key::Key::Installation);
            }
            state.installation.get_or_insert(drawn).clone()
        })
        .await
    }

    /// Opens a folder, creating it if necessary, and reads its content. Only one process at a time may have a folder
    /// open. Dropping the store writes pending changes and releases the folder.
    pub fn open(
        folder: impl AsRef<Path>,
        options: Options,
    ) -> std::result::Result<Embedded, OpenError> {
        let mut state = State {
            options,
            durable: true,
            ..State::default()
        };
        let journal = Journal::open(folder.as_ref(), &mut state)?;
        state.restored()?;
        // Later changes reach the disk after this one.
        drop(journal.write(state.take_writes()?));
        Ok(Embedded {
            state: Mutex::new(state),
            journal: Some(journal),
        })
    }

    /// Returns whether any instance waits for an event.
    ///
    /// # Errors
    /// The store has stopped because its disk refused a write.
    pub fn has_waits(&self) -> Result<bool> {
        self.read(|state| !state.subscriptions.is_empty())
    }

    fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Reads the state, or changes parts of it that aren't stored (leases).
    fn read<T>(&self, look: impl FnOnce(&mut State) -> T) -> Result<T> {
        if let Some(journal) = &self.journal {
            journal.check()?;
        }
        let (result, wakers, watchers) = {
            let mut state = self.state.lock().map_err(|_| stopped())?;
            let result = look(&mut state);
            let watchers = state.watchers.take_due();
            (result, std::mem::take(&mut state.wakers), watchers)
        };
        wakers.into_iter().for_each(std::task::Waker::wake);
        watchers::notify(watchers);
        Ok(result)
    }

    /// Changes the state. Returns when this change, and every change that it may depend on, is on disk.
    async fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> Result<T> {
        let Some(journal) = &self.journal else {
            return self.read(change);
        };
        let (result, ticket, watchers) = self.read(|state| {
            let result = change(state);
            let watchers = state.watchers.take_due();
            let ticket = match state.take_writes() {
                // Passed on while the lock is held, so that the journal has the order of the changes.
                Ok(writes) => Ok(journal.write(writes)),
                Err(error) => {
                    journal.fail(error.clone());
                    Err(error)
                }
            };
            (result, ticket, watchers)
        })?;
        redeem(ticket?).await?;
        watchers::notify(watchers);
        Ok(result)
    }
}

/// A change was interrupted half-way, so the state in memory can't be trusted.
fn stopped() -> Error {
    Error::Unavailable(
        "it stopped after an internal error; restart it to read the stored state again".to_owned(),
    )
}
