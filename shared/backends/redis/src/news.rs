//! Notifications of other processes' changes: inputs of held scopes, and timers that are due earlier. They are
//! messages, which may be lost, so waiting code also polls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use redis::{RedisError, RedisResult};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::connect::Link;

/// How often the connection is checked.
const PING: Duration = Duration::from_secs(10);
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

pub(crate) struct News {
    /// Waiters in this process, by `<instance>/<scope>`.
    waiting: Mutex<HashMap<String, Vec<Weak<Notify>>>>,
    /// Counts the changes that may have made the next timer earlier.
    timers: watch::Sender<u64>,
    connected: watch::Sender<bool>,
}

/// A registered waiter. Dropping it unregisters it.
pub(crate) struct Listener<'a> {
    news: &'a News,
    member: String,
    pub notified: Arc<Notify>,
}

impl News {
    pub fn new() -> News {
        News {
            waiting: Mutex::default(),
            timers: watch::Sender::new(0),
            connected: watch::Sender::new(false),
        }
    }

    pub fn listen(&self, member: String) -> Listener<'_> {
        let notified = Arc::new(Notify::new());
        let mut waiting = self.lock();
        waiting
            .entry(member.clone())
            .or_default()
            .push(Arc::downgrade(&notified));
        Listener {
            news: self,
            member,
            notified,
        }
    }

    pub fn timers(&self) -> watch::Receiver<u64> {
        self.timers.subscribe()
    }

    pub fn connected(&self) -> watch::Receiver<bool> {
        self.connected.subscribe()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<Weak<Notify>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, member: &str) {
        for notified in self.lock().get(member).into_iter().flatten() {
            if let Some(notified) = notified.upgrade() {
                notified.notify_one();
            }
        }
    }

    /// Notifies all waiters, since messages may have been missed.
    fn notify_all(&self) {
        let members: Vec<String> = self.lock().keys().cloned().collect();
        members.iter().for_each(|member| self.notify(member));
        self.timers.send_modify(|count| *count += 1);
    }

    /// Receives messages, and reconnects when the connection is lost. Never returns.
    pub async fn run(self: Arc<News>, link: Arc<Link>, namespace: String, process: String) {
        let timers = format!("{namespace}:timers");
        let mine = format!("{namespace}:p:{process}");
        let mut wait = BACKOFF_MIN;
        for attempt in 0.. {
            let heard = self.hear(&link, attempt, &timers, &mine).await;
            if self.connected.send_replace(false) {
                wait = BACKOFF_MIN;
            }
            if let Err(error) = heard {
                tracing::debug!(%error, "the connection for messages is lost");
            }
            sleep(wait).await;
            wait = (wait * 2).min(BACKOFF_MAX);
        }
    }

    async fn hear(&self, link: &Link, attempt: usize, timers: &str, mine: &str) -> RedisResult<()> {
        let connect = async {
            let client = link.subscriber(attempt).await?;
            let mut pubsub = client.get_async_pubsub().await?;
            pubsub.subscribe(&[timers, mine][..]).await?;
            Ok::<_, RedisError>(pubsub)
        };
        let (mut sink, mut stream) = match timeout(link.response_limit(), connect).await {
            Ok(connected) => connected?.split(),
            Err(_) => return Ok(()),
        };
        self.connected.send_replace(true);
        self.notify_all();
        let mut renewals = link.watched.renewals();
        loop {
            let next = tokio::select! {
                next = timeout(PING, stream.next()) => next,
                // If the others were given up, this one may lead to the same wrong server.
                changed = renewals.changed() => match changed {
                    Ok(()) => return Ok(()),
                    Err(_) => continue,
                },
            };
            match next {
                Ok(Some(message)) if message.get_channel_name() == timers => {
                    self.timers.send_modify(|count| *count += 1);
                }
                Ok(Some(message)) => {
                    if let Ok(member) = message.get_payload::<String>() {
                        self.notify(&member);
                    }
                }
                Ok(None) => return Ok(()),
                // A broken network doesn't report itself.
                Err(_) => match timeout(link.response_limit(), sink.ping::<()>()).await {
                    Ok(answered) => answered?,
                    Err(_) => return Ok(()),
                },
            }
        }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        let mut waiting = self.news.lock();
        if let Some(all) = waiting.get_mut(&self.member) {
            let mine = Arc::downgrade(&self.notified);
            all.retain(|other| !other.ptr_eq(&mine));
            if all.is_empty() {
                waiting.remove(&self.member);
            }
        }
    }
}
