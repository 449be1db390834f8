//! The observer, and how a process sets it up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanProcessor};
use swirl_model::ids::ScopeId;
use swirl_model::instance::Header;
use swirl_model::trace::TraceContext;
use swirl_ports::InstanceQueries;
use swirl_runtime::{CallOutcome, Called, Cause, Observed, Observer};
use tokio::sync::{mpsc, oneshot};

use crate::exchange_protocol;
use crate::export::{self, Error, Settings};
use crate::failures::Failures;
use crate::follow::Follower;
use crate::ids::{self, SpanSubject};
use crate::metrics::Metrics;
use crate::served::{self, Requests, Served};
use crate::span::{Span, SpanRole};

/// The number of commits that may wait to become spans. Further ones are dropped and counted.
const QUEUE_MAX: usize = 8192;

/// Traces and metrics of a process.
pub struct Telemetry {
    metrics: Arc<Metrics>,
    requests: Requests,
    traces: Option<Traces>,
}

struct Traces {
    ratio: f64,
    processor: Arc<BatchSpanProcessor>,
    queue: mpsc::Sender<Message>,
    dropped: AtomicU64,
}

enum Message {
    Commit(Observed),
    Flush(oneshot::Sender<()>),
}

impl Telemetry {
    /// Sends nothing if the settings have no endpoint. Must be called within a runtime.
    ///
    /// # Errors
    /// The endpoint or a header cannot be used.
    pub fn new(
        settings: &Settings,
        queries: Arc<dyn InstanceQueries>,
    ) -> Result<Arc<Telemetry>, Error> {
        let failures = Arc::new(Failures::default());
        let metrics = Arc::new(Metrics::new(settings, &failures)?);
        let traces = match export::spans(settings, &failures)? {
            None => None,
            Some(processor) => {
                let processor = Arc::new(processor);
                let (queue, message) = mpsc::channel(QUEUE_MAX);
                tokio::spawn(work(message, Follower::new(queries), processor.clone()));
                Some(Traces {
                    ratio: settings.sampling_ratio,
                    processor,
                    queue,
                    dropped: AtomicU64::new(0),
                })
            }
        };
        Ok(Arc::new(Telemetry {
            metrics,
            requests: Requests::of(&settings.instance),
            traces,
        }))
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Sends a span that belongs to no instance.
    pub(crate) fn send(&self, span: Span, trace: u128) {
        if let Some(traces) = &self.traces {
            traces.processor.on_end(span.in_trace(trace, Vec::new()));
        }
    }

    /// Records a request that the API has answered, as a span in the client's trace or in a new one. Health checks are
    /// not traced.
    pub fn served(&self, served: &Served<'_>) {
        let Some(traces) = &self.traces else { return };
        if !matches!(served.route, Some("/healthz" | "/metrics" | "/readyz"))
            && let Some((span, trace)) = served::span(served, &self.requests, traces.ratio)
        {
            self.send(span, trace);
        }
    }

    /// Sends the remaining data within this time limit.
    pub async fn shutdown(&self, limit: Duration) {
        let until = tokio::time::Instant::now() + limit;
        if let Some(traces) = &self.traces {
            let (done, waits) = oneshot::channel();
            let flush = async {
                if traces.queue.send(Message::Flush(done)).await.is_ok() {
                    let _ = waits.await;
                }
            };
            let _ = tokio::time::timeout_at(until, flush).await;
            let processor = traces.processor.clone();
            // The shutdown waits for the processor's own thread.
            let sent = tokio::task::spawn_blocking(move || processor.shutdown_with_timeout(limit));
            match tokio::time::timeout_at(until, sent).await {
                Ok(Ok(Ok(()))) => {}
                _ => tracing::warn!("not all spans were sent"),
            }
        }
        let metrics = self.metrics.clone();
        let sent = tokio::task::spawn_blocking(move || metrics.shutdown(limit));
        let _ = tokio::time::timeout_at(until, sent).await;
    }
}

impl Observer for Telemetry {
    fn follows(&self, header: &Header) -> bool {
        let traces = self.traces.as_ref();
        traces.is_some_and(|traces| ids::is_sampled(header, traces.ratio))
    }

    fn trace(&self, header: &Header) -> u128 {
        ids::trace(header)
    }

    fn context(&self, header: &Header, scope: &ScopeId, cause: Cause<'_>) -> TraceContext {
        let ratio = self.traces.as_ref().map_or(0.0, |traces| traces.ratio);
        let mut context = ids::context(header, scope, cause, ratio);
        // Without a collector there is no span to look for.
        context.sampled &= self.traces.is_some();
        context
    }

    fn committed(&self, observed: Observed) {
        self.metrics.committed(&observed);
        let Some(traces) = &self.traces else { return };
        if ids::is_sampled(&observed.header, traces.ratio) {
            traces.send(observed);
        }
    }

    fn refused(&self, _header: &Header) {
        self.metrics.refused();
    }

    fn called(&self, called: Called<'_>) {
        self.metrics.called(&called);
        let Some(traces) = &self.traces else { return };
        if ids::is_sampled(called.header, traces.ratio) {
            let data = call(&called).into_data(called.header, called.scope);
            traces.processor.on_end(data);
        }
    }
}

impl Traces {
    fn send(&self, observed: Observed) {
        if self.queue.try_send(Message::Commit(observed)).is_err() {
            let before = self.dropped.fetch_add(1, Ordering::Relaxed);
            if before.is_multiple_of(1000) {
                tracing::warn!("commits arrive faster than they become spans, so traces have gaps");
            }
        }
    }
}

async fn work(
    mut message: mpsc::Receiver<Message>,
    mut follower: Follower,
    processor: Arc<BatchSpanProcessor>,
) {
    while let Some(message) = message.recv().await {
        match message {
            Message::Commit(observed) => {
                for span in follower.follow(&observed).await {
                    processor.on_end(span.into_data(&observed.header, &observed.scope));
                }
            }
            Message::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}

/// Arguments and result are left out, since they may contain secrets.
fn call(called: &Called<'_>) -> Span {
    let (call, token) = (called.call, called.token);
    let id = |part| ids::span(&called.header.id, called.scope, part);
    let function = called.function.name.to_string();
    let mut attributes = vec![("swirl.function.name", function.into())];
    let mut kind = SpanRole::Client;
    if let Some(exchange) = &called.exchange {
        kind = exchange_protocol::describe(&exchange.protocol, &mut attributes);
        attributes.push(("server.address", exchange.host.clone().into()));
        let port = exchange.port.map(i64::from);
        attributes.extend(port.map(|port| ("server.port", port.into())));
    }
    Span {
        id: id(SpanSubject::Call { call, token }),
        parent: Some(id(SpanSubject::Numbered(call))),
        name: format!("call {}", called.function.name),
        kind,
        from: called.from,
        to: called.to,
        error: match called.outcome {
            CallOutcome::Done => None,
            CallOutcome::Failed(error) => Some(error.to_owned()),
            CallOutcome::Abandoned => Some("abandoned".to_owned()),
        },
        attributes,
        ..Span::default()
    }
}
