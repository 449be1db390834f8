//! Pulls tasks. If the server, the stream or the consumer goes away, waits for it or creates it again.

use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::{AckKind, Message};
use futures::StreamExt;
use tokio::time::{Instant, timeout};

use crate::counts::MessageKind;
use crate::streams::TaskQueueKind;
use crate::{Error, Streams};

/// A server that is silent for two of these gets a new request.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);
pub(crate) const EXPIRES: Duration = Duration::from_secs(30);
/// After this time without a message, the connection is looked at.
pub(crate) const CHECK: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// After the last request, messages may still be on their way. The wait for them ends after this silence, or at the
/// latest after the maximum.
const LAST: Duration = Duration::from_millis(50);
const LAST_MAX: Duration = Duration::from_millis(500);
/// The pause before fetched messages are returned. The server must first know that this process wants no more.
const BACK: Duration = Duration::from_millis(250);

pub(crate) struct Pulling {
    streams: Streams,
    queue: TaskQueueKind,
    /// The number of messages requested ahead.
    batch: usize,
    open: Option<pull::Stream>,
    /// See [`Streams::connects`].
    connects: u64,
    failures: u32,
}

impl Pulling {
    pub fn new(streams: Streams, queue: TaskQueueKind, batch: usize) -> Pulling {
        Pulling {
            streams,
            queue,
            batch,
            open: None,
            connects: 0,
            failures: 0,
        }
    }

    /// The next message. Dropping the future loses no message.
    pub async fn next(&mut self) -> Message {
        loop {
            let Some(open) = &mut self.open else {
                self.connects = self.streams.connects();
                match self.open().await {
                    Ok(open) => self.open = Some(open),
                    Err(error) => self.fail(&error.to_string()).await,
                }
                continue;
            };
            let Ok(next) = timeout(CHECK, open.next()).await else {
                if self.connects != self.streams.connects() {
                    // The requests may have been lost with the connection.
                    self.open = None;
                }
                continue;
            };
            match next {
                Some(Ok(message)) => {
                    self.failures = 0;
                    if message.info().is_ok_and(|info| info.delivered > 1) {
                        self.streams.counts().count_redelivered(MessageKind::Tasks);
                    }
                    return message;
                }
                Some(Err(error)) => {
                    self.open = None;
                    self.fail(&error.to_string()).await;
                }
                None => self.open = None,
            }
        }
    }

    /// Stops requesting, and returns messages that were received but not taken.
    pub async fn close(&mut self) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        // The response comes on the same connection, after all messages that were on their way.
        if let Err(error) = timeout(LAST_MAX, self.streams.task_consumer(self.queue)).await {
            tracing::debug!(%error, "NATS does not respond while this process stops");
        }
        let mut ahead = Vec::new();
        let until = Instant::now() + LAST_MAX;
        while Instant::now() < until
            && let Ok(Some(Ok(message))) = timeout(LAST, open.next()).await
        {
            ahead.push(message);
        }
        drop(open);
        for message in ahead {
            if let Err(error) = message.ack_with(AckKind::Nak(Some(BACK))).await {
                tracing::debug!(%error, "fetched messages cannot be returned and are redelivered later");
            }
        }
    }

    async fn open(&self) -> Result<pull::Stream, Error> {
        let consumer = self.streams.ensure_tasks(self.queue).await?;
        let opened = consumer
            .stream()
            .max_messages_per_batch(self.batch)
            .max_bytes_per_batch(self.streams.fetch_bytes())
            .expires(EXPIRES)
            .heartbeat(HEARTBEAT)
            .messages()
            .await;
        opened.map_err(|error| Error::JetStream(error.to_string()))
    }

    async fn fail(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        if self.failures > 1 {
            tracing::warn!(reason, "messages cannot be pulled from NATS");
        } else {
            tracing::debug!(reason, "messages are requested from NATS again");
        }
        let wait = Duration::from_millis(20 << self.failures.min(8));
        tokio::time::sleep(wait.min(BACKOFF_MAX)).await;
    }
}
