//! Sessions of signed-in visitors. A browser has only a random name; the token that belongs to it stays
//! here, in memory. After a restart of the process, or if another process answers, visitors sign in again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::provider::{Granted, Renewal};

/// How long a session lasts, and how long it may be idle.
const LASTS: Duration = Duration::from_secs(12 * 60 * 60);
const IDLE: Duration = Duration::from_secs(60 * 60);
/// The maximum number of sessions: beyond it, the one that was idle longest is removed.
const SESSIONS_MAX: usize = 10_000;
/// How long before its end a token is renewed; half of its time if that is shorter.
const AHEAD: Duration = Duration::from_secs(30);
/// How long the provider isn't asked again after it didn't answer.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

struct Session {
    token: String,
    began: Instant,
    seen: Instant,
    /// For tokens of a provider.
    grant: Option<Grant>,
}

struct Grant {
    renewal: Option<Renewal>,
    /// When the token is to be renewed.
    due: Instant,
    /// Held by the request that renews the token.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The token of a session, and how to renew it if that is due.
pub struct Found {
    pub token: String,
    pub due: Option<(Renewal, Arc<tokio::sync::Mutex<()>>)>,
}

/// A session that has ended.
#[derive(Debug, PartialEq)]
pub struct Ended {
    /// The visitor signed in at the provider.
    pub is_of_provider: bool,
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.began) > LASTS || now.duration_since(self.seen) > IDLE
    }
}

impl Grant {
    fn new(granted: &Granted, turn: Arc<tokio::sync::Mutex<()>>, now: Instant) -> Grant {
        Grant {
            renewal: granted.renewal.clone(),
            due: now + granted.lasts - AHEAD.min(granted.lasts / 2),
            turn,
        }
    }
}

/// The key of a session: a hash, so that memory contains no usable names.
fn key(name: &str) -> [u8; 32] {
    *blake3::hash(name.as_bytes()).as_bytes()
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token of a session that isn't over.
    pub fn find(&self, name: &str, now: Instant) -> Option<Found> {
        let mut all = self.lock();
        let session = all.get_mut(&key(name))?;
        if session.is_over(now) {
            all.remove(&key(name));
            return None;
        }
        session.seen = now;
        let due = session.grant.as_ref().filter(|grant| grant.due <= now);
        let due = due.and_then(|grant| Some((grant.renewal.clone()?, grant.turn.clone())));
        Some(Found {
            token: session.token.clone(),
            due,
        })
    }

    /// With a token that the visitor has.
    pub fn begin(&self, name: &str, token: String, now: Instant) {
        self.insert(name, token, None, now);
    }

    /// With a token of the provider.
    pub fn begin_granted(&self, name: &str, granted: Granted, now: Instant) {
        let grant = Grant::new(&granted, Arc::default(), now);
        self.insert(name, granted.token, Some(grant), now);
    }

    fn insert(&self, name: &str, token: String, grant: Option<Grant>, now: Instant) {
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
            grant,
        };
        all.insert(key(name), session);
    }

    /// Replaces the token of a session that hasn't ended meanwhile.
    pub fn renew(&self, name: &str, granted: Granted, now: Instant) {
        if let Some(session) = self.lock().get_mut(&key(name))
            && let Some(grant) = &session.grant
        {
            session.grant = Some(Grant::new(&granted, grant.turn.clone(), now));
            session.token = granted.token;
        }
    }

    /// The token could not be renewed: `again` says whether that is tried again later.
    pub fn not_renewed(&self, name: &str, again: bool, now: Instant) {
        if let Some(session) = self.lock().get_mut(&key(name))
            && let Some(grant) = &mut session.grant
        {
            grant.due = now + PAUSE;
            if !again {
                grant.renewal = None;
            }
        }
    }

    pub fn end(&self, name: &str) -> Option<Ended> {
        let session = self.lock().remove(&key(name))?;
        Some(Ended {
            is_of_provider: session.grant.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(sessions: &Sessions, name: &str, now: Instant) -> Option<String> {
        sessions.find(name, now).map(|found| found.token)
    }

    #[test]
    fn a_session_ends_by_itself_and_their_number_is_bounded() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        sessions.begin("a", "token".to_owned(), now);
        assert_eq!(token(&sessions, "b", now), None);
        let mut at = now;
        for _ in 0..12 {
            assert_eq!(token(&sessions, "a", at).as_deref(), Some("token"));
            at += IDLE;
        }
        assert_eq!(
            token(&sessions, "a", at + IDLE),
            None,
            "it has lasted long enough"
        );
        sessions.begin("a", "token".to_owned(), now);
        assert_eq!(token(&sessions, "a", now + IDLE * 2), None, "it was idle");
        for number in 0..=SESSIONS_MAX {
            let at = now + Duration::from_nanos(number as u64);
            sessions.begin(&number.to_string(), "token".to_owned(), at);
        }
        assert_eq!(sessions.lock().len(), SESSIONS_MAX);
        assert_eq!(token(&sessions, "0", now), None, "the oldest goes");
        sessions.end("1");
        assert_eq!(token(&sessions, "1", now), None);
    }

    fn granted(token: &str) -> Granted {
        Granted {
            token: token.to_owned(),
            lasts: Duration::from_secs(300),
            renewal: Some(Renewal {
                refresh_token: format!("{token}-refresh"),
                subject: "ada".to_owned(),
            }),
        }
    }

    #[test]
    fn a_token_of_a_provider_is_renewed_before_its_end() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let due = |at: Instant| {
            let due = sessions.find("a", at).unwrap().due;
            due.map(|(renewal, _)| renewal.refresh_token)
        };
        sessions.begin_granted("a", granted("one"), now);
        assert_eq!(due(now), None);
        let later = now + Duration::from_secs(270);
        assert_eq!(due(later).as_deref(), Some("one-refresh"));
        sessions.not_renewed("a", true, later);
        assert_eq!(due(later), None, "the provider isn't asked for a while");
        assert!(due(later + PAUSE).is_some());
        sessions.renew("a", granted("two"), later);
        assert_eq!(due(later), None);
        assert_eq!(token(&sessions, "a", later).as_deref(), Some("two"));
        let later = later + Duration::from_secs(270);
        assert_eq!(due(later).as_deref(), Some("two-refresh"));
        sessions.not_renewed("a", false, later);
        assert_eq!(due(later + PAUSE), None, "a refusal is final");
        let ended = sessions.end("a").unwrap();
        // It has ended meanwhile.
        sessions.renew("a", granted("three"), later);
        assert!(sessions.find("a", later).is_none());
        sessions.begin("b", "static".to_owned(), now);
        assert!(ended.is_of_provider && !sessions.end("b").unwrap().is_of_provider);
    }
}
