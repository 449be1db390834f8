//! Connections that several calls share.
//!
//! A broker or a balancer may close a kept connection while a message is on its way, and a machine that loses power
//! closes nothing. So a call that fails since a kept connection broke is made once more, on a new one; and after a call
//! that ended without an answer, the next one makes a new connection.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::{CallError, CallErrorKind};

tokio::task_local! {
    static USE: Arc<Mutex<Used>>;
}

/// A connection that a call has used.
struct Used {
    connections: Use,
    /// The mark of its connection.
    suspect: Option<Suspect>,
}

/// Set if a call on a connection ended without an answer.
type Suspect = Arc<AtomicBool>;

/// Marks the connection of a call that is dropped: it ran into its time limit, or was cancelled.
struct Awaited(Arc<Mutex<Used>>);

impl Drop for Awaited {
    fn drop(&mut self) {
        if let Some(suspect) = locked(&self.0).suspect.take() {
            suspect.store(true, Ordering::Relaxed);
        }
    }
}

fn locked(used: &Mutex<Used>) -> MutexGuard<'_, Used> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connections that a call uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Any,
    /// It has used a kept one.
    Kept,
    /// It may only use a new one.
    New,
}

/// Makes a call, and once more on a new connection if a kept one broke.
pub(super) async fn renewing<T, F>(call: impl Fn() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let (result, used) = using(Use::Any, call()).await;
    match result {
        Err(error) if error.kind == CallErrorKind::Connection && used == Use::Kept => {
            tracing::debug!(%error, "a kept connection broke");
            using(Use::New, call()).await.0
        }
        result => result,
    }
}

/// Makes a call, and returns which connections it has used.
async fn using<T, F>(connections: Use, call: F) -> (Result<T, CallError>, Use)
where
    F: Future<Output = Result<T, CallError>>,
{
    let used = Arc::new(Mutex::new(Used {
        connections,
        suspect: None,
    }));
    let awaited = Awaited(used.clone());
    let result = USE.scope(used.clone(), call).await;
    let mut used = locked(&used);
    if !matches!(&result, Err(error) if error.kind == CallErrorKind::Timeout) {
        used.suspect = None;
    }
    let connections = used.connections;
    drop(used);
    drop(awaited);
    (result, connections)
}

/// Whether the call may use a kept connection.
pub(super) fn may_reuse() -> bool {
    USE.try_with(|used| locked(used).connections != Use::New)
        .unwrap_or(true)
}

/// The call uses a kept connection.
pub(super) fn reused() {
    let _ = USE.try_with(|used| locked(used).connections = Use::Kept);
}

/// The maximum number of kept connections; beyond that, the least recently used one is closed.
const CONNECTIONS_MAX: usize = 64;

/// One connection per server and login.
pub(super) struct Kept<K, C> {
    slots: Mutex<HashMap<K, Slot<C>>>,
}

/// Concurrent callers that need the same connection wait until one of them has made it.
type ConnectionCell<C> = Arc<tokio::sync::Mutex<Option<C>>>;

struct Slot<C> {
    place: ConnectionCell<C>,
    suspect: Suspect,
    used: Instant,
}

impl<K, C> Default for Kept<K, C> {
    fn default() -> Kept<K, C> {
        Kept {
            slots: Mutex::default(),
        }
    }
}

impl<K: Clone + Eq + Hash, C: Clone> Kept<K, C> {
    /// Returns the kept connection if it is still alive, otherwise a new one.
    ///
    /// # Errors
    /// The errors of `connect`. No connection is kept then.
    pub(super) async fn get<E, A: Future<Output = bool>>(
        &self,
        key: &K,
        is_alive: impl FnOnce(C) -> A,
        connect: impl Future<Output = Result<C, E>>,
    ) -> Result<C, E> {
        let (place, suspect) = self.place(key);
        let mut place = place.lock().await;
        let is_suspect = suspect.swap(false, Ordering::Relaxed);
        let _ = USE.try_with(|used| locked(used).suspect = Some(suspect));
        if let Some(connection) = place.take()
            && !is_suspect
            && may_reuse()
            && is_alive(connection.clone()).await
        {
            reused();
            *place = Some(connection.clone());
            return Ok(connection);
        }
        let connection = connect.await?;
        *place = Some(connection.clone());
        Ok(connection)
    }

