//! Publishes events together: those that come while others are on their way go in one atomic batch, for which the server
//! syncs to its disk once (nats-server 2.12 and newer, ADR 50 of NATS).
//!
//! A batch that a server doesn't take has no effect, and a batch without an answer may be published again: JetStream
//! drops repeats by their ids. So whoever fails here publishes its event alone.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::Context;
use async_nats::{Client, HeaderMap, Request};
use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::oneshot;

/// The first version with atomic batches.
const SINCE: (i64, i64) = (2, 12);
/// The largest batch. A server has a limit of 1,000 messages.
const EVENTS_MAX: usize = 100;
const BYTES_MAX: usize = 4 << 20;
/// A stream that takes no batches is not asked again for this time.
const OFF: Duration = Duration::from_secs(600);
/// The code of this refusal: `allow_atomic` is not set.
const DISABLED: u64 = 10174;

/// A message of a batch.
#[derive(Clone)]
pub(crate) struct BatchMessage {
    pub(crate) subject: String,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

/// The events for one stream.
#[derive(Default)]
pub(crate) struct Together {
    waiting: Mutex<VecDeque<Waiting>>,
    sending: tokio::sync::Mutex<()>,
    off_until: Mutex<Option<Instant>>,
    sent: AtomicU64,
}

struct Waiting {
    part: BatchMessage,
    /// Whether it was published.
    done: oneshot::Sender<bool>,
}

#[derive(Deserialize)]
struct Answer {
    count: Option<usize>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    err_code: u64,
    description: String,
}

/// The number of messages that go into one batch. It ends with the message that exceeds [`BYTES_MAX`].
fn fitting<'p>(parts: impl Iterator<Item = &'p BatchMessage>) -> usize {
    let mut bytes = 0;
    let fits = |part: &&BatchMessage| {
        let fits = bytes < BYTES_MAX;
        bytes += part.payload.len();
        fits
    };
    parts.take(EVENTS_MAX).take_while(fits).count()
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the server has atomic batches.
pub(crate) fn has_batches(client: &Client) -> bool {
    client.is_server_compatible(SINCE.0, SINCE.1, 0)
}

impl Together {
    /// The number of batches that were published.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    fn is_on(&self, client: &Client) -> bool {
        let off_until = *locked(&self.off_until);
        has_batches(client) && off_until.is_none_or(|until| until < Instant::now())
    }

    /// Publishes an event together with others that wait, or else by `alone`.
    pub(crate) async fn publish<T>(
        &self,
        context: &Context,
        part: BatchMessage,
        alone: impl Future<Output = T>,
        published: T,
    ) -> T {
        if !self.is_on(&context.client()) {
            return alone.await;
        }
        let (done, mut is_done) = oneshot::channel();
        locked(&self.waiting).push_back(Waiting { part, done });
        let sending = tokio::select! {
            biased;
            is_published = &mut is_done => {
                return match is_published {
                    Ok(true) => published,
                    _ => alone.await,
                };
            }
            sending = self.sending.lock() => sending,
        };
        // The events go in their order, so this one may be behind others.
        loop {
            match is_done.try_recv() {
                Ok(true) => return published,
                Err(oneshot::error::TryRecvError::Empty) => {}
                _ => break,
            }
            let batch = self.take();
            let is_published = match &batch[..] {
                [_, _, ..] => {
                    let parts: Vec<BatchMessage> =
                        batch.iter().map(|one| one.part.clone()).collect();
                    self.send(context, &parts).await
                }
                _ => false,
            };
            for one in batch {
                // Whoever no longer waits publishes it again.
                let _ = one.done.send(is_published);
            }
        }
        // Others wait meanwhile, and go together afterwards.
        let result = alone.await;
        drop(sending);
        result
    }

    fn take(&self) -> Vec<Waiting> {
        let mut waiting = locked(&self.waiting);
        waiting.retain(|one| !one.done.is_closed());
        let count = fitting(waiting.iter().map(|one| &one.part));
        waiting.drain(..count).collect()
    }

    /// Publishes messages in batches, in their order. Returns false if that wasn't possible for all of them.
    pub(crate) async fn publish_all(&self, context: &Context, parts: &[BatchMessage]) -> bool {
        if parts.len() < 2 || !self.is_on(&context.client()) {
            return false;
        }
        let mut rest = parts;
        while !rest.is_empty() {
            let (batch, left) = rest.split_at(fitting(rest.iter()));
            if !self.send(context, batch).await {
                return false;
            }
            rest = left;
        }
        true
    }

    /// Publishes one batch. Returns false unless the server has it as a whole.
    async fn send(&self, context: &Context, parts: &[BatchMessage]) -> bool {
        match self.try_send(context, parts).await {
            Ok(()) => {
                self.sent.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(reason) => {
                tracing::debug!(reason, "events are published one by one");
                false
            }
        }
    }

    async fn try_send(&self, context: &Context, parts: &[BatchMessage]) -> Result<(), String> {
        let client = context.client();
        let id = format!("{:016x}", RandomState::new().build_hasher().finish());
        let Some((last, others)) = parts.split_last() else {
            return Ok(());
        };
        let numbered = |part: &BatchMessage, number: usize| {
            let mut headers = part.headers.clone();
            headers.insert("Nats-Batch-Id", id.as_str());
            headers.insert("Nats-Batch-Sequence", number.to_string().as_str());
            headers
        };
        for (part, number) in others.iter().zip(1..) {
            let (subject, headers) = (part.subject.clone(), numbered(part, number));
            let sent = client.publish_with_headers(subject, headers, part.payload.clone());
            sent.await.map_err(|error| error.to_string())?;
        }
        let mut headers = numbered(last, parts.len());
        headers.insert("Nats-Batch-Commit", "1");
        let request = Request::new()
            .headers(headers)
            .payload(last.payload.clone());
        let answer = client.send_request(last.subject.clone(), request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let answer: Answer =
            serde_json::from_slice(&answer.payload).map_err(|error| error.to_string())?;
        match answer {
            Answer {
                error: Some(refusal),
                ..
            } => {
                if refusal.err_code == DISABLED {
                    *locked(&self.off_until) = Some(Instant::now() + OFF);
                }
                Err(refusal.description)
            }
            Answer { count, .. } if count == Some(parts.len()) => Ok(()),
            Answer { count, .. } => Err(format!("{count:?} of {} were stored", parts.len())),
        }
    }
}
