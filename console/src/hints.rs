//! Hints for pages that show an instance while it runs: an event stream says when the instance has changed, and the page
//! then reloads itself. However many viewers an instance has, one task polls it for changes, and only while there are
//! viewers. The task uses their tokens in turn, so a viewer whose token is no longer accepted gets no more hints.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use swirl_api::history::HistoryQuery;
use swirl_api::instance::{HISTORY, InstanceId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::asking::{Asking, Follows, Refusal};

/// The default for the maximum number of viewers; the pages of others look for changes by themselves.
pub const VIEWERS_MAX: usize = 4_096;
/// The interval of polling an instance, and its upper bound while the API fails.
const EVERY: Duration = Duration::from_secs(1);
const EVERY_MAX: Duration = Duration::from_secs(15);
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long a stream lasts. The browser then begins another one, for which its visitor is checked again.
const LASTS: Duration = Duration::from_secs(10 * 60);
/// The header by which a page names the hint that it follows.
const SEEN: &str = "x-swirl-seen";

/// The instances that are being watched.
pub(crate) struct Hints {
    watched: Mutex<HashMap<String, Watched>>,
    room: Arc<Semaphore>,
    /// Whether the server is about to stop. Streams must not delay that.
    is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
}

struct Watched {
    /// The current state of the instance, as the hints name it; empty until it is known.
    news: watch::Sender<Arc<str>>,
    viewers: Vec<(u64, Asking)>,
    next: u64,
    task: JoinHandle<()>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hints {
    pub fn new(viewers_max: usize, is_stopping: Arc<dyn Fn() -> bool + Send + Sync>) -> Hints {
        Hints {
            watched: Mutex::default(),
            room: Arc::new(Semaphore::new(viewers_max)),
            is_stopping,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last hint about an instance, if the request names that one.
    pub fn followed(&self, id: &str, headers: &HeaderMap) -> Option<Follows> {
        let seen = headers.get(SEEN)?.to_str().ok()?;
        let all = self.lock();
        let current = all.get(id)?.news.borrow().clone();
        (*current == *seen && !seen.is_empty()).then_some(Follows(current))
    }

    /// Adds a viewer; `None`: there are too many.
    pub fn join(self: &Arc<Self>, id: &str, asking: Asking) -> Option<Viewer> {
        let permit = self.room.clone().try_acquire_owned().ok()?;
        let mut all = self.lock();
        let watched = all.entry(id.to_owned()).or_insert_with(|| Watched {
            news: watch::Sender::new(Arc::from("")),
            viewers: Vec::new(),
            next: 0,
            task: tokio::spawn(watch_instance(self.clone(), id.to_owned())),
        });
        let number = watched.next;
        watched.next += 1;
        watched.viewers.push((number, asking));
        let mut news = watched.news.subscribe();
        news.mark_changed();
        Some(Viewer {
            hints: self.clone(),
            id: id.to_owned(),
            number,
            news,
            until: Instant::now() + LASTS,
            _permit: permit,
        })
    }

    /// The viewer whose token is used in this turn.
    fn someone(&self, id: &str, turn: usize) -> Option<(u64, Asking)> {
        let all = self.lock();
        let viewers = &all.get(id)?.viewers;
        viewers.get(turn.checked_rem(viewers.len())?).cloned()
    }

    /// Removes a viewer. With the last one the task ends.
    fn leave(&self, id: &str, number: u64) {
        let mut all = self.lock();
        if let Some(watched) = all.get_mut(id) {
            watched.viewers.retain(|(other, _)| *other != number);
            if watched.viewers.is_empty() {
                all.remove(id);
            }
        }
    }

    fn has(&self, id: &str, number: u64) -> bool {
        let all = self.lock();
        let viewers = all.get(id).map_or(&[][..], |watched| &watched.viewers);
        viewers.iter().any(|(other, _)| *other == number)
    }
}

/// One stream.
pub(crate) struct Viewer {
    hints: Arc<Hints>,
    id: String,
    number: u64,
    news: watch::Receiver<Arc<str>>,
    until: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.hints.leave(&self.id, self.number);
    }
}

impl Viewer {
    /// The next hint; `None`: the stream ends.
    pub async fn hint(&mut self) -> Option<Arc<str>> {
        loop {
            timeout_at(self.until, self.news.changed())
                .await
                .ok()?
                .ok()?;
            let seen = self.news.borrow_and_update().clone();
            if !self.hints.has(&self.id, self.number) {
                return None;
            }
            if !seen.is_empty() {
                return Some(seen);
            }
        }
    }
}

/// Polls an instance until nobody watches it, or it is gone.
async fn watch_instance(hints: Arc<Hints>, id: String) {
    let (mut turn, mut every) = (0, EVERY);
    while !(hints.is_stopping)() {
        let Some((number, asking)) = hints.someone(&id, turn) else {
            return;
        };
        turn = turn.wrapping_add(1);
        match timeout(ANSWER_MAX, stamp(&asking, &id)).await {
            Ok(Ok(seen)) => {
                every = EVERY;
                if let Some(watched) = hints.lock().get(&id) {
                    watched.news.send_if_modified(|known| {
                        let is_new = *known != seen;
                        *known = seen;
                        is_new
                    });
                }
            }
            Ok(Err(refusal)) if refusal.status == StatusCode::NOT_FOUND => break,
            Ok(Err(refusal)) if refusal.status.is_client_error() => {
                let mut all = hints.lock();
                if let Some(watched) = all.get_mut(&id) {
                    watched.viewers.retain(|(other, _)| *other != number);
                    // Wakes the stream of the removed viewer, which then ends.
                    watched.news.send_modify(|_| {});
                    if watched.viewers.is_empty() {
                        all.remove(&id);
                        return;
                    }
                }
                continue;
            }
            _ => every = (every * 2).min(EVERY_MAX),
        }
        sleep(every).await;
    }
    // All streams end.
    hints.lock().remove(&id);
}

/// Changes whenever the instance does: each change adds to its history.
pub(crate) async fn stamp(asking: &Asking, id: &str) -> Result<Arc<str>, Refusal> {
    let call = HISTORY.at(&InstanceId { id: id.to_owned() });
    let history = asking.ask(call.query(HistoryQuery {
        last: Some(1),
        ..HistoryQuery::default()
    }));
    let history = history.await?;
    let at = history.entries.first().map(|entry| entry.at.to_string());
    let (total, status) = (history.total, history.status);
    Ok(format!("{total}.{status}.{}", at.unwrap_or_default()).into())
}
