//! Function calls and the secrets that they may need.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::channel::oneshot;
use serde_json::Value;
use swirl_model::ids::{DefinitionId, ScopeRef};
use swirl_model::messages::Consumes;
use swirl_model::redact::Redactor;
use swirl_model::time::Timestamp;
use swirl_model::trace::TraceContext;
use swirl_model::workflow::{AuthScheme, Function, Workflow};
use swirl_model::{Data, WorkflowError};

/// One attempt of a function call. Calls happen at least once: a call that is repeated after a crash has the same key,
/// and a retry has a new one.
#[derive(Debug, Clone)]
pub struct CallRequest {
    pub definition: DefinitionId,
    pub function: Arc<Function>,
    pub scope: ScopeRef,
    /// May contain secrets, so it must never be logged or stored.
    pub arguments: Data,
    pub selection_set: Option<String>,
    /// `Idempotency-Key`.
    pub key: String,
    /// When the attempt began.
    pub at: Timestamp,
    pub auth: Option<CallAuth>,
    /// The secrets that the call may have used. They are removed from everything about the call that is stored or
    /// shown.
    pub secrets: Arc<Redactor>,
    /// The span of the call, which the service receives as `traceparent`.
    pub trace: Option<TraceContext>,
    /// The caller records its exchange with the service here.
    pub last_exchange: LastExchange,
    /// For callers that have to do something once their result is stored.
    pub stored: Stored,
    /// Of a call that takes messages: its result is the list of them.
    pub consumes: Option<Arc<dyn Consumes>>,
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
        /// Without credentials and without the values of the query.
        url: String,
        /// `None` until a response has arrived.
        status: Option<u16>,
    },
    Grpc {
        /// Includes the package.
        service: String,
        method: String,
        /// `None` until a response has arrived; 0 is success.
        status: Option<i32>,
    },
    Message {
        /// The broker, as OpenTelemetry names it.
        system: &'static str,
        /// A subject, topic, channel or queue.
        destination: String,
        /// The call waits for a message instead of sending one.
        receives: bool,
    },
}

/// The last exchange of a call. Clones share it, so it is available even if the call is abandoned.
#[derive(Debug, Clone, Default)]
pub struct LastExchange(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    exchange: Option<Exchange>,
    credentials: Option<SentCredentials>,
}

/// The `Authorization` header that a call sent last: its scheme and its parameter. It is never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct SentCredentials(pub Arc<str>);

impl std::fmt::Debug for SentCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl LastExchange {
    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, exchange: Exchange) {
        self.lock().exchange = Some(exchange);
    }

    pub fn get(&self) -> Option<Exchange> {
        self.lock().exchange.clone()
    }

    pub fn note_credentials(&self, header: &str) {
        self.lock().credentials = Some(SentCredentials(header.into()));
    }

    pub fn credentials(&self) -> Option<SentCredentials> {
        self.lock().credentials.clone()
    }
}

/// Tells a caller that its result has been stored. Clones share it. When the last clone is dropped, the result was
/// discarded.
#[derive(Debug, Clone, Default)]
pub struct Stored(Arc<Mutex<Option<oneshot::Sender<StoredAck>>>>);

/// The other end of [`Stored`].
#[derive(Debug)]
pub struct StoredWatch(oneshot::Receiver<StoredAck>);

/// Says that the result has been stored. The caller drops it once it has reacted.
#[derive(Debug)]
pub struct StoredAck(#[expect(dead_code, reason = "its drop is the message")] oneshot::Sender<()>);

impl Stored {
    /// Called by the caller, once per call.
    pub fn watch(&self) -> StoredWatch {
        let (sender, receiver) = oneshot::channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        StoredWatch(receiver)
    }

    /// Notifies the caller, if it is watching, and waits until it has reacted.
    pub async fn notify(self) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (ack, acted) = oneshot::channel();
        if let Some(sender) = sender
            && sender.send(StoredAck(ack)).is_ok()
        {
            // The caller drops its end without sending a value.
            let _ = acted.await;
        }
    }
}

impl StoredWatch {
    /// Waits until the result is stored. `None` means that this process discarded the result.
    pub async fn stored(self) -> Option<StoredAck> {
        self.0.await.ok()
    }
}

/// An `auth` definition with its properties evaluated. It must never be logged or stored.
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

    /// Ends the subscriptions of a scope that go on behind its calls ([`Consumes::subscription`]), apart from these.
    fn keep_subscriptions(&self, _scope: &ScopeRef, _numbers: &[u32]) {}
}

#[async_trait]
pub trait Secrets: Send + Sync {
    /// The values of these secrets, as an object. Secrets without a value are missing from it.
    async fn get(&self, names: &[String]) -> Data;

    /// The values of the secrets of a workflow.
    async fn of(&self, workflow: &Workflow) -> Data {
        if workflow.secrets.is_empty() {
            return Data::NULL;
        }
        let mut values = self.get(&workflow.secrets).await;
        for name in &workflow.secret_objects {
            if let Some(object) = values.get(name).as_ref().and_then(object_in) {
                values.set(name, object);
            }
        }
        values
    }
}

/// The object that a text holds as JSON or YAML. Where secrets are given as texts, there is no other way to give one.
fn object_in(secret: &Data) -> Option<Data> {
    let text = secret.as_str()?;
    let options = serde_saphyr::options! { strict_booleans: true };
    let value: Value = serde_saphyr::from_str_with_options(text, options).ok()?;
    value.is_object().then(|| Data::from(value))
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[test]
    fn a_text_can_hold_an_object() {
        let object = data!({"username": "u", "password": "1234"});
        let json = r#"{"username": "u", "password": "1234"}"#;
        for text in [json, "username: u\npassword: '1234'\n"] {
            assert_eq!(object_in(&Data::string(text)), Some(object.clone()));
        }
        for other in ["t0ken", "", "[1]", "{", "a: [", "a: b: c"] {
            assert_eq!(object_in(&Data::string(other)), None, "{other}");
        }
        assert_eq!(object_in(&object), None);
    }
}
