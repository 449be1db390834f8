//! Function calls and the secrets that they may need.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::channel::oneshot;
use swirl_model::ids::{DefinitionId, ScopeRef};
use swirl_model::redact::Redactor;
use swirl_model::time::Timestamp;
use swirl_model::trace::TraceContext;
use swirl_model::workflow::{AuthScheme, Function};
use swirl_model::{Data, WorkflowError};

/// One attempt of a function call. Calls are at least once: the same call repeated after a crash
/// has the same key, a retry has another.
#[derive(Debug, Clone)]
pub struct CallRequest {
    pub definition: DefinitionId,
    pub function: Arc<Function>,
    pub scope: ScopeRef,
    /// May hold secrets: never to be logged or stored.
    pub arguments: Data,
    pub selection_set: Option<String>,
    /// `Idempotency-Key`.
    pub key: String,
    /// When the attempt began.
    pub at: Timestamp,
    pub auth: Option<CallAuth>,
    /// The secrets that the call may have used, to be cut out of its kept or shown parts.
    pub secrets: Arc<Redactor>,
    /// The span of the call, for the service: `traceparent`.
    pub trace: Option<TraceContext>,
    /// The caller records here which service it called.
    pub seen: Seen,
    /// For a caller that has something to do once its result is stored.
    pub stored: Stored,
}

/// An exchange with a service that a call made, for traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub host: String,
    pub port: Option<u16>,
    pub protocol: ExchangeProtocol,
}

/// The protocol, and the protocol's own details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeProtocol {
    Http {
        method: String,
        /// Without credentials, and without the values of its query.
        url: String,
        /// None until an answer has come.
        status: Option<u16>,
    },
    Grpc {
        /// With its package.
        service: String,
        method: String,
        /// None until an answer has come; 0 is success.
        status: Option<i32>,
    },
    Message {
        /// The broker, as OpenTelemetry names it.
        system: &'static str,
        /// Subject, topic, channel or queue.
        destination: String,
        /// Waited for, instead of sent.
        receives: bool,
    },
}

/// The last exchange of a call. Clones share it, so it is also known if the call is abandoned.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<Option<Exchange>>>);

impl Seen {
    pub fn note(&self, exchange: Exchange) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(exchange);
    }

    pub fn get(&self) -> Option<Exchange> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

/// Tells a caller that its result has been stored. Clones share it; when the last one is dropped, the result is given up.
#[derive(Debug, Clone, Default)]
pub struct Stored(Arc<Mutex<Option<oneshot::Sender<StoredAck>>>>);

/// The other end of [`Stored`].
#[derive(Debug)]
pub struct Storing(oneshot::Receiver<StoredAck>);

/// The result has been stored: to be dropped when the caller has done what it does then.
#[derive(Debug)]
pub struct StoredAck(#[expect(dead_code, reason = "its drop is the message")] oneshot::Sender<()>);

impl Stored {
    /// For the caller, once for a call.
    pub fn watch(&self) -> Storing {
        let (sender, receiver) = oneshot::channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        Storing(receiver)
    }

    /// Tells the caller, if it wants to know, and waits until it has acted on that.
    pub async fn notify(self) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (ack, acted) = oneshot::channel();
        if let Some(sender) = sender
            && sender.send(StoredAck(ack)).is_ok()
        {
            // It is dropped, without a value.
            let _ = acted.await;
        }
    }
}

impl Storing {
    /// `None`: the result is given up, by this process.
    pub async fn stored(self) -> Option<StoredAck> {
        self.0.await.ok()
    }
}

/// An `auth` definition with its properties evaluated. Never to be logged or stored.
#[derive(Clone)]
pub struct CallAuth {
    pub name: String,
    pub scheme: AuthScheme,
    pub properties: Data,
}

impl std::fmt::Debug for CallAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallAuth({}, {:?}, ...)", self.name, self.scheme)
    }
}

#[async_trait]
pub trait FunctionCaller: Send + Sync {
    /// Makes the call. Dropping the future aborts it.
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError>;
}

#[async_trait]
pub trait Secrets: Send + Sync {
    /// The values of these names, as an object; names without a value are missing in it.
    async fn get(&self, names: &[String]) -> Data;
}
