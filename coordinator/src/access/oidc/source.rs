//! Caches the provider's keys. They are fetched again from time to time, and when a token names an unknown key.
//!
//! Requests to the provider are limited, however many tokens arrive. If the provider is unavailable for a while, nobody
//! is locked out, since its keys stay valid.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey};
use swirl_config::files;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, timeout};

use super::discovery::discover;
use super::keys::{Key, parse, pick};
use super::{Fetch, KeySource};

/// How often keys are fetched. A withdrawn key stays valid for this long.
const REFRESH: Duration = Duration::from_secs(300);
/// After a success, the minimum time before keys are fetched for an unknown key.
const AGAIN: Duration = Duration::from_secs(10);
/// After a failure, the same; doubled with each further failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The time limit for fetching keys, including discovery.
const LOAD_MAX: Duration = Duration::from_secs(10);
/// How long a token with an unknown key waits for a request in flight, if other keys are known.
const QUEUE_MAX: Duration = Duration::from_secs(1);
/// Keys that could not be fetched again for this long are no longer valid.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest file of keys, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

pub(super) struct Source {
    keys: KeySource,
    issuer: String,
    fetch: Arc<dyn Fetch>,
    known: RwLock<KnownKeys>,
    asking: Mutex<Asking>,
}

#[derive(Clone, Default)]
struct KnownKeys {
    keys: Arc<Vec<Key>>,
    /// When the keys were fetched.
    at: Option<Instant>,
}

/// Locked by the task that fetches the keys.
#[derive(Default)]
struct Asking {
    tried: Option<Instant>,
    failures: u32,
    /// The reason why the last attempt failed.
    reason: Option<String>,
}

/// The reason why there is no key for a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Unknown,
    /// No keys are known at all.
    Away(String),
}

impl Source {
    pub fn new(keys: KeySource, issuer: String, fetch: Arc<dyn Fetch>) -> Source {
        Source {
            keys,
            issuer,
            fetch,
            known: RwLock::default(),
            asking: Mutex::default(),
        }
    }

    pub fn check_file(&self) -> Result<(), String> {
        match &self.keys {
            KeySource::File(path) => read(path).and_then(|bytes| parse(&bytes)).map(|_| ()),
            _ => Ok(()),
        }
    }

    pub async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, Missing> {
        let known = self.known();
        if let Some(found) = pick(&known.keys, id, algorithm) {
            return Ok(found.key.clone());
        }
        let turn = self.asking.lock();
        let asking = match known.keys.is_empty() {
            true => turn.await,
            // So that senders of such tokens don't occupy connections for long.
            false => timeout(QUEUE_MAX, turn)
                .await
                .map_err(|_| Missing::Away("it is slow to respond".to_owned()))?,
        };
        let failed = self.ask(known.at, asking).await;
        let known = self.known();
        match pick(&known.keys, id, algorithm) {
            Some(found) => Ok(found.key.clone()),
            None if known.keys.is_empty() => Err(Missing::Away(
                failed.unwrap_or_else(|| "there are none".to_owned()),
            )),
            None => Err(Missing::Unknown),
        }
    }

    /// Fetches the keys regularly. Never returns.
    pub async fn keep(&self) {
        loop {
            let before = self.known().at;
            let asking = self.asking.lock().await;
            self.ask(before, asking).await;
            let failures = self.asking.lock().await.failures;
            sleep(if failures == 0 {
                REFRESH
            } else {
                pause(failures)
            })
            .await;
        }
    }

    fn known(&self) -> KnownKeys {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match known.at {
            Some(at) if at.elapsed() < AGE_MAX => known.clone(),
            _ => KnownKeys::default(),
        }
    }

    /// Fetches the keys, unless another task did so since `before` or it is too soon. If the last attempt failed,
    /// returns the reason.
    async fn ask(
        &self,
        before: Option<Instant>,
        mut asking: MutexGuard<'_, Asking>,
    ) -> Option<String> {
        if self.known().at != before {
            return asking.reason.clone();
        }
        let wait = pause(asking.failures);
        if asking.tried.is_some_and(|tried| tried.elapsed() < wait) {
            return asking.reason.clone();
        }
        // Recorded first, because the client may disconnect half-way and try again.
        asking.tried = Some(Instant::now());
        let loaded = timeout(LOAD_MAX, self.load()).await;
        match loaded.unwrap_or_else(|_| Err("it doesn't respond in time".to_owned())) {
            Ok(keys) => {
                asking.failures = 0;
                asking.reason = None;
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                *known = KnownKeys {
                    keys: Arc::new(keys),
                    at: Some(Instant::now()),
                };
            }
            Err(reason) => {
                asking.failures = asking.failures.saturating_add(1);
                tracing::warn!(reason, "the provider's keys cannot be fetched");
                asking.reason = Some(reason);
            }
        }
        asking.reason.clone()
    }

    pub async fn load(&self) -> Result<Vec<Key>, String> {
        let bytes = match &self.keys {
            KeySource::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read(&path)).await;
                read.map_err(|error| error.to_string())??
            }
            KeySource::Url(url) => self.fetch.get(url).await?,
            KeySource::Discovery => self.fetch.get(&self.discover().await?).await?,
        };
        parse(&bytes)
    }

    /// The address of the issuer's keys.
    async fn discover(&self) -> Result<String, String> {
        let found = discover(&*self.fetch, &self.issuer).await?;
        let missing = || format!("the description of {} has no jwks_uri", self.issuer);
        found.jwks_uri.ok_or_else(missing)
    }
}

