//! The stream of lifecycle events. It is created when needed, and anyone may read it.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_ports::{EventStream, Result};

use crate::message::{EventMessage, unavailable};
use crate::streams::Streams;
use crate::subject::tokens;
use crate::together::{BatchMessage, Together};

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
    together: Arc<Together>,
}

impl LifecycleStream {
    pub fn new(streams: Streams, options: LifecycleOptions) -> LifecycleStream {
        LifecycleStream {
            streams,
            options,
            together: Arc::default(),
        }
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
            allow_atomic_publish: self.streams.takes_batches(),
            // The server requires it not to exceed the other limit.
            duplicate_window: self.streams.duplicate_window().min(self.options.age_max),
            ..self.streams.common()
        }
    }
}

#[async_trait]
impl EventStream for LifecycleStream {
    async fn append(&self, workflow: &str, events: &[CloudEvent]) -> Result<()> {
        let workflow = tokens(workflow).replace('.', "_");
        let stream = self.streams.lifecycle();
        let context = &self.streams.context;
        let mut messages = Vec::with_capacity(events.len());
        for event in events {
            let mut message = EventMessage::new(event)?;
            // Only this stream may confirm an event.
            let expected = async_nats::header::NATS_EXPECTED_STREAM;
            message.headers.insert(expected, stream.as_str());
            let subject = format!("{workflow}.{}", tokens(&event.kind));
            messages.push((self.streams.lifecycle_subject(&subject), message));
        }
        let parts: Vec<BatchMessage> = messages
            .iter()
            .map(|(subject, message)| message.part(subject))
            .collect();
        if self.together.publish_all(context, &parts).await {
            return Ok(());
        }
        // One after another, so that they keep their order even after failures.
        for (subject, message) in &messages {
            let ensure = self.streams.ensure_stream(self.wanted());
            let confirmed = message.publish(context, subject, ensure).await?;
            confirmed.map_err(unavailable)?;
        }
        Ok(())
    }
}
