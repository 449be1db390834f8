//! Connections that several calls share.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The maximum number of kept connections; beyond that, the least recently used one is closed.
const CONNECTIONS_MAX: usize = 64;

/// One connection per server and login.
pub(super) struct Kept<K, C> {
    slots: Mutex<HashMap<K, Slot<C>>>,
}

/// Concurrent callers that need the same connection wait until one of them has made it.
type Place<C> = Arc<tokio::sync::Mutex<Option<C>>>;

struct Slot<C> {
    place: Place<C>,
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
        let place = self.place(key);
        let mut place = place.lock().await;
        if let Some(connection) = place.take()
            && is_alive(connection.clone()).await
        {
            *place = Some(connection.clone());
            return Ok(connection);
        }
        let connection = connect.await?;
        *place = Some(connection.clone());
        Ok(connection)
    }

    fn place(&self, key: &K) -> Place<C> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if !slots.contains_key(key) && slots.len() >= CONNECTIONS_MAX {
            let oldest = slots.iter().min_by_key(|(_, slot)| slot.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                slots.remove(&oldest);
            }
        }
        let slot = slots.entry(key.clone()).or_insert_with(|| Slot {
            place: Place::default(),
            used: Instant::now(),
        });
        slot.used = Instant::now();
        slot.place.clone()
    }
}

impl<K, C> fmt::Debug for Kept<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

#[cfg(test)]
mod tests {
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
