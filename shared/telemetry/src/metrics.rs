//! What is counted and measured. Sent over OTLP where there is an endpoint, and read by Prometheus.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder, Registry, TextEncoder};
use swirl_model::event::Event;
use swirl_model::instance::Status;
use swirl_runtime::{CallOutcome, Called, Observed};

use crate::export::{self, Error, Settings};

/// In seconds: from a call on the same machine to one that takes its time.
const SECONDS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0,
];

/// The content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub struct Metrics {
    provider: SdkMeterProvider,
    registry: Registry,
    started: Counter<u64>,
    ended: Counter<u64>,
    duration: Histogram<f64>,
    commits: Counter<u64>,
    refused: Counter<u64>,
    calls: Histogram<f64>,
}

impl Metrics {
    pub(crate) fn new(settings: &Settings) -> Result<Metrics, Error> {
        let registry = Registry::new();
        let reader = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .build()
            .map_err(|error| Error::Setup(error.to_string()))?;
        let mut provider = SdkMeterProvider::builder()
            .with_resource(export::resource(settings))
            .with_reader(reader);
        if let Some(exporter) = export::metrics(settings)? {
            provider = provider.with_periodic_exporter(exporter);
        }
        let provider = provider.build();
        let meter = provider.meter("swirl");
        let counter = |name: &'static str, what: &'static str| {
            meter.u64_counter(name).with_description(what).build()
        };
        let seconds = |name: &'static str, what: &'static str| {
            meter
                .f64_histogram(name)
                .with_description(what)
                .with_unit("s")
                .with_boundaries(SECONDS.to_vec())
                .build()
        };
        Ok(Metrics {
            started: counter("swirl.instances.started", "Instances that began."),
            ended: counter("swirl.instances.ended", "Instances that ended."),
            duration: seconds("swirl.instance.duration", "From start to end."),
            commits: counter("swirl.commits", "Commits that took effect."),
            refused: counter(
                "swirl.commits.refused",
                "Commits that a lost lease or a change by others kept from taking effect.",
            ),
            calls: seconds("swirl.call.duration", "Calls of functions."),
            provider,
            registry,
        })
    }

    /// In the text format of Prometheus; see [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// What was gathered cannot be written down.
    pub fn text(&self) -> Result<String, Error> {
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .map_err(|error| Error::Setup(error.to_string()))?;
        String::from_utf8(text).map_err(|error| Error::Setup(error.to_string()))
    }

    pub(crate) fn committed(&self, observed: &Observed) {
        self.commits.add(1, &[]);
        let workflow = || {
            let id = observed.header.definition.workflow.to_string();
            KeyValue::new("swirl.workflow.id", id)
        };
        for entry in &observed.history {
            match &entry.event {
                Event::InstanceStarted => self.started.add(1, &[workflow()]),
                Event::Ended { status, .. } => {
                    let status = Status::from(*status).word();
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
        let attributes = [
            KeyValue::new(
                "swirl.workflow.id",
                called.header.definition.workflow.to_string(),
            ),
            KeyValue::new("swirl.function.name", called.function.name.clone()),
            KeyValue::new("swirl.call.outcome", outcome),
        ];
        self.calls.record(took, &attributes);
    }

    pub(crate) fn shutdown(&self, limit: Duration) {
        if let Err(error) = self.provider.shutdown_with_timeout(limit) {
            tracing::debug!(%error, "the last metrics were not sent");
        }
    }
}
