//! Ids of traces and spans.

use swirl_model::CloudEvent;
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::Header;
use swirl_model::trace::TraceContext;
use swirl_runtime::Cause;

/// The subject of a span within its instance and scope.
#[derive(Debug, Clone, Copy)]
pub enum SpanSubject<'a> {
    /// The beginning of an instance, which is the parent of everything that it does; for a branch, the branch.
    Scope,
    /// An instance from its start to its end. A faulted instance has one more for each time that an operator lets it
    /// continue.
    Run(u32),
    State(u32),
    /// Anything with one of the scope's sequence numbers, such as an attempt or a fork.
    Numbered(u32),
    Call {
        call: u32,
        token: u64,
    },
    Consumed(u32),
    Produced(&'a str),
}

pub fn trace(header: &Header) -> u128 {
    let mut bytes = [0; 16];
    hash(&mut bytes, &["trace", &header.trace_root()]);
    u128::from_be_bytes(bytes).max(1)
}

pub fn span(instance: &InstanceId, scope: &ScopeId, part: SpanSubject<'_>) -> u64 {
    let (kind, number) = match part {
        SpanSubject::Scope => ("scope", String::new()),
        SpanSubject::Run(run) => ("run", run.to_string()),
        SpanSubject::State(count) => ("state", count.to_string()),
        SpanSubject::Numbered(seq) => ("seq", seq.to_string()),
        SpanSubject::Call { call, token } => ("call", format!("{call}.{token}")),
        SpanSubject::Consumed(count) => ("consumed", count.to_string()),
        SpanSubject::Produced(id) => ("produced", id.to_owned()),
    };
    let mut bytes = [0; 8];
    let parts = ["span", instance.as_str(), scope.as_str(), kind, &number];
    hash(&mut bytes, &parts);
    u64::from_be_bytes(bytes).max(1)
}

/// The parent of the span of a scope.
pub fn parent(header: &Header, scope: &ScopeId) -> Option<u64> {
    let mut parts = scope.as_str().rsplitn(3, '.');
    if let (Some(_), Some(fork), Some(outer)) = (parts.next(), parts.next(), parts.next()) {
        let part = SpanSubject::Numbered(fork.parse().unwrap_or_default());
        return Some(span(&header.id, &ScopeId::new(outer), part));
    }
    // A continuation also has its predecessor's parent, but belongs to its predecessor first.
    if let Some(before) = &header.continued_from {
        return Some(span(before, &ScopeId::root(), SpanSubject::Scope));
    }
    let parent = header.parent.as_ref()?;
    let part = SpanSubject::Numbered(parent.call);
    Some(span(&parent.scope.instance, &parent.scope.scope, part))
}

/// The span of processing an event.
pub fn taken_in(event: &CloudEvent, context: TraceContext) -> u64 {
    let mut bytes = [0; 8];
    hash(
        &mut bytes,
        &["taken in", &event.key(), &context.to_string()],
    );
    u64::from_be_bytes(bytes).max(1)
}

/// Whether the trace is kept, as the starter decided or by its id.
pub fn is_sampled(header: &Header, ratio: f64) -> bool {
    match header.trace.cause {
        Some(cause) => cause.sampled,
        None => is_kept(trace(header), ratio),
    }
}

/// Whether a trace is kept, by its id alone.
pub fn is_kept(trace: u128, ratio: f64) -> bool {
    // The low 56 bits, as in the consistent sampling of W3C's second level.
    let low = trace & ((1 << 56) - 1);
    (low as f64) < ratio * (1u64 << 56) as f64
}

pub fn context(header: &Header, scope: &ScopeId, cause: Cause<'_>, ratio: f64) -> TraceContext {
    let part = match cause {
        Cause::Call { call, token } => SpanSubject::Call { call, token },
        Cause::Event(id) => SpanSubject::Produced(id),
    };
    TraceContext {
        trace: trace(header),
        span: span(&header.id, scope, part),
        sampled: is_sampled(header, ratio),
    }
}

fn hash(out: &mut [u8], parts: &[&str]) {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize_xof().fill(out);
}
