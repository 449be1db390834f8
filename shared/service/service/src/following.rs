//! Passes histories on to a sink as they grow. Each coordinator follows the instances of its shards, and begins where
//! the last one stopped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt, stream};
use swirl_model::Data;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_ports::{
    Clock, Error, Extract, FollowedHistories, HistoryPart, HistorySink, InstanceQueries, Result,
    Unread,
};

/// How many instances are looked for at a time, how many of them are read concurrently, and how many entries of one are
/// read at a time, so that no instance holds up others.
const INSTANCES: usize = 256;
const CONCURRENT: usize = 32;
const ENTRIES: usize = 500;
/// The pause when nothing is left to read, and the shortest and longest pause after failures.
const LOOK_MS: u64 = 250;
const PAUSE_MS: u64 = 100;
const PAUSE_MAX_MS: u64 = 5_000;
/// The number of instances whose headers are cached.
const HEADERS_MAX: usize = 4_096;

/// A process's follower with everything that it needs.
pub struct Follower {
    store: Arc<dyn FollowedHistories>,
    histories: Arc<dyn InstanceQueries>,
    sink: Arc<dyn HistorySink>,
    clock: Arc<dyn Clock>,
    /// Headers without their inputs.
    headers: Mutex<HashMap<InstanceId, Arc<Header>>>,
    lost: Arc<AtomicU64>,
}

impl Follower {
    pub fn new(
        store: Arc<dyn FollowedHistories>,
        histories: Arc<dyn InstanceQueries>,
        sink: Arc<dyn HistorySink>,
        clock: Arc<dyn Clock>,
    ) -> Follower {
        Follower {
            store,
            histories,
            sink,
            clock,
            headers: Mutex::default(),
            lost: Arc::default(),
        }
    }

    /// The number of entries that were removed before they were read.
    pub fn lost(&self) -> Arc<AtomicU64> {
        self.lost.clone()
    }

    /// Follows histories forever, or returns if none are followed.
    pub async fn run(&self) {
        let mut pause = PAUSE_MS;
        loop {
            let turn = match self.store.are_followed() {
                true => self.turn().await,
                false => Ok(0),
            };
            let ms = match turn {
                Ok(0) => LOOK_MS,
                Ok(_) => {
                    pause = PAUSE_MS;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "lifecycle events are late");
                    pause = (2 * pause).min(PAUSE_MAX_MS);
                    pause
                }
            };
            self.clock.sleep_until(self.clock.now().plus_ms(ms)).await;
        }
    }

    /// Passes on a part of each instance that has unread entries, and returns the number of these instances.
    ///
    /// # Errors
    /// One of them could not be passed on. The others were.
    pub async fn turn(&self) -> Result<usize> {
        let unread = self.store.unread(INSTANCES).await?;
        let count = unread.len();
        let turns: Vec<Result<()>> = stream::iter(unread)
            .map(|unread| self.follow(unread))
            .buffer_unordered(CONCURRENT)
            .collect()
            .await;
        turns.into_iter().collect::<Result<()>>()?;
        Ok(count)
    }

    async fn follow(&self, unread: Unread) -> Result<()> {
        let (id, known) = (&unread.instance, unread.known);
        let part = HistoryPart::After {
            known,
            limit: ENTRIES,
        };
        let found = async {
            let Some(header) = self.header(&unread).await? else {
                return Ok(None);
            };
            let page = self.histories.history_page(id, part).await?;
            let page = page.at(self.clock.now());
            Ok(Some((header, page)))
        };
        let (header, page) = match found.await {
            Ok(Some(found)) => found,
            Ok(None) => {
                // The store counts lost entries where it removes them.
                return self.store.read_to(id, known, self.clock.now()).await;
            }
            Err(error @ Error::Damaged { .. }) => {
                self.lose(id, 1, &format!("they cannot be read: {error}"));
                return self
                    .store
                    .read_to(id, u64::MAX >> 12, self.clock.now())
                    .await;
            }
            Err(error) => return Err(error),
        };
        if page.before > known {
            let reason = "the instance has more entries than are kept";
            self.lose(id, page.before - known, reason);
        }
        if !page.entries.is_empty() {
            let part = Extract {
                header: &header,
                before: page.before,
                entries: &page.entries,
            };
            self.sink.take(part).await?;
        }
        let read = page.before + page.entries.len() as u64;
        self.store.read_to(id, read, self.clock.now()).await
    }

    fn lose(&self, id: &InstanceId, entries: u64, reason: &str) {
        self.lost.fetch_add(entries, Ordering::Relaxed);
        tracing::error!(instance = %id, entries, reason, "entries of a history are not published");
    }

    async fn header(&self, unread: &Unread) -> Result<Option<Arc<Header>>> {
        let id = &unread.instance;
        // The id may have belonged to another instance, which has been removed.
        if unread.known > 0
            && let Some(header) = self.headers().get(id)
        {
            return Ok(Some(header.clone()));
        }
        let Some(instance) = self.histories.instance(id).await? else {
            return Ok(None);
        };
        let mut header = (*instance.header).clone();
        header.input = Data::NULL;
        let header = Arc::new(header);
        let mut headers = self.headers();
        if headers.len() >= HEADERS_MAX {
            headers.clear();
        }
        headers.insert(id.clone(), header.clone());
        Ok(Some(header))
    }

    fn headers(&self) -> std::sync::MutexGuard<'_, HashMap<InstanceId, Arc<Header>>> {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
