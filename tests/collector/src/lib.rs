//! A collector for tests. It receives spans and metrics through OTLP, with gRPC and HTTP on one port.
#![allow(clippy::unwrap_used, reason = "a test's part")]

use std::collections::BTreeSet;

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
pub use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
pub use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

#[derive(Clone, Default)]
pub struct Receiver {
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    metrics: Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
}

impl Receiver {
    /// Serves until the runtime ends; also returns its address.
    pub async fn serve() -> (Receiver, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let receiver = Receiver::default();
        let own = receiver.clone();
        let http = Router::new().route(
            "/v1/traces",
            post(async move |body: Bytes| {
                match ExportTraceServiceRequest::decode(body) {
                    Ok(request) => own.take(request),
                    Err(_) => return StatusCode::BAD_REQUEST,
                }
                StatusCode::OK
            }),
        );
        let routes = tonic::service::Routes::from(http);
        let routes = routes
            .add_service(TraceServiceServer::new(receiver.clone()))
            .add_service(MetricsServiceServer::new(receiver.clone()));
        let server = tonic::transport::Server::builder().accept_http1(true);
        let serving = { server }.add_routes(routes);
        tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
        (receiver, address)
    }

    /// The spans, each with its sender's `service.instance.id`.
    pub fn spans(&self) -> Vec<(String, Span)> {
        let mut all = Vec::new();
        for request in &*self.requests.lock().unwrap() {
            for of_process in &request.resource_spans {
                let sender = sender(of_process.resource.as_ref().unwrap());
                for of_scope in &of_process.scope_spans {
                    let spans = of_scope.spans.iter();
                    all.extend(spans.map(|span| (sender.clone(), span.clone())));
                }
            }
        }
        all
    }

    /// The senders of metrics, and the names of the metrics.
    pub fn metrics(&self) -> BTreeSet<(String, String)> {
        let mut all = BTreeSet::new();
        for request in &*self.metrics.lock().unwrap() {
            for of_process in &request.resource_metrics {
                let sender = sender(of_process.resource.as_ref().unwrap());
                let scopes = of_process.scope_metrics.iter();
                for metric in scopes.flat_map(|of_scope| &of_scope.metrics) {
                    all.insert((sender.clone(), metric.name.clone()));
                }
            }
        }
        all
    }

    fn take(&self, request: ExportTraceServiceRequest) {
        self.requests.lock().unwrap().push(request);
    }
}

/// The attribute of a span with this name.
pub fn attribute(span: &Span, name: &str) -> Option<Value> {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|attribute| attribute.key == name)?;
    found.value.as_ref()?.value.clone()
}

/// The process's `service.instance.id`.
fn sender(resource: &Resource) -> String {
    let mut attributes = resource.attributes.iter();
    let found = attributes.find(|attribute| attribute.key == "service.instance.id");
    let value = found.unwrap().value.as_ref().unwrap().value.clone();
    match value {
        Some(Value::StringValue(text)) => text,
        other => panic!("a process is called {other:?}"),
    }
}

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.take(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Receiver {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.metrics.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}
