//! Makes calls in a simulation: with the real callers, and without a network.

use std::pin::pin;
use std::sync::{Arc, LazyLock};

use swirl_model::ids::DefinitionId;
use swirl_model::workflow::{Function, Workflow};
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, FunctionCaller};
use tokio::runtime::Runtime;

use crate::caller::Caller;
use crate::http::{Http, HttpConfig};
use crate::simulated::{Simulation, within};
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
    pub fn new() -> Option<Simulator> {
        RUNTIME.as_ref()?;
        let http = HTTP.as_ref()?.clone();
        Some(Simulator(Caller::new(http.simulating())))
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

    /// The outcome of a call whose requests the simulation answers. It takes as long as the answers do; one that waits
    /// for anything else never ends.
    pub async fn call(
        &self,
        request: CallRequest,
        simulation: Arc<dyn Simulation>,
    ) -> Result<Data, WorkflowError> {
        let mut call = pin!(within(simulation, self.0.call(request)));
        std::future::poll_fn(|context| {
            let _entered = RUNTIME.as_ref().map(Runtime::enter);
            call.as_mut().poll(context)
        })
        .await
    }
}
