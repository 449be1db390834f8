//! Function calls and the secrets that they may need.

use std::sync::Arc;

use async_trait::async_trait;
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
    /// The secrets that the call may have used, to be cut out of what is kept or shown of it.
    pub secrets: Arc<Redactor>,
    /// The span of the call, for the service: `traceparent`.
    pub trace: Option<TraceContext>,
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
