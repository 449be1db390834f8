//! The services that the workflows call. Each continues the trace of its caller.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use futures::StreamExt as _;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use serde_json::json;
use swirl_servers::NatsServer;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;

use super::spans::Sender;

const TRACEPARENT: &str = "traceparent";
/// Longer than any workflow waits.
const SLOW: Duration = Duration::from_secs(20);

pub struct Shop {
    pub http: SocketAddr,
    pub grpc: SocketAddr,
}

#[derive(Clone)]
struct Service {
    sender: Sender,
    /// The instances whose first call of `flaky` has failed.
    failed: Arc<Mutex<HashSet<String>>>,
}

impl Shop {
    pub async fn start(sender: Sender, nats: &NatsServer) -> Result<Shop> {
        let service = Service {
            sender,
            failed: Arc::default(),
        };
        let http = TcpListener::bind("127.0.0.1:0").await?;
        let grpc = TcpListener::bind("127.0.0.1:0").await?;
        let shop = Shop {
            http: http.local_addr()?,
            grpc: grpc.local_addr()?,
        };
        let router = Router::new()
            .route("/{service}", any(of_service))
            .route("/{service}/{what}", any(answer))
            .with_state(service.clone());
        tokio::spawn(async move { axum::serve(http, router).await });
        let server = tonic::transport::Server::builder();
        let routes = { server }.add_service(TraceServiceServer::new(service.clone()));
        tokio::spawn(routes.serve_with_incoming(TcpListenerStream::new(grpc)));
        let client = async_nats::connect(nats.url()).await?;
        let mut messages = client.subscribe("shop.>").await?;
        client.flush().await?;
        tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                let caller = message
                    .headers
                    .as_ref()
                    .and_then(|all| all.get(TRACEPARENT));
                let caller = caller.map(ToString::to_string).unwrap_or_default();
                service
                    .continued("shop-nats", message.subject.as_str(), &caller)
                    .await;
                if let Some(reply) = message.reply {
                    // The caller notices if it doesn't arrive.
                    let _ = client.publish(reply, "{}".into()).await;
                }
            }
        });
        Ok(shop)
    }
}

impl Service {
    /// A trace that can't be continued is missing in the comparison.
    async fn continued(&self, service: &str, name: &str, caller: &str) {
        if let Err(error) = self.sender.answered(service, name, caller).await {
            crate::say(&format!("{service} {name} has no span: {error:#}"));
        }
    }
}

async fn of_service(
    state: State<Service>,
    Path(service): Path<String>,
    headers: HeaderMap,
) -> Response {
    answer(state, Path((service, String::new())), headers).await
}

async fn answer(
    State(state): State<Service>,
    Path((service, what)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let caller = header(TRACEPARENT);
    let name = format!("{service} {what}");
    state
        .continued(&format!("shop-{service}"), name.trim_end(), &caller)
        .await;
    match (service.as_str(), what.as_str()) {
        (_, "slow") => tokio::time::sleep(SLOW).await,
        (_, "busy") => return StatusCode::BAD_REQUEST.into_response(),
        (_, "flaky") => {
            // The ids of a trace are the same for all attempts.
            let trace = caller.split('-').nth(1).unwrap_or_default().to_owned();
            let mut failed = state.failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.insert(trace) {
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
        }
        ("graphql", _) => return Json(json!({"data": {"price": {"cents": 3}}})).into_response(),
        ("odata", _) => return Json(json!({"value": []})).into_response(),
        _ => {}
    }
    Json(json!({})).into_response()
}

/// A service of gRPC whose code exists already.
#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, Status> {
        let caller = request.metadata().get(TRACEPARENT);
        let caller = caller
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        self.continued("shop-grpc", "Export", caller).await;
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}
