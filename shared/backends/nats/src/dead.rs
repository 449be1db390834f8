//! Dead letters: messages that could not be processed, kept with the reason.

use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::datetime::DateTime;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use async_nats::jetstream::{AckKind, Message};
use bytes::Bytes;
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;
use tokio::sync::Semaphore;

use crate::Error;
use crate::counts::MessageKind;
use crate::message::{CONTENT_TYPE, message_id};
use crate::streams::Streams;

/// Reasons are truncated to this many bytes.
const REASON_MAX: usize = 1_000;
/// Larger events are kept without their data.
const EVENT_MAX: usize = 32 << 10;

/// The header of an event whose data was dropped.
const CUT: &str = "Swirl-Cut";

/// A page of a listing ends when the letters that were read for it have this size, with their headers. The last one may
/// exceed it.
const PAGE_BYTES: usize = 4 << 20;
/// How many letters are read at a time, one for each listing. Each is as large as a message may be, and a server cuts a connection for which
/// it holds too much. It counts a letter until the write that carried it has ended, so twice as many may count: the
/// next are asked for as soon as the first have arrived.
const READS_MAX: usize = 2;

#[derive(Clone)]
pub struct DeadLetters {
    streams: Streams,
    reads: Arc<Semaphore>,
}

/// Some dead letters, oldest first, or what was picked of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letters<T> {
    pub letters: Vec<T>,
    /// There may be more, after the last one.
    pub has_more: bool,
}

/// A message, and the reason why it is a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub sequence: u64,
    /// The time at which it became a dead letter.
    pub at: Timestamp,
    /// `event` or `task`.
    pub kind: String,
    pub subject: String,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub payload: Bytes,
    /// The data was dropped because it was too large, so the message cannot be sent again.
    pub is_cut: bool,
}

