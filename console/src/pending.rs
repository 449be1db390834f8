//! Sign-ins at the provider that have begun. Each can be finished once, by the browser that began it, within five
//! minutes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::provider::Flow;

/// How long a visitor may take at the provider.
const LASTS: Duration = Duration::from_secs(5 * 60);
/// The maximum number of sign-ins. Beyond it, the address with most of them loses its oldest one, so that nobody can
/// keep others from signing in.
const PENDING_MAX: usize = 4_096;

#[derive(Default)]
pub struct Pending(Mutex<HashMap<[u8; 32], Begun>>);

/// A sign-in under way.
pub struct Begun {
    pub flow: Flow,
    /// The page that was wanted.
    pub next: String,
    /// A hash of the browser's name.
    browser: blake3::Hash,
    from: Option<IpAddr>,
    at: Instant,
}

/// The key of a sign-in.
fn key(state: &str) -> [u8; 32] {
    *blake3::hash(state.as_bytes()).as_bytes()
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `browser`: its name; `from`: its address, if that is known.
    pub fn begin(
        &self,
        browser: &str,
        from: Option<IpAddr>,
        flow: Flow,
        next: String,
        now: Instant,
    ) {
        let mut all = self.lock();
        if all.len() >= PENDING_MAX {
            all.retain(|_, begun| !begun.is_over(now));
        }
        if all.len() >= PENDING_MAX {
            let given_up = given_up(&all);
            given_up.and_then(|key| all.remove(&key));
        }
        let begun = Begun {
            next,
            browser: blake3::hash(browser.as_bytes()),
            from,
            at: now,
            flow,
        };
        all.insert(key(&begun.flow.state), begun);
    }

    /// The sign-in of this state, if this browser has begun it. It cannot be taken again.
    pub fn take(&self, state: &str, browser: &str, now: Instant) -> Option<Begun> {
        let (mut all, key) = (self.lock(), key(state));
        let begun = all.get(&key)?;
        // Hashes are compared in constant time.
        if begun.browser != blake3::hash(browser.as_bytes()) {
            return None;
        }
        all.remove(&key).filter(|begun| !begun.is_over(now))
    }
}

impl Begun {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.at) > LASTS
    }
}

/// The oldest sign-in of the address with most of them.
fn given_up(all: &HashMap<[u8; 32], Begun>) -> Option<[u8; 32]> {
    let mut counts: HashMap<Option<IpAddr>, usize> = HashMap::new();
    for begun in all.values() {
        *counts.entry(begun.from).or_default() += 1;
    }
    let busiest = counts.into_iter().max_by_key(|(_, count)| *count);
    let (from, _) = busiest?;
    let those = all.iter().filter(|(_, begun)| begun.from == from);
    those.min_by_key(|(_, begun)| begun.at).map(|(key, _)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(pending: &Pending, state: &str, from: &str, now: Instant) {
        let flow = Flow {
            state: state.to_owned(),
            nonce: "n".to_owned(),
            verifier: "v".to_owned(),
            callback: "http://127.0.0.1/".to_owned(),
        };
        let next = "/console/events".to_owned();
        pending.begin("browser", from.parse().ok(), flow, next, now);
    }

    #[test]
    fn one_browser_once_and_in_time() {
        let (pending, now) = (Pending::default(), Instant::now());
        begin(&pending, "a", "10.0.0.1", now);
        assert!(pending.take("b", "browser", now).is_none());
        assert!(pending.take("a", "another", now).is_none());
        let begun = pending.take("a", "browser", now + LASTS).unwrap();
        assert_eq!(
            (begun.next.as_str(), begun.flow.nonce.as_str()),
            ("/console/events", "n")
        );
        assert!(pending.take("a", "browser", now).is_none(), "a second time");
        begin(&pending, "a", "10.0.0.1", now);
        let late = now + LASTS + Duration::from_millis(1);
        assert!(pending.take("a", "browser", late).is_none(), "too late");
    }

    #[test]
    fn who_begins_many_takes_no_place_of_others() {
        let (pending, now) = (Pending::default(), Instant::now());
        begin(&pending, "early", "10.0.0.1", now);
        for number in 0..PENDING_MAX {
            let at = now + Duration::from_micros(number as u64);
            begin(&pending, &number.to_string(), "10.0.0.2", at);
        }
        assert_eq!(pending.lock().len(), PENDING_MAX);
        assert!(pending.take("0", "browser", now).is_none());
        assert!(pending.take("1", "browser", now).is_some());
        assert!(pending.take("early", "browser", now).is_some());
        // Those that are over go first.
        begin(&pending, "x", "10.0.0.2", now);
        begin(&pending, "y", "10.0.0.2", now);
        begin(&pending, "z", "10.0.0.2", now + LASTS * 2);
        assert_eq!(pending.lock().len(), 1);
    }
}
