//! Reads the events of users from the events stream, in order.
//!
//! Nothing is acknowledged here. The reader saves a position ([`StreamPlace`]) up to which everything is done, and
//! starts there the next time, so an unprocessed event comes again before later ones. With acknowledgements it would be
//! redelivered after them.

use std::time::Duration;

use async_nats::datetime::{DateTime, from_nanos};
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures::StreamExt;
use swirl_ports::StreamPlace;
use tokio::time::{sleep, timeout};

use crate::Error;
use crate::bus::CORRELATED;
use crate::counts::MessageKind;
use crate::dead::DeadLetters;
use crate::message::message_id_of;
use crate::place::{holds, millis, name_of};
use crate::pulling::{CHECK, EXPIRES, HEARTBEAT};
use crate::streams::Streams;

/// The server removes the consumer of a reader that is gone after this time.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// After this many consecutive failures, within about five seconds, another process may try.
const FAILURES_MAX: u32 = 8;
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Server clocks differ. If the position is no longer known, reading starts this much earlier.
const EARLIER_MS: i64 = 60_000;

enum Start {
    /// After this sequence number, whose message arrived no later than this, in milliseconds since 1970.
    After(u64, i64),
    At(DateTime),
}

/// The events stream from some position on.
pub struct Intake {
    streams: Streams,
    dead: DeadLetters,
    /// The number of messages requested ahead.
    ahead: usize,
    since: Option<StreamPlace>,
    /// See [`StreamPlace`].
    stream: String,
    start: Start,
    open: Option<Open>,
    failures: u32,
}

struct Open {
    messages: pull::Stream,
    consumer: String,
    /// The number of messages that the consumer has sent. A gap means that a message was lost on the way.
    sent: u64,
    /// See [`Streams::connects`].
    connects: u64,
    /// Something was on its way when the consumer was last looked at.
    is_late: bool,
}

impl Intake {
    /// Without a position, starts at the beginning.
    ///
    /// # Errors
    /// JetStream doesn't respond, or a stream is unsuitable.
    pub async fn open(
        streams: Streams,
        since: Option<StreamPlace>,
        ahead: usize,
    ) -> Result<Intake, Error> {
        streams.ensure().await?;
        let stream = streams.events_stream().await?;
        let name = name_of(stream.cached_info());
        let start = match &since {
            Some(since)
                if since.stream == name && holds(&stream, since.done, since.at_ms).await? =>
            {
                Start::After(since.done, since.at_ms)
            }
            Some(since) => {
                tracing::warn!(
                    "the stream of events isn't the one that was read: it is read from a minute before \
                     the last place"
                );
                let at_ms = since.at_ms.saturating_sub(EARLIER_MS).max(0);
                let at = from_nanos(i128::from(at_ms) * 1_000_000);
                Start::At(at.map_err(|error| Error::JetStream(error.to_string()))?)
            }
            None => Start::After(0, 0),
        };
        Ok(Intake {
            dead: DeadLetters::new(streams.clone()),
            stream: name,
            streams,
            ahead,
            since,
            start,
            open: None,
            failures: 0,
        })
    }

    /// See [`StreamPlace`].
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// The last event before those that [`Intake::next`] returns, and its time, if they are known.
    pub fn after(&self) -> Option<(u64, i64)> {
        match self.start {
            Start::After(sequence, at_ms) => Some((sequence, at_ms)),
            Start::At(_) => None,
        }
    }

    /// The next message, in the order of the stream. `None` means that the stream must be opened again: JetStream has
    /// been silent for a few seconds, or the stream was replaced. Dropping the future loses no message.
    pub async fn next(&mut self) -> Option<Incoming> {
        loop {
            if self.open.is_none() {
                match self.reopen().await {
                    Ok(Some(open)) => self.open = Some(open),
                    Ok(None) => return None,
                    Err(error) => self.fail(&error.to_string()).await?,
                }
                continue;
            }
            let open = self.open.as_mut()?;
            let Ok(next) = timeout(CHECK, open.messages.next()).await else {
                match self.is_whole().await {
                    Ok(true) => {}
                    Ok(false) => {
                        tracing::debug!("events were lost in transit; they are requested again");
                        self.open = None;
                    }
                    Err(error) => {
                        self.open = None;
                        self.fail(&error.to_string()).await?;
                    }
                }
                continue;
            };
            match next {
                Some(Ok(message)) => {
                    if let Some(incoming) = self.take(message) {
                        return Some(incoming);
                    }
                    self.open = None;
                    self.fail("a message is missing").await?;
                }
                Some(Err(error)) => {
                    self.open = None;
                    self.fail(&error.to_string()).await?;
                }
                None => self.open = None,
            }
        }
    }

