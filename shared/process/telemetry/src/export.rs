//! Exports spans and metrics: OTLP, by gRPC or HTTP, in batches.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::{Key, KeyValue};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol as Wire, SpanExporter, WithExportConfig,
    WithHttpConfig, WithTonicConfig,
};
use opentelemetry_prometheus::PrometheusExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanProcessor};
use prometheus::Registry;
use tokio::runtime::Handle;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

use crate::failures::{Failures, Noted};

/// The number of spans that may wait to be sent. Further ones are dropped.
const SPANS_MAX: usize = 16_384;
const BATCH_MAX: usize = 512;
const BATCH_EVERY: Duration = Duration::from_secs(2);
/// The time limit for sending a batch.
const SEND_MAX: Duration = Duration::from_secs(10);
/// The largest response of a collector, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The attribute that distinguishes teams.
const NAMESPACE: &str = "swirl.namespace";

#[derive(Clone)]
pub struct Settings {
    /// A URL such as `http://127.0.0.1:4317`. Without it, nothing is sent.
    pub endpoint: Option<String>,
    pub protocol: Protocol,
    /// Secret, so it must never be logged.
    pub headers: Vec<(String, String)>,
    /// The part of the traces that is kept, unless the caller has decided.
    pub sampling_ratio: f64,
    pub resource_attributes: Vec<(String, String)>,
    /// The owner of the instances, if several teams share servers.
    pub namespace: Option<String>,
    /// The name that distinguishes this process from others.
    pub instance: String,
    pub version: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Grpc,
    Http,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the OTLP endpoint {0} cannot be used")]
    Endpoint(String),
    #[error("the OTLP header {0} cannot be sent")]
    Header(String),
    #[error("telemetry cannot be set up: {0}")]
    Setup(String),
}

impl From<ExporterBuildError> for Error {
    fn from(error: ExporterBuildError) -> Error {
        Error::Setup(error.to_string())
    }
}

pub fn resource(settings: &Settings) -> Resource {
    let given = settings.resource_attributes.iter();
    let namespace = settings.namespace.iter();
    Resource::builder_empty()
        .with_attribute(KeyValue::new("service.name", "swirl"))
        .with_attribute(KeyValue::new(
            "service.instance.id",
            settings.instance.clone(),
        ))
        .with_attribute(KeyValue::new("service.version", settings.version.clone()))
        .with_attributes(namespace.map(|name| KeyValue::new(NAMESPACE, name.clone())))
        .with_attributes(given.map(|(name, value)| KeyValue::new(name.clone(), value.clone())))
        .build()
}

/// The exporter that Prometheus reads. The resource is a separate metric (`target_info`); every other metric has only
/// its namespace, as a label. As a label of the registry it would occur twice in `target_info`, and Prometheus would
/// refuse everything.
pub fn prometheus(registry: &Registry) -> Result<PrometheusExporter, Error> {
    opentelemetry_prometheus::exporter()
        .with_registry(registry.clone())
        .with_resource_selector(HashSet::from([Key::from_static_str(NAMESPACE)]))
        .build()
        .map_err(|error| Error::Setup(error.to_string()))
}

pub fn spans(
    settings: &Settings,
    failures: &Arc<Failures>,
) -> Result<Option<BatchSpanProcessor>, Error> {
    let Some(endpoint) = &settings.endpoint else {
        return Ok(None);
    };
    let exporter = match settings.protocol {
        Protocol::Grpc => SpanExporter::builder()
            .with_tonic()
            .with_channel(channel(endpoint)?)
            .with_timeout(SEND_MAX)
            .with_metadata(metadata(settings)?)
            .build()?,
        Protocol::Http => SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new()?)
            .with_endpoint(signal(endpoint, "v1/traces"))
            .with_protocol(Wire::HttpBinary)
            .with_timeout(SEND_MAX)
            .with_headers(headers(settings))
            .build()?,
    };
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(SPANS_MAX)
        .with_max_export_batch_size(BATCH_MAX)
        .with_scheduled_delay(BATCH_EVERY)
        .build();
    let failures = failures.clone();
    let exporter = Noted { exporter, failures };
    let mut processor = BatchSpanProcessor::builder(exporter)
        .with_batch_config(batches)
        .build();
    processor.set_resource(&resource(settings));
    Ok(Some(processor))
}

pub fn metrics(
    settings: &Settings,
    failures: &Arc<Failures>,
) -> Result<Option<Noted<MetricExporter>>, Error> {
    let Some(endpoint) = &settings.endpoint else {
        return Ok(None);
    };
    let exporter = match settings.protocol {
        Protocol::Grpc => MetricExporter::builder()
            .with_tonic()
            .with_channel(channel(endpoint)?)
            .with_timeout(SEND_MAX)
            .with_metadata(metadata(settings)?)
            .build()?,
        Protocol::Http => MetricExporter::builder()
            .with_http()
            .with_http_client(Client::new()?)
            .with_endpoint(signal(endpoint, "v1/metrics"))
            .with_protocol(Wire::HttpBinary)
            .with_timeout(SEND_MAX)
            .with_headers(headers(settings))
            .build()?,
    };
    let failures = failures.clone();
    Ok(Some(Noted { exporter, failures }))
}

/// Connects when there is something to send, and again after the connection is lost.
fn channel(endpoint: &str) -> Result<Channel, Error> {
    let wrong = |_| Error::Endpoint(endpoint.to_owned());
    let mut channel = Endpoint::from_shared(endpoint.to_owned())
        .map_err(wrong)?
        .timeout(SEND_MAX)
        .connect_timeout(SEND_MAX);
    if endpoint.starts_with("https:") {
        let tls = ClientTlsConfig::new().with_native_roots();
        channel = channel.tls_config(tls).map_err(wrong)?;
    }
    Ok(channel.connect_lazy())
}

fn metadata(settings: &Settings) -> Result<MetadataMap, Error> {
    let mut map = MetadataMap::new();
    for (name, value) in &settings.headers {
        let wrong = || Error::Header(name.clone());
        let key = AsciiMetadataKey::from_bytes(name.to_ascii_lowercase().as_bytes());
        let mut value = AsciiMetadataValue::try_from(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        map.insert(key.map_err(|_| wrong())?, value);
    }
    Ok(map)
}

fn headers(settings: &Settings) -> HashMap<String, String> {
    settings.headers.iter().cloned().collect()
}

/// In OTLP, the path of a signal is appended to the endpoint.
fn signal(endpoint: &str, path: &str) -> String {
    format!("{}/{path}", endpoint.trim_end_matches('/'))
}

fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Sends on the runtime, since the SDK's thread has none.
struct Client {
    http: reqwest::Client,
    runtime: Handle,
}

impl Client {
    fn new() -> Result<Client, Error> {
        let setup = |error: &dyn fmt::Display| Error::Setup(error.to_string());
        Ok(Client {
            http: reqwest::Client::builder()
                .tls_backend_preconfigured(tls().map_err(|error| setup(&error))?)
                .timeout(SEND_MAX)
                .build()
                .map_err(|error| setup(&error))?,
            runtime: Handle::try_current().map_err(|error| setup(&error))?,
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let sent = send(self.http.clone(), request);
        self.runtime.spawn(sent).await?
    }
}

async fn send(
    client: reqwest::Client,
    request: http::Request<Bytes>,
) -> Result<http::Response<Bytes>, HttpError> {
    let mut answer = client.execute(request.try_into()?).await?;
    let mut response = http::Response::new(Bytes::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("the collector's response is too long".into());
        }
        body.extend_from_slice(&chunk);
    }
    *response.body_mut() = body.into();
    Ok(response)
}
