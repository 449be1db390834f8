//! The answer of `/readyz`: whether the store can be read and changed, and what is limited.
//!
//! The answer comes soon, whatever the process does. While the servers are looked at, it is what was found last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use swirl_ports::{Error, Result};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long a request waits for the servers to be looked at.
const WAIT_MAX: Duration = Duration::from_millis(700);
/// An older result says nothing about the present.
const KNOWN_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
pub struct Readiness {
    /// `None`: those of the request.
    threads: Option<Handle>,
    looks: Arc<Looks>,
}

#[derive(Default)]
struct Looks {
    is_looking: AtomicBool,
    last: watch::Sender<Option<CurrentLimits>>,
}

/// The limits in force, and when they were found.
#[derive(Clone)]
struct CurrentLimits {
    at: Instant,
    limited: Result<Vec<String>>,
}

/// Ends a look, even if it panics.
struct Looking(Arc<Looks>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.is_looking.store(false, Ordering::SeqCst);
    }
}

impl From<Handle> for Readiness {
    /// Looks from these threads.
    fn from(threads: Handle) -> Readiness {
        Readiness {
            threads: Some(threads),
            looks: Arc::default(),
        }
    }
}

impl Readiness {
    /// The limits in force, if the store can be read and changed. One look at a time answers all requests.
    pub async fn answer<L>(&self, look: impl FnOnce() -> L) -> Result<Vec<String>>
    where
        L: Future<Output = Result<Vec<String>>> + Send + 'static,
    {
        let mut found = self.looks.last.subscribe();
        if !self.looks.is_looking.swap(true, Ordering::SeqCst) {
            let looking = Looking(self.looks.clone());
            let look = look();
            let looked = async move {
                let limited = look.await;
                let looks = looking.0.clone();
                // Requests that find it under way still get its result.
                drop(looking);
                let at = Instant::now();
                looks.last.send_replace(Some(CurrentLimits { at, limited }));
            };
            let threads = self.threads.clone();
            threads.unwrap_or_else(Handle::current).spawn(looked);
        }
        // It ends without a result if the look panicked.
        let _ = timeout(WAIT_MAX, found.changed()).await;
        let last = found.borrow().clone();
        match last {
            Some(found) if found.at.elapsed() <= KNOWN_MAX => found.limited,
            _ => Err(Error::Unavailable(
                "this process is too busy to look at it".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::advance;

    use super::*;

    fn found(what: &str) -> Result<Vec<String>> {
        Ok(vec![what.to_owned()])
    }

    async fn panics() -> Result<Vec<String>> {
        panic!("a test")
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_found_last_is_the_answer_for_a_while() {
        let readiness = Readiness::default();
        let ask = async |look: Result<Vec<String>>| {
            let found = readiness.answer(|| ready(look)).await;
            found.map_err(|error| error.to_string()).unwrap()
        };
        assert_eq!(ask(found("a")).await, ["a"]);
        assert_eq!(ask(found("b")).await, ["b"], "each request looks");

        // From here on a look is under way.
        let begun = Instant::now();
        let silent = readiness.answer(pending).await.unwrap();
        assert_eq!(silent, ["b"]);
        assert!(begun.elapsed() >= WAIT_MAX);
        assert_eq!(ask(found("c")).await, ["b"], "one look at a time");
        advance(KNOWN_MAX).await;
        let busy = readiness.answer(|| ready(found("c"))).await.unwrap_err();
        assert!(busy.to_string().contains("too busy"), "{busy}");
    }

    #[tokio::test]
    async fn a_look_that_fails_or_panics_is_not_the_last_one() {
        let readiness = Readiness::default();
        let failed = readiness
            .answer(|| ready(Err(Error::Unavailable("gone".to_owned()))))
            .await;
        assert!(failed.unwrap_err().to_string().contains("gone"));
        let known = readiness.answer(panics).await;
        assert!(known.unwrap_err().to_string().contains("gone"));
        assert_eq!(readiness.answer(|| ready(found("a"))).await.unwrap(), ["a"]);
    }
}
