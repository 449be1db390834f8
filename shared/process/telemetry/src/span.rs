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

/// The part of a millisecond that is still in it.
const LAST: Duration = Duration::from_micros(999);

#[derive(Debug, Clone, Default)]
pub struct Span {
    pub id: u64,
    pub parent: Option<u64>,
    pub name: String,
    pub kind: SpanRole,
    pub from: Timestamp,
    pub to: Timestamp,
    /// The times, if they are known better than to the millisecond.
    pub precise: Option<[SystemTime; 2]>,
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

    /// The start and the end.
    ///
    /// A time that is known to the millisecond is somewhere in it. So a span goes on to the end of its last one: otherwise
    /// a service's span would end after the call's, and collectors take a span without a duration for a mistake.
    fn times(&self) -> [SystemTime; 2] {
        let known = [time(self.from.min(self.to)), time(self.to) + LAST];
        self.precise.unwrap_or(known)
    }

    /// Converts a span of a trace.
    pub fn in_trace(self, trace: u128, mut attributes: Vec<KeyValue>) -> SpanData {
        let [from, to] = self.times();
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
            start_time: from,
            end_time: to,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_goes_on_to_the_end_of_its_last_millisecond() {
        let at = Timestamp(1_700_000_000_000);
        let span = Span {
            from: at,
            to: at,
            ..Span::default()
        };
        let data = span.in_trace(1, Vec::new());
        assert_eq!(data.start_time, time(at));
        assert_eq!(data.end_time, time(at) + LAST);
    }

    #[test]
    fn precise_times_stay_as_they_are() {
        let began = time(Timestamp(5)) + Duration::from_micros(700);
        let ended = began + Duration::from_micros(600);
        let span = Span {
            from: Timestamp(5),
            to: Timestamp(6),
            precise: Some([began, ended]),
            ..Span::default()
        };
        let data = span.in_trace(1, Vec::new());
        assert_eq!([data.start_time, data.end_time], [began, ended]);
    }
}
