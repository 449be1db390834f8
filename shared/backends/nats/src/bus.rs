//! Produced events on their way out.

use async_nats::Client;
use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishErrorKind;
use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_model::trace::TraceContext;
use swirl_ports::{EventBus, Result};

use crate::streams::Streams;
use crate::subject::Template;

/// Carried by events that have been correlated before they were published: coordinators needn't
/// take them in.
pub const CORRELATED: &str = "Swirl-Correlated";

const CONTENT_TYPE: &str = "application/cloudevents+json; charset=utf-8";

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
}

/// What JetStream drops repeats by.
pub(crate) fn message_id(event: &CloudEvent) -> String {
    blake3::hash(event.key().as_bytes()).to_hex()[..32].to_owned()
}

#[async_trait]
impl EventBus for Bus {
    async fn publish(&self, event: &CloudEvent) -> Result<()> {
        let unavailable = |error: String| swirl_ports::Error::Unavailable(error);
        let payload = serde_json::to_vec(event).map_err(|error| swirl_ports::Error::Damaged {
            what: format!("the event {}", event.id),
            reason: error.to_string(),
        })?;
        let limit = self.client.server_info().max_payload;
        if limit > 0 && payload.len() > limit {
            return Err(swirl_ports::Error::TooLarge {
                what: format!("the event {} of {}", event.id, event.source),
                size: payload.len(),
                limit,
            });
        }
        let mut headers = HeaderMap::new();
        headers.insert("content-type", CONTENT_TYPE);
        headers.insert(
            async_nats::header::NATS_MESSAGE_ID,
            message_id(event).as_str(),
        );
        headers.insert(CORRELATED, "1");
        if let Some(trace) = TraceContext::of(event) {
            headers.insert("traceparent", trace.to_string());
        }
        let subject = self.subject.subject(event);
        let payload = bytes::Bytes::from(payload);
        for is_again in [false, true] {
            let sent = self
                .streams
                .context
                .publish_with_headers(subject.clone(), headers.clone(), payload.clone())
                .await
                .map_err(|error| unavailable(error.to_string()))?;
            match sent.await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == PublishErrorKind::StreamNotFound && !is_again => {
                    // Perhaps the streams were wiped.
                    let made = self.streams.ensure().await;
                    made.map_err(|error| unavailable(error.to_string()))?;
                }
                // Nobody takes this subject in: the event is for those who subscribe without
                // JetStream, and has been published.
                Err(error) if error.kind() == PublishErrorKind::StreamNotFound => return Ok(()),
                Err(error) => return Err(unavailable(error.to_string())),
            }
        }
        Ok(())
    }
}
