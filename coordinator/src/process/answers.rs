//! Metrics of the API's requests, and of the events that come from outside.

use std::sync::Arc;

use swirl_service::Recent;
use swirl_telemetry::{Metrics, Served, Telemetry};

use crate::api::Answers;

/// Returns the recorder of the API's requests. `scheme`: how the API is served, `http` or `https`.
pub fn answers(telemetry: &Arc<Telemetry>, scheme: &'static str) -> Answers {
    let telemetry = telemetry.clone();
    Arc::new(move |answered| {
        telemetry.metrics().answered(
            answered.method,
            answered.route,
            answered.status,
            answered.took,
        );
        telemetry.served(&Served {
            method: answered.method,
            route: answered.route,
            path: &answered.path,
            scheme,
            host: answered.host.as_deref(),
            traceparent: answered.traceparent.as_deref(),
            status: answered.status,
            began: answered.began,
            took: answered.took,
        });
    })
}

/// Exposes the numbers of events by type and outcome.
pub fn count_events(metrics: &Metrics, recent: &Arc<Recent>) {
    let recent = recent.clone();
    metrics.watch_events(move || {
        let counts = recent.counts().into_iter();
        let counts = counts.map(|(kind, outcome, count)| (kind, outcome.to_string(), count));
        counts.collect()
    });
}
