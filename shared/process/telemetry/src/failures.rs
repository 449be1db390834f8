//! Telemetry that the collector didn't accept, counted and occasionally logged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// How often failures are logged. An unavailable collector refuses a batch every other second.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// How the exporters end their errors if the collector has no service for a signal: over gRPC, and over HTTP.
const NO_METRICS: [&str; 2] = ["gRPC code: Unimplemented", "status code: 404"];

/// The number of batches that were not accepted.
#[derive(Debug, Default)]
pub struct Failures {
    traces: AtomicU64,
    metrics: AtomicU64,
    logged: Mutex<Option<Instant>>,
    /// That the collector takes no metrics has been logged.
    without_metrics: AtomicBool,
}

impl Failures {
    /// The numbers by signal.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("metrics", self.metrics.load(Ordering::Relaxed)),
            ("traces", self.traces.load(Ordering::Relaxed)),
        ]
    }

    /// A collector for traces alone, such as Jaeger, refuses metrics each time. They are not lost where Prometheus reads
    /// them, so that is no failure.
    fn takes_no_metrics(&self, done: &OTelSdkResult) -> bool {
        let Err(error) = done else { return false };
        let error = error.to_string();
        let has_none = NO_METRICS.iter().any(|answer| error.ends_with(answer));
        if has_none && !self.without_metrics.swap(true, Ordering::Relaxed) {
            tracing::info!("the collector doesn't accept metrics: they are only at /metrics");
        }
        has_none
    }

    fn note(&self, counter: &AtomicU64, signal: &'static str, done: &OTelSdkResult) {
        let Err(error) = done else { return };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
            *logged = Some(Instant::now());
            tracing::warn!(%error, signal, "the collector does not accept telemetry, which is lost");
        }
    }
}

/// An exporter that counts failures.
#[derive(Debug)]
pub struct Noted<E> {
    pub exporter: E,
    pub failures: Arc<Failures>,
}

impl<E: SpanExporter> SpanExporter for Noted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let done = self.exporter.export(batch).await;
        self.failures.note(&self.failures.traces, "traces", &done);
        done
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Noted<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let done = self.exporter.export(metrics).await;
        if self.failures.takes_no_metrics(&done) {
            return Ok(());
        }
        self.failures.note(&self.failures.metrics, "metrics", &done);
        done
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;

    #[test]
    fn a_collector_for_traces_alone_is_no_failure() {
        let failures = Failures::default();
        let fails = |message: &str| Err(OTelSdkError::InternalFailure(message.to_owned()));
        for message in [
            "TonicMetricsClient export failed with gRPC code: Unimplemented",
            "HTTP export failed with status code: 404",
        ] {
            assert!(failures.takes_no_metrics(&fails(message)), "{message}");
        }
        let down = fails("TonicMetricsClient export failed with gRPC code: Unavailable");
        assert!(!failures.takes_no_metrics(&down));
        assert!(!failures.takes_no_metrics(&Ok(())));
    }
}
