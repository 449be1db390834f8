//! Publishes produced events.

use async_nats::Client;
use async_nats::jetstream;
use async_nats::jetstream::context::{GetStreamByNameErrorKind, PublishError, PublishErrorKind};
use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_model::trace::TraceContext;
use swirl_ports::{Error, EventBus, Result};

use crate::dead::DeadLetters;
use crate::message::{EventMessage, message_id, unavailable};
use crate::streams::Streams;
use crate::subject::Template;

/// The header of events that were correlated before they were published, so that coordinators of this installation
/// needn't process them. `streams.rs` creates its value.
pub const CORRELATED: &str = "Swirl-Correlated";

/// An upper limit on the headers of an event.
const HEADERS_MAX: usize = 4096;

/// Publishes CloudEvents in the structured mode of the NATS protocol binding.
#[derive(Clone)]
pub struct Bus {
    client: Client,
    streams: Streams,
    subject: Template,
}

impl Bus {
    pub fn new(client: Client, streams: Streams, subject: Template) -> Bus {
        Bus {
            client,
            streams,
            subject,
        }
    }

    /// The largest event for this maximum message size. Headers count towards that size, and a server closes the
    /// connection of a client that exceeds it.
    pub fn event_bytes_max(max_payload: usize) -> usize {
        max_payload.saturating_sub(HEADERS_MAX)
    }

    /// Called if no stream has confirmed the event. If no stream has its subject, the event is for subscribers without
    /// JetStream and has been published. If a stream has the subject but doesn't confirm, because its server is
    /// starting or has no leader, publishing must be retried; otherwise the event would be lost.
    async fn is_for_subscribers(&self, subject: &str) -> Result<()> {
        let reason = match self.streams.context.stream_by_subject(subject).await {
            Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => return Ok(()),
            Err(error) => error.to_string(),
            Ok(stream) => format!("the stream {stream} does not confirm messages to {subject}"),
        };
        Err(Error::Unavailable(reason))
    }
}

/// Whether the stream refuses messages of this size.
fn is_too_large(error: &PublishError) -> bool {
    let source = std::error::Error::source(error);
    let refused = source.and_then(|source| source.downcast_ref::<jetstream::Error>());
    let code = refused.map(jetstream::Error::error_code);
    code == Some(jetstream::ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM)
}

#[async_trait]
impl EventBus for Bus {
    async fn publish(&self, event: &CloudEvent) -> Result<()> {
        let mut message = EventMessage::new(event)?;
        let size = message.payload.len();
        let limit = self.client.server_info().max_payload;
        if limit > 0 && size > Bus::event_bytes_max(limit) {
            return Err(Error::TooLarge {
                what: format!("the event {} of {}", event.id, event.source),
                size,
                limit: Bus::event_bytes_max(limit),
            });
        }
        let mark = self.streams.mark(&message_id(event));
        message.headers.insert(CORRELATED, mark);
        if let Some(trace) = TraceContext::of(event) {
            message.headers.insert("traceparent", trace.to_string());
        }
        let subject = self.subject.subject(event);
        let streams = &self.streams;
        let alone = message.publish(&streams.context, &subject, streams.ensure());
        let published = match streams.takes(&subject) {
            true => {
                let part = message.part(&subject);
                let context = &streams.context;
                let together = streams.together.publish(context, part, alone, Ok(Ok(())));
                together.await
            }
            false => alone.await,
        };
        match published? {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                self.is_for_subscribers(&subject).await
            }
            Err(error) if is_too_large(&error) => Err(Error::TooLarge {
                what: format!("for its stream, the event {} of {}", event.id, event.source),
                size,
                limit: size.saturating_sub(1),
            }),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn bury(&self, event: &CloudEvent, reason: &str) -> Result<()> {
        let dead = DeadLetters::new(self.streams.clone());
        dead.bury_event(&self.subject.subject(event), event, reason)
            .await
            .map_err(Error::Unavailable)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use futures::StreamExt;
    use swirl_servers::{NatsOptions, NatsServer};

    use super::*;
    use crate::{Options, StreamOptions, connect};

    /// A fake responder lists the streams. Without JetStream nothing is confirmed.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_event_without_its_streams_confirmation_is_not_published() {
        let server = NatsServer::start_with(NatsOptions {
            without_jetstream: true,
            ..NatsOptions::default()
        });
        let server = server.unwrap();
        let options = Options::new(vec![server.url()], "test");
        let client = connect(&options).await.unwrap();
        let streams = Streams::new(
            client.clone(),
            "default",
            Vec::new(),
            StreamOptions::default(),
        );
        let subject = Template::parse("swirl.events.{type}").unwrap();
        let bus = Bus::new(client.clone(), streams, subject);
        let asked = bus.is_for_subscribers("swirl.events.paid").await;
        assert!(asked.unwrap_err().is_retryable(), "nothing answers");

        let mut questions = client.subscribe("$JS.API.STREAM.NAMES").await.unwrap();
        client.flush().await.unwrap();
        let answering = client.clone();
        tokio::spawn(async move {
            while let Some(question) = questions.next().await {
                let is_ours = String::from_utf8_lossy(&question.payload).contains("swirl.events");
                let names = if is_ours { "[\"EVENTS\"]" } else { "null" };
                let total = u8::from(is_ours);
                let answer = format!(
                    "{{\"type\": \"io.nats.jetstream.api.v1.stream_names_response\", \
                     \"total\": {total}, \"offset\": 0, \"limit\": 1024, \"streams\": {names}}}"
                );
                let to = question.reply.unwrap();
                answering.publish(to, answer.into()).await.unwrap();
            }
        });
        let silent = bus.is_for_subscribers("swirl.events.paid").await;
        assert!(silent.unwrap_err().is_retryable());
        bus.is_for_subscribers("elsewhere.paid").await.unwrap();
    }
}
