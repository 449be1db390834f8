//! Makes calls in a simulation: with the real callers, and without a network.

use std::sync::{Arc, LazyLock};

use futures::FutureExt as _;
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::{Function, Workflow};
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, FunctionCaller};
use tokio::runtime::Runtime;

use crate::caller::Caller;
use crate::http::{Http, HttpConfig};
use crate::simulated::Simulation;
use crate::types::CompiledFunctions;

/// All simulations share its TLS configuration, which reads the host's certificates.
static HTTP: LazyLock<Option<Http>> = LazyLock::new(|| {
    let config = HttpConfig {
        proxy_from_env: false,
        ..HttpConfig::default()
    };
    Http::new(config).ok()
});

/// Timers of callers need one. No simulated call waits for them.
static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().ok()
});

/// Calls functions whose services a simulation answers.
#[derive(Debug)]
pub struct Simulator(Caller);

impl Simulator {
    /// `None`: this machine can't make requests at all.
    pub fn new(simulation: Arc<dyn Simulation>) -> Option<Simulator> {
        let http = HTTP.as_ref()?.clone();
        Some(Simulator(Caller::new(http.simulating(simulation))))
    }

    /// Compiles the functions of a definition, as far as they can be called.
    pub fn prepare(
        &self,
        definition: &DefinitionId,
        workflow: &Workflow,
        resources: &[(String, String)],
    ) {
        let functions = CompiledFunctions::new(workflow, resources, self.0.settings());
        self.0.keep_callable(definition, workflow, functions);
    }

    pub fn has(&self, definition: &DefinitionId, function: &Function) -> bool {
        self.0.has(definition, function)
    }

    /// The outcome of a call, or `None` if it waits for something other than a simulated answer.
    pub fn call(&self, request: CallRequest) -> Option<Result<Data, WorkflowError>> {
        let _context = RUNTIME.as_ref()?.enter();
        self.0.call(request).now_or_never()
    }
}