impl DeadLetters {
    pub fn new(streams: Streams) -> DeadLetters {
        DeadLetters {
            streams,
            reads: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// Stores a message as a dead letter. Returns false if that fails; the caller must retry.
    pub(crate) async fn bury(&self, message: &Message, kind: MessageKind, reason: &str) -> bool {
        tracing::warn!(subject = %message.subject, reason, "a message becomes a dead letter");
        if let Err(error) = self.write(message, kind.as_str(), reason).await {
            tracing::warn!(error, "a dead letter cannot be stored yet");
            return false;
        }
        self.streams.counts().count_dead(kind);
        true
    }

    /// Like [`DeadLetters::bury`], and then terminates the delivery of the message. If that fails, the message is
    /// delivered again and becomes a dead letter then.
    pub(crate) async fn bury_delivered(&self, message: &Message, kind: MessageKind, reason: &str) {
        if self.bury(message, kind, reason).await
            && let Err(error) = message.ack_with(AckKind::Term).await
        {
            tracing::debug!(%error, "a message that became a dead letter will be delivered again");
        }
    }

    /// Stores a produced event that can never be published as a dead letter. Drops its data if that is too large.
    pub(crate) async fn bury_event(
        &self,
        subject: &str,
        event: &CloudEvent,
        reason: &str,
    ) -> Result<(), String> {
        tracing::warn!(subject, reason, "a produced event becomes a dead letter");
        let write = |event: &CloudEvent| serde_json::to_vec(event).map_err(|e| e.to_string());
        let mut payload = write(event)?;
        let mut headers = HeaderMap::new();
        if payload.len() > EVENT_MAX {
            headers.insert(CUT, "1");
            let bare = CloudEvent {
                data: None,
                ..event.clone()
            };
            payload = write(&bare)?;
            payload.truncate(EVENT_MAX);
        }
        headers.insert("content-type", CONTENT_TYPE);
        let id = format!("event-{}", message_id(event));
        headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
        self.send(
            MessageKind::Events.as_str(),
            headers,
            subject,
            reason,
            payload.into(),
        )
        .await?;
        self.streams.counts().count_dead(MessageKind::Events);
        Ok(())
    }

    async fn write(&self, message: &Message, kind: &str, reason: &str) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for (name, values) in message.headers.iter().flat_map(|headers| headers.iter()) {
            let name: &str = name.as_ref();
            if !name.to_ascii_lowercase().starts_with("nats-") {
                for value in values {
                    headers.append(name, value.as_str());
                }
            }
        }
        if let Ok(info) = message.info() {
            // Storing the same message twice results in one dead letter.
            let id = format!("{}-{}", info.stream, info.stream_sequence);
            headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
        }
        let payload = message.payload.clone();
        self.send(kind, headers, &message.subject, reason, payload)
            .await
    }

    async fn send(
        &self,
        kind: &str,
        mut headers: HeaderMap,
        of: &str,
        reason: &str,
        payload: Bytes,
    ) -> Result<(), String> {
        let reason: String = reason.replace(['\r', '\n'], " ");
        let end = reason.floor_char_boundary(REASON_MAX);
        headers.insert("Swirl-Reason", &reason[..end]);
        headers.insert("Swirl-Subject", of);
        let subject = self.streams.dead_subject(kind);
        let context = &self.streams.context;
        let sent = context.publish_with_headers(subject, headers, payload);
        let sent = sent.await.map_err(|error| error.to_string())?;
        sent.await.map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Returns what `pick` takes of the dead letters from this sequence number on, oldest first. There are fewer than
    /// `limit` if they are large. Only few listings read at a time, and only what was picked is kept of each letter.
    ///
    /// # Errors
    /// JetStream doesn't respond.
    pub async fn list<T>(
        &self,
        from: u64,
        limit: usize,
        pick: impl Fn(Letter) -> T,
    ) -> Result<Letters<T>, Error> {
        let _place = self.reads.acquire().await;
        let stream = self.stream().await?;
        let (mut letters, mut bytes, mut next) = (Vec::new(), 0, from.max(1));
        while letters.len() < limit && bytes < PAGE_BYTES {
            // One after another, and without a consumer, which would outlive the request.
            match stream.get_first_raw_message_by_subject(">", next).await {
                Ok(message) => {
                    next = message.sequence + 1;
                    bytes += size_of(&message);
                    letters.push(pick(letter_of(message)));
                }
                Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {
                    return Ok(Letters {
                        letters,
                        has_more: false,
                    });
                }
                Err(error) => return Err(Error::JetStream(error.to_string())),
            }
        }
        Ok(Letters {
            letters,
            has_more: true,
        })
    }

    /// Returns one dead letter.
    ///
    /// # Errors
    /// JetStream doesn't respond.
    pub async fn get(&self, sequence: u64) -> Result<Option<Letter>, Error> {
        let stream = self.stream().await?;
        let _place = self.reads.acquire().await;
        match stream.get_raw_message(sequence).await {
            Ok(message) => Ok(Some(letter_of(message))),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(Error::JetStream(error.to_string())),
        }
    }

    /// Sends a dead letter again to its original subject. It stays a dead letter until [`DeadLetters::remove`]. JetStream
    /// drops a repeat, so two operators who send the same letter at once don't send it twice.
    ///
    /// # Errors
    /// NATS doesn't accept the message.
    pub async fn send_again(&self, letter: &Letter) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        for (name, value) in &letter.headers {
            headers.append(name.as_str(), value.as_str());
        }
        // A corrected payload is another message.
        let payload_hash = blake3::hash(&letter.payload).to_hex();
        let id = format!("letter-{}-{}", letter.sequence, &payload_hash[..16]);
        headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
        let (subject, payload) = (letter.subject.clone(), letter.payload.clone());
        let context = &self.streams.context;
        let sent = context.publish_with_headers(subject, headers, payload);
        let failed = |error: String| Error::JetStream(error);
        let sent = sent.await.map_err(|error| failed(error.to_string()))?;
        sent.await.map_err(|error| failed(error.to_string()))?;
        Ok(())
    }

    /// Removes a dead letter. Returns false if there was none.
    ///
    /// # Errors
    /// JetStream cannot remove it.
    pub async fn remove(&self, sequence: u64) -> Result<bool, Error> {
        if self.get(sequence).await?.is_none() {
            return Ok(false);
        }
        let removed = self.stream().await?.delete_message(sequence).await;
        removed.map_err(|error| Error::JetStream(error.to_string()))
    }

    async fn stream(&self) -> Result<Stream<()>, Error> {
        let found = self.streams.context.get_stream_no_info(self.streams.dead());
        found
            .await
            .map_err(|error| Error::JetStream(error.to_string()))
    }
}

fn at(time: DateTime) -> Timestamp {
    Timestamp(i64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or_default())
}

/// The bytes of a message with its headers.
fn size_of(message: &StreamMessage) -> usize {
    let headers = message.headers.iter();
    let values = headers.flat_map(|(_, values)| values.iter().map(|value| value.as_str().len()));
    message.payload.len() + values.sum::<usize>()
}

fn letter_of(message: StreamMessage) -> Letter {
    let kind = message.subject.rsplit('.').next().unwrap_or_default();
    let mut letter = Letter {
        sequence: message.sequence,
        at: at(message.time),
        kind: kind.to_owned(),
        subject: String::new(),
        reason: String::new(),
        headers: Vec::new(),
        payload: message.payload,
        is_cut: false,
    };
    for (name, values) in message.headers.iter() {
        for value in values {
            let value = value.as_str().to_owned();
            match name.as_ref() {
                "Swirl-Reason" => letter.reason = value,
                "Swirl-Subject" => letter.subject = value,
                CUT => letter.is_cut = true,
                name if name.to_ascii_lowercase().starts_with("nats-") => {}
                name => letter.headers.push((name.to_owned(), value)),
            }
        }
    }
    letter
}
