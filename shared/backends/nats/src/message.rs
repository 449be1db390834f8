//! Events as messages: their format and ids, and how they are published.

use async_nats::HeaderMap;
use async_nats::jetstream::context::{Context, PublishError, PublishErrorKind};
use bytes::Bytes;
use swirl_model::CloudEvent;
use swirl_ports::{Error, Result};

use crate::together::BatchMessage;

pub(crate) const CONTENT_TYPE: &str = "application/cloudevents+json; charset=utf-8";

/// The id by which JetStream drops duplicates.
pub(crate) fn message_id(event: &CloudEvent) -> String {
    id_of(&event.source, &event.id)
}

fn id_of(source: &str, id: &str) -> String {
    // Has the form of [`CloudEvent::key`].
    blake3::hash(format!("{source}\n{id}").as_bytes()).to_hex()[..32].to_owned()
}

/// The message id for a payload that [`Bus`](crate::Bus) wrote.
pub(crate) fn message_id_of(payload: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        source: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        id: std::borrow::Cow<'a, str>,
    }
    let named: Named<'_> = serde_json::from_slice(payload).ok()?;
    Some(id_of(&named.source, &named.id))
}

/// An event in the structured mode of the NATS protocol binding.
pub(crate) struct EventMessage {
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl EventMessage {
    pub(crate) fn new(event: &CloudEvent) -> Result<EventMessage> {
        let payload = serde_json::to_vec(event).map_err(|error| Error::Damaged {
            what: format!("the event {}", event.id),
            reason: error.to_string(),
        })?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", CONTENT_TYPE);
        headers.insert(
            async_nats::header::NATS_MESSAGE_ID,
            message_id(event).as_str(),
        );
        Ok(EventMessage {
            headers,
            payload: payload.into(),
        })
    }

    /// The event as a part of a batch.
    pub(crate) fn part(&self, subject: &str) -> BatchMessage {
        BatchMessage {
            subject: subject.to_owned(),
            headers: self.headers.clone(),
            payload: self.payload.clone(),
        }
    }

    /// Publishes the event and waits for a stream's confirmation. If no stream confirms, `ensure` creates the streams,
    /// which may have been wiped, and the event is published again. The inner error is that of the confirmation.
    pub(crate) async fn publish(
        &self,
        context: &Context,
        subject: &str,
        ensure: impl Future<Output = std::result::Result<(), crate::Error>>,
    ) -> Result<std::result::Result<(), PublishError>> {
        match self.publish_once(context, subject).await? {
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                ensure.await.map_err(unavailable)?;
                self.publish_once(context, subject).await
            }
            confirmed => Ok(confirmed),
        }
    }

    async fn publish_once(
        &self,
        context: &Context,
        subject: &str,
    ) -> Result<std::result::Result<(), PublishError>> {
        let (headers, payload) = (self.headers.clone(), self.payload.clone());
        let sent = context.publish_with_headers(subject.to_owned(), headers, payload);
        let confirmed = sent.await.map_err(unavailable)?.await;
        Ok(confirmed.map(drop))
    }
}

pub(crate) fn unavailable(error: impl ToString) -> Error {
    Error::Unavailable(error.to_string())
}
