//! The stream of lifecycle events. It is created when needed, and anyone may read it.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use async_trait::async_trait;
use bytes::Bytes;
use swirl_model::CloudEvent;
use swirl_ports::{Error, EventStream, Result};

use crate::message::{CONTENT_TYPE, message_id};
use crate::streams::Streams;
use crate::subject::tokens;

/// Limits of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifecycleOptions {
    pub age_max: Duration,
    pub bytes_max: i64,
}

/// Publishes to the subjects `swirl-lifecycle.<namespace>.<workflow>.<type>`.
#[derive(Clone)]
pub struct LifecycleStream {
    streams: Streams,
    options: LifecycleOptions,
}

impl LifecycleStream {
    pub fn new(streams: Streams, options: LifecycleOptions) -> LifecycleStream {
        LifecycleStream { streams, options }
    }

    fn wanted(&self) -> Config {
        Config {
            name: self.streams.lifecycle(),
            description: Some("Swirl: lifecycle events of instances and states".to_owned()),
            subjects: vec![self.streams.lifecycle_subject(">")],
            retention: RetentionPolicy::Limits,
            discard: DiscardPolicy::Old,
            max_age: self.options.age_max,
            max_bytes: self.options.bytes_max,
            // The server requires it not to exceed the other limit.
            duplicate_window: self.streams.duplicate_window().min(self.options.age_max),
            ..self.streams.common()
        }
    }
}

#[async_trait]
impl EventStream for LifecycleStream {
    async fn append(&self, workflow: &str, event: &CloudEvent) -> Result<()> {
        let unavailable = |error: String| Error::Unavailable(error);
        let payload = serde_json::to_vec(event).map_err(|error| Error::Damaged {
            what: format!("the event {}", event.id),
            reason: error.to_string(),
        })?;
        let payload = Bytes::from(payload);
        let mut headers = HeaderMap::new();
        headers.insert("content-type", CONTENT_TYPE);
        headers.insert(
            async_nats::header::NATS_MESSAGE_ID,
            message_id(event).as_str(),
        );
        let stream = self.streams.lifecycle();
        // Only this stream may confirm an event.
        headers.insert(async_nats::header::NATS_EXPECTED_STREAM, stream.as_str());
        let workflow = tokens(workflow).replace('.', "_");
        let subject = format!("{workflow}.{}", tokens(&event.kind));
        let subject = self.streams.lifecycle_subject(&subject);
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
                    let made = self.streams.ensure_stream(self.wanted()).await;
                    made.map_err(|error| unavailable(error.to_string()))?;
                }
                Err(error) => return Err(unavailable(error.to_string())),
            }
        }
        Ok(())
    }
}
