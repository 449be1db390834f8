//! A collector: takes spans over gRPC and HTTP on one port.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

#[derive(Clone, Default)]
pub struct Receiver {
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Receiver {
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
        let routes = routes.add_service(TraceServiceServer::new(receiver.clone()));
        let server = tonic::transport::Server::builder().accept_http1(true);
        let serving = { server }.add_routes(routes);
        tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
        (receiver, address)
    }

    /// With the `service.instance.id` of who sent them.
    pub fn spans(&self) -> Vec<(String, Span)> {
        let mut all = Vec::new();
        for request in &*self.requests.lock().unwrap() {
            for of_process in &request.resource_spans {
                let resource = of_process.resource.as_ref().unwrap();
                let sender = resource
                    .attributes
                    .iter()
                    .find(|attribute| attribute.key == "service.instance.id");
                let sender = format!("{:?}", sender.unwrap().value);
                for of_scope in &of_process.scope_spans {
                    let spans = of_scope.spans.iter();
                    all.extend(spans.map(|span| (sender.clone(), span.clone())));
                }
            }
        }
        all
    }

    fn take(&self, request: ExportTraceServiceRequest) {
        self.requests.lock().unwrap().push(request);
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