fn pause(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => AGAIN,
        Some(more) => (PAUSE_MIN * 2u32.pow(more.min(6))).min(PAUSE_MAX),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    files::read(path, FILE_BYTES_MAX)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use serde_json::{Value, json};

    use super::*;

    const X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";

    /// Serves the given document, and counts requests.
    #[derive(Default)]
    struct Web {
        keys: std::sync::Mutex<Option<Value>>,
        asked: AtomicUsize,
        slow: std::sync::Mutex<Duration>,
    }

    impl Web {
        fn has(&self, ids: &[&str]) {
            let keys: Vec<Value> = ids
                .iter()
                .map(|id| json!({"kty": "OKP", "crv": "Ed25519", "x": X, "kid": id}))
                .collect();
            *self.keys.lock().unwrap() = Some(json!({ "keys": keys }));
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }
    }

    #[async_trait]
    impl Fetch for Web {
        async fn get(&self, _: &str) -> Result<Vec<u8>, String> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let slow = *self.slow.lock().unwrap();
            sleep(slow).await;
            let keys = self.keys.lock().unwrap().clone();
            let keys = keys.ok_or("it is away")?;
            Ok(keys.to_string().into_bytes())
        }

        async fn post(
            &self,
            _: &str,
            _: String,
            _: Option<String>,
        ) -> Result<(u16, Vec<u8>), String> {
            Err("it only has keys".to_owned())
        }
    }

    fn source() -> (Arc<Web>, Source) {
        let web = Arc::new(Web::default());
        let keys = KeySource::Url("http://provider/keys".to_owned());
        (
            web.clone(),
            Source::new(keys, "http://provider".to_owned(), web),
        )
    }

    async fn find(source: &Source, id: &str) -> Result<(), Missing> {
        source.find(Some(id), Algorithm::EdDSA).await.map(|_| ())
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_key_is_fetched_but_not_too_often() {
        let (web, source) = source();
        web.has(&["a"]);
        assert_eq!(find(&source, "a").await, Ok(()));
        assert_eq!(find(&source, "a").await, Ok(()));
        assert_eq!(web.asked(), 1);

        web.has(&["a", "b"]);
        for _ in 0..20 {
            assert_eq!(find(&source, "b").await, Err(Missing::Unknown), "too soon");
        }
        assert_eq!(web.asked(), 1);
        sleep(AGAIN).await;
        assert_eq!(find(&source, "b").await, Ok(()));
        assert_eq!(web.asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_look_ups_cause_one_request() {
        let (web, source) = source();
        web.has(&["a"]);
        let all = (0..50).map(|_| find(&source, "a"));
        let all = futures::future::join_all(all).await;
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(web.asked(), 1);
    }

    /// One look-up waits for the provider; the others don't queue behind it.
    #[tokio::test(start_paused = true)]
    async fn a_slow_provider_delays_no_other_token() {
        let (web, source) = source();
        web.has(&["a"]);
        assert_eq!(find(&source, "a").await, Ok(()));
        sleep(AGAIN).await;
        *web.slow.lock().unwrap() = LOAD_MAX * 2;
        let begun = Instant::now();
        let all = (0..50).map(async |_| (find(&source, "b").await, begun.elapsed()));
        let all = futures::future::join_all(all).await;
        assert!(all.iter().all(|(found, _)| found.is_err()));
        let slow = all.iter().filter(|(_, took)| *took > QUEUE_MAX).count();
        assert_eq!(slow, 1);
        assert_eq!(find(&source, "a").await, Ok(()), "the key is known");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unavailable_provider_is_rarely_asked_and_its_keys_stay_valid() {
        let (web, source) = source();
        let away = || Err(Missing::Away("it is away".to_owned()));
        for _ in 0..20 {
            assert_eq!(find(&source, "a").await, away());
        }
        assert_eq!(web.asked(), 1);
        sleep(PAUSE_MIN).await;
        assert_eq!(find(&source, "a").await, away());
        assert_eq!(web.asked(), 2);

        web.has(&["a"]);
        sleep(PAUSE_MAX).await;
        assert_eq!(find(&source, "a").await, Ok(()));
        *web.keys.lock().unwrap() = None;
        {
            let keep = tokio::time::timeout(AGE_MAX - REFRESH, source.keep());
            assert!(keep.await.is_err());
        }
        assert_eq!(find(&source, "a").await, Ok(()));
        sleep(REFRESH * 2).await;
        assert_eq!(find(&source, "a").await, away(), "not for ever");
    }

    #[tokio::test(start_paused = true)]
    async fn a_withdrawn_key_becomes_invalid() {
        let (web, source) = source();
        web.has(&["a", "b"]);
        assert_eq!(find(&source, "a").await, Ok(()));
        web.has(&["b"]);
        assert!(
            tokio::time::timeout(REFRESH * 2, source.keep())
                .await
                .is_err()
        );
        assert_eq!(find(&source, "a").await, Err(Missing::Unknown));
        assert_eq!(find(&source, "b").await, Ok(()));
    }
}