    /// Whether everything that the consumer has sent has arrived. What was on its way when a connection broke is lost,
    /// and without a further message nothing else would tell.
    async fn is_whole(&mut self) -> Result<bool, Error> {
        let connects = self.streams.connects();
        let Some(open) = self.open.as_mut() else {
            return Ok(true);
        };
        if open.connects != connects {
            return Ok(false);
        }
        let failed = |error: String| Error::JetStream(error);
        let stream = self.streams.events();
        let stream = self.streams.context.get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| failed(error.to_string()))?;
        let info = stream.consumer_info(&open.consumer).await;
        let info = info.map_err(|error| failed(error.to_string()))?;
        // It may come after the answer.
        let was_late = open.is_late;
        open.is_late = info.delivered.consumer_sequence > open.sent;
        Ok(!(was_late && open.is_late))
    }

    /// Returns `None` if messages before it were lost on the way.
    fn take(&mut self, message: Message) -> Option<Incoming> {
        let open = self.open.as_mut()?;
        let info = message.info().ok()?;
        if info.consumer_sequence != open.sent + 1 {
            return None;
        }
        let sequence = info.stream_sequence;
        let at_ms = millis(info.published);
        open.sent = info.consumer_sequence;
        open.is_late = false;
        self.failures = 0;
        self.start = Start::After(sequence, at_ms);
        if self
            .since
            .as_ref()
            .is_some_and(|since| since.stream == self.stream && sequence <= since.read)
        {
            self.streams.counts().count_redelivered(MessageKind::Events);
        }
        Some(Incoming {
            at_ms,
            dead: self.dead.clone(),
            is_correlated: self.is_correlated(&message),
            sequence,
            message,
        })
    }

    /// Whether the event comes from this installation, which has already processed it. A mark of another installation,
    /// or one copied to another event, doesn't count.
    fn is_correlated(&self, message: &Message) -> bool {
        let mut headers = headers_of(message);
        let mark = headers.find(|(name, _)| name.eq_ignore_ascii_case(CORRELATED));
        mark.is_some_and(|(_, mark)| {
            message_id_of(&message.payload).is_some_and(|id| self.streams.mark(&id) == mark)
        })
    }

    /// Creates a private consumer, which no other process reads from. Returns `None` if the stream was replaced.
    async fn reopen(&self) -> Result<Option<Open>, Error> {
        let failed = |error: String| Error::JetStream(error);
        let connects = self.streams.connects();
        let stream = self.streams.events_stream().await?;
        let is_there = match self.start {
            Start::After(sequence, at_ms) => holds(&stream, sequence, at_ms).await?,
            Start::At(_) => true,
        };
        if name_of(stream.cached_info()) != self.stream || !is_there {
            return Ok(None);
        }
        let config = pull::Config {
            description: Some("Swirl: events on their way in".to_owned()),
            ack_policy: AckPolicy::None,
            deliver_policy: match &self.start {
                Start::After(sequence, _) => DeliverPolicy::ByStartSequence {
                    start_sequence: sequence + 1,
                },
                Start::At(time) => DeliverPolicy::ByStartTime { start_time: *time },
            },
            inactive_threshold: IDLE_MAX,
            num_replicas: 1,
            memory_storage: true,
            ..pull::Config::default()
        };
        let consumer = stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| failed(error.to_string()))?;
        let messages = consumer
            .stream()
            .max_messages_per_batch(self.ahead)
            .max_bytes_per_batch(self.streams.fetch_bytes())
            .expires(EXPIRES)
            .heartbeat(HEARTBEAT)
            .messages()
            .await;
        Ok(Some(Open {
            messages: messages.map_err(|error| failed(error.to_string()))?,
            consumer: consumer.cached_info().name.clone(),
            sent: 0,
            connects,
            is_late: false,
        }))
    }

    /// Returns `None` after too many failures.
    async fn fail(&mut self, reason: &str) -> Option<()> {
        self.failures += 1;
        if self.failures > FAILURES_MAX {
            tracing::warn!(reason, "the stream of events cannot be read");
            return None;
        }
        tracing::debug!(reason, "events are requested again");
        let wait = Duration::from_millis(20 << self.failures);
        sleep(wait.min(BACKOFF_MAX)).await;
        Some(())
    }

    /// Ends reading.
    pub async fn close(self) {
        let Some(open) = self.open else {
            return;
        };
        drop(open.messages);
        if let Ok(stream) = self.streams.events_stream().await
            && let Err(error) = stream.delete_consumer(&open.consumer).await
        {
            tracing::debug!(%error, "a consumer cannot be removed; the server removes it later");
        }
    }
}

fn headers_of(message: &Message) -> impl Iterator<Item = (&str, &str)> {
    let headers = message.headers.iter().flat_map(|headers| headers.iter());
    headers.flat_map(|(name, values)| {
        values
            .iter()
            .map(move |value| (name.as_ref(), value.as_str()))
    })
}

/// A message of the events stream.
pub struct Incoming {
    message: Message,
    dead: DeadLetters,
    sequence: u64,
    at_ms: i64,
    is_correlated: bool,
}

impl Incoming {
    /// The number in the stream. Numbers grow, and some may be missing.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The time at which it was put into the stream, in milliseconds since 1970.
    pub fn at_ms(&self) -> i64 {
        self.at_ms
    }

    /// Whether this installation produced the event and processed it before publishing.
    pub fn is_correlated(&self) -> bool {
        self.is_correlated
    }

    pub fn subject(&self) -> &str {
        &self.message.subject
    }

    pub fn payload(&self) -> &[u8] {
        &self.message.payload
    }

    /// The size of the message, with its headers.
    pub fn bytes(&self) -> usize {
        self.message.length
    }

    /// The headers, in any order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        headers_of(&self.message)
    }

    /// Makes a message that can never be processed a dead letter. Returns false if that failed.
    pub async fn dead(&self, reason: &str) -> bool {
        self.dead
            .bury(&self.message, MessageKind::Events, reason)
            .await
    }
}
