//! Counters and measurements. They are sent over OTLP if there is an endpoint, and read by Prometheus.
//!
//! The SDK keeps 2,000 combinations of attributes per instrument and counts further ones together
//! (`otel_metric_overflow`), so neither workflows nor functions can fill the memory.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Counter, Histogram, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder, Registry, TextEncoder};
use swirl_model::event::Event;
use swirl_model::instance::Status;
use swirl_ports::{KeptDropped, KeptGroup};
use swirl_runtime::{CallOutcome, Called, Observed};

use crate::export::{self, Error, Settings};
use crate::failures::Failures;
use crate::process;
use crate::watched::Watched;

/// In seconds, from a call on the same machine to a slow one.
const SECONDS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0,
];

/// In seconds, from the responses of a nearby server to those of an overloaded one.
const ROUND_TRIPS: [f64; 14] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// In seconds, as in OpenTelemetry's conventions for HTTP requests.
const REQUESTS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// The content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub struct Metrics {
    provider: SdkMeterProvider,
    registry: Registry,
    meter: Meter,
    started: Counter<u64>,
    ended: Counter<u64>,
    duration: Histogram<f64>,
    transitions: Counter<u64>,
    commits: Counter<u64>,
    refused: Counter<u64>,
    calls: Histogram<f64>,
    conflicts: Counter<u64>,
    dropped_kept: Counter<u64>,
    timers: Histogram<f64>,
    redis: Histogram<f64>,
    nats: Histogram<f64>,
    requests: Histogram<f64>,
}

/// How a process found that another process holds a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Another process had the lease.
    Busy,
    /// This process had the lease and has lost it.
    Lost,
}

impl Conflict {
    fn attribute(self) -> KeyValue {
        let word = match self {
            Conflict::Busy => "busy",
            Conflict::Lost => "lost",
        };
        KeyValue::new("swirl.lease.conflict", word)
    }
}

impl Metrics {
    pub(crate) fn new(settings: &Settings, failures: &Arc<Failures>) -> Result<Metrics, Error> {
        let registry = Registry::new();
        let reader = export::prometheus(&registry)?;
        let mut provider = SdkMeterProvider::builder()
            .with_resource(export::resource(settings))
            .with_reader(reader);
        if let Some(exporter) = export::metrics(settings, failures)? {
            provider = provider.with_periodic_exporter(exporter);
        }
        let provider = provider.build();
        let meter = provider.meter("swirl");
        let counter = |name: &'static str, what: &'static str| {
            meter.u64_counter(name).with_description(what).build()
        };
        let seconds = |name: &'static str, what: &'static str, boundaries: &[f64]| {
            meter
                .f64_histogram(name)
                .with_description(what)
                .with_unit("s")
                .with_boundaries(boundaries.to_vec())
                .build()
        };
        let metrics = Metrics {
            started: counter("swirl.instances.started", "Instances that began."),
            ended: counter("swirl.instances.ended", "Instances that ended."),
            duration: seconds("swirl.instance.duration", "From start to end.", &SECONDS),
            transitions: counter("swirl.transitions", "States that were entered."),
            commits: counter("swirl.commits", "Commits that took effect."),
            refused: counter(
                "swirl.commits.refused",
                "Commits that were refused because of a lost lease or a change by another process.",
            ),
            calls: seconds("swirl.call.duration", "Calls of functions.", &SECONDS),
            conflicts: counter(
                "swirl.lease.conflicts",
                "Scopes that another process held or took over.",
            ),
            dropped_kept: counter(
                "swirl.events.kept.dropped",
                "Events that were kept for instances that wait later, and dropped to make room, by limit.",
            ),
            timers: seconds(
                "swirl.timer.lateness",
                "The time from when a timer was due until it was fired.",
                &SECONDS,
            ),
            redis: seconds(
                "swirl.redis.duration",
                "Operations on Redis, by the store's operation.",
                &ROUND_TRIPS,
            ),
            nats: seconds(
                "swirl.nats.duration",
                "Operations on NATS: responses of JetStream, and publishing tasks.",
                &ROUND_TRIPS,
            ),
            requests: seconds(
                "http.server.request.duration",
                "Requests that the API has answered.",
                &REQUESTS,
            ),
            meter,
            provider,
            registry,
        };
        process::watch(&metrics.meter);
        if settings.endpoint.is_some() {
            let failures = failures.clone();
            metrics.watch(Watched::ExportFailures, move || failures.counts());
        }
        // These exist from the beginning, since a rate needs to have seen zero.
        metrics.commits.add(0, &[]);
        metrics.refused.add(0, &[]);
        for conflict in [Conflict::Busy, Conflict::Lost] {
            metrics.conflicts.add(0, &[conflict.attribute()]);
        }
        Ok(metrics)
    }

    /// Returns the metrics in the text format of Prometheus; see [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// The gathered metrics cannot be written.
    pub fn text(&self) -> Result<String, Error> {
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .map_err(|error| Error::Setup(error.to_string()))?;
        String::from_utf8(text).map_err(|error| Error::Setup(error.to_string()))
    }

