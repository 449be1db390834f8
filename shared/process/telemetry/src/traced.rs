//! Shows incoming events in the traces of their senders.
#![warn(
    clippy::missing_trait_methods,
    reason = "a method that isn't forwarded would behave differently"
)]

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use opentelemetry::Value;
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;
use swirl_model::trace::TraceContext;
use swirl_ports::matching::Listeners;
use swirl_ports::{EventLog, Ingested, KeptDropped, Listening, Result};

use crate::Telemetry;
use crate::ids;
use crate::span::{Span, SpanRole};

/// An event log that adds spans for its events.
pub struct Traced {
    inner: Arc<dyn EventLog>,
    telemetry: Arc<Telemetry>,
}

impl Traced {
    pub fn new(inner: Arc<dyn EventLog>, telemetry: Arc<Telemetry>) -> Traced {
        Traced { inner, telemetry }
    }
}

#[async_trait]
impl EventLog for Traced {
    async fn ingest(
        &self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
    ) -> Result<Ingested> {
        let begun = Instant::now();
        let ingested = self.inner.ingest(event, listening, at).await?;
        if !ingested.duplicate
            && let Some(context) = TraceContext::of(event)
            && context.sampled
        {
            let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let span = span(event, context, &ingested, (at, at.plus_ms(took_ms)));
            self.telemetry.send(span, context.trace);
        }
        Ok(ingested)
    }

    async fn awaited(&self, events: &[&CloudEvent], listeners: &Listeners) -> Result<Vec<bool>> {
        self.inner.awaited(events, listeners).await
    }

    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()> {
        self.inner.acknowledge(event, at).await
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<KeptDropped>> {
        self.inner.expire(now).await
    }

    async fn forget_unconsumed(&self, workflow: &str, listening: Listening<'_>) -> Result<u64> {
        self.inner.forget_unconsumed(workflow, listening).await
    }
}

fn count(number: usize) -> Value {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

/// The span of an event: its outcome, without its data.
fn span(
    event: &CloudEvent,
    context: TraceContext,
    ingested: &Ingested,
    (from, to): (Timestamp, Timestamp),
) -> Span {
    Span {
        id: ids::taken_in(event, context),
        parent: Some(context.span),
        name: format!("process {}", event.kind),
        kind: SpanRole::Consumer,
        from,
        to,
        attributes: vec![
            ("messaging.system", "nats".into()),
            ("messaging.operation.name", "process".into()),
            ("messaging.operation.type", "process".into()),
            ("messaging.message.id", event.id.clone().into()),
            ("cloudevents.event_id", event.id.clone().into()),
            ("cloudevents.event_source", event.source.clone().into()),
            ("cloudevents.event_type", event.kind.clone().into()),
            ("swirl.event.scopes", count(ingested.woken.len())),
            ("swirl.event.starts", count(ingested.starts.len())),
        ],
        ..Span::default()
    }
}
