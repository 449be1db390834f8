//! Sessions of signed-in visitors. A browser has only a random name; the token that belongs to it stays
//! here, in memory. After a restart of the process, or at another one, visitors sign in again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a session lasts, and how long it may be idle.
const LASTS: Duration = Duration::from_secs(12 * 60 * 60);
const IDLE: Duration = Duration::from_secs(60 * 60);
/// The maximum number of sessions: beyond it, the one that was idle longest is removed.
const SESSIONS_MAX: usize = 10_000;

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

struct Session {
    token: String,
    began: Instant,
    seen: Instant,
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.began) > LASTS || now.duration_since(self.seen) > IDLE
    }
}

/// The key that a session is kept under: a hash, so that memory contains no usable names.
fn key(name: &str) -> [u8; 32] {
    *blake3::hash(name.as_bytes()).as_bytes()
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token of a session that isn't over.
    pub fn token(&self, name: &str, now: Instant) -> Option<String> {
        let mut all = self.lock();
        let session = all.get_mut(&key(name))?;
        if session.is_over(now) {
            all.remove(&key(name));
            return None;
        }
        session.seen = now;
        Some(session.token.clone())
    }

    pub fn begin(&self, name: &str, token: String, now: Instant) {
        let mut all = self.lock();
        if all.len() >= SESSIONS_MAX {
            all.retain(|_, session| !session.is_over(now));
        }
        if all.len() >= SESSIONS_MAX {
            let idle = all.iter().min_by_key(|(_, session)| session.seen);
            let idle = idle.map(|(key, _)| *key);
            idle.and_then(|idle| all.remove(&idle));
        }
        let session = Session {
            token,
            began: now,
            seen: now,
        };
        all.insert(key(name), session);
    }

    pub fn end(&self, name: &str) {
        self.lock().remove(&key(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_itself_and_their_number_is_bounded() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        sessions.begin("a", "token".to_owned(), now);
        assert_eq!(sessions.token("b", now), None);
        let mut at = now;
        for _ in 0..12 {
            assert_eq!(sessions.token("a", at).as_deref(), Some("token"));
            at += IDLE;
        }
        assert_eq!(
            sessions.token("a", at + IDLE),
            None,
            "it has lasted long enough"
        );
        sessions.begin("a", "token".to_owned(), now);
        assert_eq!(sessions.token("a", now + IDLE * 2), None, "it lay idle");
        for number in 0..=SESSIONS_MAX {
            let at = now + Duration::from_nanos(number as u64);
            sessions.begin(&number.to_string(), "token".to_owned(), at);
        }
        assert_eq!(sessions.lock().len(), SESSIONS_MAX);
        assert_eq!(sessions.token("0", now), None, "the oldest goes");
        sessions.end("1");
        assert_eq!(sessions.token("1", now), None);
    }
}