    fn place(&self, key: &K) -> (ConnectionCell<C>, Suspect) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if !slots.contains_key(key) && slots.len() >= CONNECTIONS_MAX {
            let oldest = slots.iter().min_by_key(|(_, slot)| slot.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                slots.remove(&oldest);
            }
        }
        let slot = slots.entry(key.clone()).or_insert_with(|| Slot {
            place: ConnectionCell::default(),
            suspect: Suspect::default(),
            used: Instant::now(),
        });
        slot.used = Instant::now();
        (slot.place.clone(), slot.suspect.clone())
    }
}

impl<K, C> fmt::Debug for Kept<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn live_connections_are_reused_and_dead_ones_replaced() {
        let kept: Kept<&str, u32> = Kept::default();
        let get = async |alive: bool, new: Result<u32, ()>| {
            kept.get(&"a", |_| async { alive }, async { new }).await
        };
        assert_eq!(get(true, Ok(1)).await, Ok(1));
        assert_eq!(get(true, Ok(2)).await, Ok(1));
        assert_eq!(get(false, Err(())).await, Err(()));
        assert_eq!(get(true, Ok(3)).await, Ok(3));
    }

    #[tokio::test]
    async fn a_call_on_a_kept_connection_that_broke_is_made_once_more() {
        let kept: Kept<&str, u32> = Kept::default();
        let made = Cell::new(0);
        let calls = Cell::new(0);
        let call = async |works: &dyn Fn(u32) -> bool| {
            let once = || async {
                calls.set(calls.get() + 1);
                let connect = async {
                    made.set(made.get() + 1);
                    Ok::<_, CallError>(made.get())
                };
                let connection = kept.get(&"a", |_| async { true }, connect).await?;
                match works(connection) {
                    true => Ok(connection),
                    false => Err(CallError::new(CallErrorKind::Connection, "broken")),
                }
            };
            renewing(once).await.map_err(|error| error.kind)
        };
        let broken = Err(CallErrorKind::Connection);
        // A new connection that breaks is an error at once.
        assert_eq!((call(&|_| false).await, calls.take()), (broken, 1));
        assert_eq!((call(&|_| true).await, calls.take()), (Ok(1), 1));
        assert_eq!((call(&|it| it > 1).await, calls.take()), (Ok(2), 2));
        assert_eq!((call(&|_| true).await, calls.take()), (Ok(2), 1));
        assert_eq!((call(&|_| false).await, calls.take()), (broken, 2));
    }

    #[tokio::test]
    async fn after_a_call_without_an_answer_the_connection_is_made_again() {
        let kept: Kept<&str, u32> = Kept::default();
        let made = Cell::new(0);
        let call = async |is_answered: bool| {
            let once = || async {
                let connect = async {
                    made.set(made.get() + 1);
                    Ok::<_, CallError>(made.get())
                };
                let connection = kept.get(&"a", |_| async { true }, connect).await?;
                if !is_answered {
                    std::future::pending::<()>().await;
                }
                Ok::<_, CallError>(connection)
            };
            let limit = std::time::Duration::from_millis(1);
            tokio::time::timeout(limit, renewing(once)).await.ok()
        };
        let used = async |is_answered: bool| call(is_answered).await.map(|it| it.ok().unwrap());
        assert_eq!(used(true).await, Some(1));
        assert_eq!(used(true).await, Some(1));
        assert_eq!(used(false).await, None);
        assert_eq!(used(true).await, Some(2));
        assert_eq!(used(true).await, Some(2));
    }

    #[tokio::test]
    async fn the_least_recently_used_connection_is_closed() {
        let kept: Kept<usize, usize> = Kept::default();
        for key in 0..=CONNECTIONS_MAX {
            let made: Result<usize, ()> =
                kept.get(&key, |_| async { true }, async { Ok(key) }).await;
            assert_eq!(made, Ok(key));
        }
        assert_eq!(kept.slots.lock().unwrap().len(), CONNECTIONS_MAX);
        let again: Result<usize, ()> = kept.get(&0, |_| async { true }, async { Ok(100) }).await;
        assert_eq!(again, Ok(100));
        let last = CONNECTIONS_MAX;
        let same: Result<usize, ()> = kept.get(&last, |_| async { true }, async { Ok(100) }).await;
        assert_eq!(same, Ok(last));
    }
}
