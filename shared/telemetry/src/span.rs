//! A finished span, and its conversion for the SDK.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use swirl_model::ids::ScopeId;
use swirl_model::instance::Header;
use swirl_model::time::Timestamp;
use swirl_model::trace::TraceContext;

use crate::ids;

#[derive(Debug, Clone, Default)]
pub struct Span {
    pub id: u64,
    pub parent: Option<u64>,
    pub name: String,
    pub kind: SpanRole,
    pub from: Timestamp,
    pub to: Timestamp,
    /// The name of an error. The message is left out, since it may come from a service.
    pub error: Option<String>,
    pub attributes: Vec<(&'static str, Value)>,
    pub notes: Vec<(Timestamp, Cow<'static, str>)>,
    pub links: Vec<TraceContext>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpanRole {
    #[default]
    Internal,
    Client,
    Consumer,
    Producer,
    Server,
}

impl Span {
    /// Converts a span of a scope.
    pub fn into_data(self, header: &Header, scope: &ScopeId) -> SpanData {
        let definition = &header.definition;
        let attributes = vec![
            KeyValue::new("swirl.instance.id", header.id.to_string()),
            KeyValue::new("swirl.scope.id", scope.to_string()),
            KeyValue::new("swirl.workflow.id", definition.workflow.to_string()),
            KeyValue::new("swirl.workflow.version", definition.version.to_string()),
        ];
        self.in_trace(ids::trace(header), attributes)
    }

    /// Converts a span of a trace.
    pub fn in_trace(self, trace: u128, mut attributes: Vec<KeyValue>) -> SpanData {
        let own = self.attributes.into_iter();
        attributes.extend(own.map(|(name, value)| KeyValue::new(name, value)));
        if let Some(error) = &self.error {
            attributes.push(KeyValue::new("error.type", error.clone()));
        }
        let mut events = SpanEvents::default();
        events.events = self
            .notes
            .into_iter()
            .map(|(at, note)| Event::new(note, time(at), Vec::new(), 0))
            .collect();
        let mut links = SpanLinks::default();
        links.links = self.links.into_iter().map(link).collect();
        SpanData {
            span_context: context(trace, self.id, true),
            parent_span_id: self.parent.map_or(SpanId::INVALID, SpanId::from),
            parent_span_is_remote: false,
            span_kind: match self.kind {
                SpanRole::Internal => SpanKind::Internal,
                SpanRole::Client => SpanKind::Client,
                SpanRole::Consumer => SpanKind::Consumer,
                SpanRole::Producer => SpanKind::Producer,
                SpanRole::Server => SpanKind::Server,
            },
            name: self.name.into(),
            start_time: time(self.from.min(self.to)),
            end_time: time(self.to),
            attributes,
            dropped_attributes_count: 0,
            events,
            links,
            status: match self.error {
                Some(error) => Status::error(error),
                None => Status::Unset,
            },
            instrumentation_scope: InstrumentationScope::builder("swirl").build(),
        }
    }
}

fn link(to: TraceContext) -> Link {
    Link::with_context(context(to.trace, to.span, to.sampled))
}

fn context(trace: u128, span: u64, sampled: bool) -> SpanContext {
    let flags = match sampled {
        true => TraceFlags::SAMPLED,
        false => TraceFlags::default(),
    };
    let (trace, span) = (TraceId::from(trace), SpanId::from(span));
    SpanContext::new(trace, span, flags, false, TraceState::default())
}

fn time(at: Timestamp) -> SystemTime {
    let ms = u64::try_from(at.0).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}
