//! Traces and metrics, as configured.

use std::sync::Arc;
use std::time::Duration;

use swirl_config::{Config, OtlpProtocol};
use swirl_functions::breaker::Breakers;
use swirl_nats::Count;
use swirl_telemetry::{Metrics, Protocol, Settings, Telemetry, Traced, Watched};

use crate::parts::Cluster;

/// The time that sending the last spans and metrics may take.
pub const FLUSH_MAX: Duration = Duration::from_secs(3);

/// Traces and metrics of this process, and the cluster with its operations measured. `role` and
/// `process` distinguish it from all others.
///
/// # Errors
/// The endpoint or a header cannot be used.
pub fn telemetry(
    cluster: Cluster,
    config: &Config,
    role: &str,
    process: &str,
) -> anyhow::Result<(Cluster, Arc<Telemetry>)> {
    let settings = settings(config, role, process);
    let telemetry = Telemetry::new(&settings, cluster.store.clone())?;
    let metrics = telemetry.metrics();
    let counts = cluster.streams.counts().clone();
    metrics.watch(Watched::Redeliveries, move || of(counts.redelivered()));
    let counts = cluster.streams.counts().clone();
    metrics.watch(Watched::DeadLetters, move || of(counts.dead()));
    let registry = cluster.registry.clone();
    metrics.watch(Watched::StartsRefused, move || {
        vec![("", registry.rates().put_off().refused())]
    });
    let mut cluster = cluster.measured(metrics);
    cluster.events = Arc::new(Traced::new(cluster.events, telemetry.clone()));
    Ok((cluster, telemetry))
}

/// Reports the circuits of the hosts that a worker calls.
pub fn watch_circuits(metrics: &Metrics, breakers: Option<&Arc<Breakers>>) {
    let Some(breakers) = breakers.cloned() else {
        return;
    };
    metrics.watch(Watched::Circuits, move || {
        let circuits = breakers.circuits();
        vec![("open", circuits.open), ("half_open", circuits.half_open)]
    });
}

fn of(count: Count) -> Vec<(&'static str, u64)> {
    vec![("tasks", count.tasks), ("events", count.events)]
}

pub fn settings(config: &Config, role: &str, process: &str) -> Settings {
    let namespace = config.namespace.clone();
    let config = &config.telemetry;
    let headers = config.headers.iter();
    let mut attributes = vec![("swirl.role".to_owned(), role.to_owned())];
    let given = config.resource_attributes.iter();
    attributes.extend(given.map(|(name, value)| (name.clone(), value.clone())));
    Settings {
        endpoint: config
            .otlp_endpoint
            .as_ref()
            .map(|endpoint| endpoint.expose().to_string()),
        protocol: match config.protocol {
            OtlpProtocol::Grpc => Protocol::Grpc,
            OtlpProtocol::Http => Protocol::Http,
        },
        headers: headers
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect(),
        sampling_ratio: config.sampling_ratio,
        resource_attributes: attributes,
        namespace: Some(namespace),
        instance: process.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
