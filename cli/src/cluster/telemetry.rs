//! Traces and metrics, as configured.

use std::sync::Arc;
use std::time::Duration;

use swirl_telemetry::{Protocol, Settings, Telemetry};

use super::parts::Cluster;
use crate::config::{self, OtlpProtocol};

/// How long the last spans and metrics may take to be sent.
pub const FLUSH_MAX: Duration = Duration::from_secs(3);

/// # Errors
/// The endpoint or a header cannot be used.
pub fn telemetry(
    cluster: &Cluster,
    config: &config::Telemetry,
    process: &str,
) -> anyhow::Result<Arc<Telemetry>> {
    let headers = config.headers.iter();
    let attributes = config.resource_attributes.iter();
    let settings = Settings {
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
        resource_attributes: attributes
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        instance: process.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(Telemetry::new(&settings, cluster.store.clone())?)
}
