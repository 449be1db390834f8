//! Spans that the services send.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use tonic::transport::Channel;

/// OTLP's number for a server span.
const SERVER: i32 = 2;

/// `traceparent`
#[derive(Debug, Clone, Copy)]
pub struct Context {
    trace: [u8; 16],
    span: [u8; 8],
}

/// A new trace and its first span. `number` distinguishes those of a run.
pub fn random_context(number: u64) -> Context {
    let now = now().to_be_bytes();
    let mut trace = [0; 16];
    trace[..8].copy_from_slice(&now);
    trace[8..].copy_from_slice(&number.to_be_bytes());
    Context { trace, span: now }
}

fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = u128::from_be_bytes(self.trace);
        write!(
            f,
            "00-{trace:032x}-{:016x}-01",
            u64::from_be_bytes(self.span)
        )
    }
}

impl FromStr for Context {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Context> {
        let ["00", trace, span, _] = text.split('-').collect::<Vec<_>>()[..] else {
            bail!("'{text}' is no traceparent");
        };
        Ok(Context {
            trace: u128::from_str_radix(trace, 16)
                .context("a trace's id")?
                .to_be_bytes(),
            span: u64::from_str_radix(span, 16)
                .context("a span's id")?
                .to_be_bytes(),
        })
    }
}

/// Sends each span at once.
#[derive(Clone)]
pub struct Sender {
    client: TraceServiceClient<Channel>,
}

impl Sender {
    /// `endpoint`: `http://HOST:PORT` of OTLP over gRPC.
    pub async fn connect(endpoint: &str) -> Result<Sender> {
        let client = TraceServiceClient::connect(endpoint.to_owned()).await?;
        Ok(Sender { client })
    }

    /// A service's span below the caller's.
    pub async fn answered(&self, service: &str, name: &str, caller: &str) -> Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let caller: Context = caller.parse()?;
        let span = now() ^ COUNT.fetch_add(1, Ordering::Relaxed).rotate_right(8);
        let own = Context {
            span: span.to_be_bytes(),
            ..caller
        };
        self.send(service, name, Some(caller), own).await
    }

    pub async fn send(
        &self,
        service: &str,
        name: &str,
        parent: Option<Context>,
        own: Context,
    ) -> Result<()> {
        let span = Span {
            trace_id: own.trace.to_vec(),
            span_id: own.span.to_vec(),
            parent_span_id: parent.map(|it| it.span.to_vec()).unwrap_or_default(),
            name: name.to_owned(),
            kind: SERVER,
            start_time_unix_nano: now(),
            end_time_unix_nano: now(),
            ..Span::default()
        };
        let name = KeyValue {
            key: "service.name".to_owned(),
            value: Some(AnyValue {
                value: Some(Value::StringValue(service.to_owned())),
            }),
            ..KeyValue::default()
        };
        let of_service = ResourceSpans {
            resource: Some(Resource {
                attributes: vec![name],
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                spans: vec![span],
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![of_service],
        };
        self.client.clone().export(request).await?;
        Ok(())
    }
}