    /// Registers values that are read whenever metrics are read or sent, by the value of their attribute. `read` must
    /// not block.
    pub fn watch<R>(&self, what: Watched, read: R)
    where
        R: Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    {
        what.register(&self.meter, read);
    }

    /// As [`Metrics::watch`], for the events from outside by type and outcome. Their types must be bounded in number.
    pub fn watch_events<R>(&self, read: R)
    where
        R: Fn() -> Vec<(String, String, u64)> + Send + Sync + 'static,
    {
        let counter = self.meter.u64_observable_counter("swirl.events");
        let counter =
            counter.with_description("Events that came over NATS or HTTP, by type and outcome.");
        let observe = move |observer: &dyn AsyncInstrument<u64>| {
            for (kind, outcome, count) in read() {
                let kind = KeyValue::new("cloudevents.event_type", kind);
                observer.observe(
                    count,
                    &[kind, KeyValue::new("swirl.event.outcome", outcome)],
                );
            }
        };
        // The meter keeps registered instruments.
        counter.with_callback(observe).build();
    }

    /// Records an operation on NATS that succeeded or failed.
    pub fn nats(&self, operation: &'static str, took: Duration, failed: bool) {
        let name = KeyValue::new("messaging.operation.name", operation);
        record(&self.nats, name, took, failed);
    }

    /// Records a request that the API has answered. The number of different values must be bounded: an unknown method
    /// is `_OTHER`, and a path without a route has none.
    pub fn answered(
        &self,
        method: &'static str,
        route: Option<&'static str>,
        status: u16,
        took: Duration,
    ) {
        let mut attributes = vec![
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.response.status_code", i64::from(status)),
        ];
        attributes.extend(route.map(|route| KeyValue::new("http.route", route)));
        self.requests.record(took.as_secs_f64(), &attributes);
    }

    pub(crate) fn redis(&self, operation: &'static str, took: Duration, failed: bool) {
        let name = KeyValue::new("db.operation.name", operation);
        record(&self.redis, name, took, failed);
    }

    pub(crate) fn conflict(&self, conflict: Conflict) {
        self.conflicts.add(1, &[conflict.attribute()]);
    }

    pub(crate) fn timer_fired(&self, late_ms: i64) {
        self.timers.record(late_ms.max(0) as f64 / 1000.0, &[]);
    }

    pub(crate) fn committed(&self, observed: &Observed) {
        self.commits.add(1, &[]);
        let workflow = || {
            let id = observed.header.definition.workflow.to_string();
            KeyValue::new("swirl.workflow.id", id)
        };
        if observed.transitions > 0 {
            self.transitions.add(observed.transitions, &[workflow()]);
        }
        for entry in &observed.history {
            match &entry.event {
                Event::InstanceStarted { .. } => self.started.add(1, &[workflow()]),
                Event::Ended { status, .. } => {
                    let status = Status::from(*status).as_str();
                    let attributes = [workflow(), KeyValue::new("swirl.instance.status", status)];
                    let took = entry.at.0.saturating_sub(observed.header.started_at.0);
                    self.ended.add(1, &attributes);
                    self.duration
                        .record(took.max(0) as f64 / 1000.0, &attributes);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn dropped_kept(&self, dropped: &KeptDropped) {
        let limit = match (&dropped.group, dropped.in_sets) {
            (None, false) => "all",
            (Some(KeptGroup::Workflow(_)), false) => "workflow",
            (Some(KeptGroup::Kind(_)), false) => "type",
            (None, true) => "sets",
            (Some(_), true) => "sets_workflow",
        };
        let limit = KeyValue::new("swirl.limit", limit);
        self.dropped_kept.add(dropped.events, &[limit]);
    }

    pub(crate) fn refused(&self) {
        self.refused.add(1, &[]);
    }

    pub(crate) fn called(&self, called: &Called<'_>) {
        let outcome = match called.outcome {
            CallOutcome::Done => "done",
            CallOutcome::Failed(_) => "failed",
            CallOutcome::Abandoned => "abandoned",
        };
        let took = called.to.0.saturating_sub(called.from.0).max(0) as f64 / 1000.0;
        let (header, function) = (called.header, called.function);
        let attributes = [
            KeyValue::new("swirl.workflow.id", header.definition.workflow.to_string()),
            KeyValue::new("swirl.function.name", function.name.clone()),
            KeyValue::new("swirl.function.type", function.kind.as_str().to_owned()),
            KeyValue::new("swirl.call.outcome", outcome),
        ];
        self.calls.record(took, &attributes);
    }

    pub(crate) fn shutdown(&self, limit: Duration) {
        if let Err(error) = self.provider.shutdown_with_timeout(limit) {
            tracing::debug!(%error, "the last metrics could not be sent");
        }
    }
}

fn record(histogram: &Histogram<f64>, operation: KeyValue, took: Duration, failed: bool) {
    let seconds = took.as_secs_f64();
    if failed {
        let error = KeyValue::new("error.type", "failed");
        histogram.record(seconds, &[operation, error]);
    } else {
        histogram.record(seconds, &[operation]);
    }
}
