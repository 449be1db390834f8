//! The driver's [`FunctionCaller`]: it passes a call of a definition's function to the caller for the function's type.
//!
//! [`Caller::prepare`] compiles a definition's functions when it is deployed or loaded; a call only looks up the
//! compiled form. The documents needed for that are kept with the definition, so nothing is fetched here.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use swirl_model::error::names;
use swirl_model::ids::{DefinitionId, ScopeRef};
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{
    ActionKind, AuthId, Function, FunctionId, FunctionKind, Period, Workflow,
};
use swirl_model::{Data, WorkflowError};
use swirl_ports::{CallRequest, FunctionCaller};
use url::Url;

use crate::CallError;
use crate::auth::Auth;
use crate::breaker::{self, Breakers};
use crate::exchange;
use crate::http::Http;
use crate::problem::Problem;
use crate::types::{
    self, Checks, Clients, Compiled, CompiledFunctions, Context, Documents, Settings, asyncapi,
    asyncapi::Brokers, custom::CustomCaller, process::ProcessCaller, rest::Library,
    rest::RestCaller, rpc, rpc::RpcCaller, service::Services,
};

/// The client's own limit for a call is this much longer than the call's `actionExecTimeout`, so that the engine's
/// timeout, which the definition can handle by name, comes first.
const MARGIN: Duration = Duration::from_secs(5);

/// A document that a deployment must fetch before [`Caller::prepare`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// Without a fragment.
    pub uri: String,
    /// The definition's auth for fetching the document (`authRef.resource`; language 0.8, "Auth Definition").
    pub auth: Option<AuthId>,
}

/// Finds the documents that a definition's functions need, including those that other documents refer to.
#[derive(Debug)]
pub struct Gather<'a> {
    workflow: &'a Workflow,
    settings: &'a Settings,
    library: Library,
}

impl<'a> Gather<'a> {
    pub fn new(workflow: &'a Workflow, settings: &'a Settings) -> Gather<'a> {
        Gather {
            workflow,
            settings,
            library: Library::default(),
        }
    }

    /// The missing documents, as far as the available ones show them. Call this again until there are none. Errors in a
    /// document are reported by [`Caller::prepare`].
    pub fn missing(&mut self, resources: &[(String, String)]) -> Vec<Needed> {
        let documents = Documents {
            resources,
            settings: self.settings,
        };
        let mut all = Caller::needs(self.workflow);
        all.retain(|needed| documents.get(&needed.uri).is_none());
        for function in &self.workflow.functions {
            let others = match function.kind {
                FunctionKind::Asyncapi => asyncapi::missing(function, &documents)
                    .into_iter()
                    .collect(),
                FunctionKind::Rpc => rpc::imports(function, &documents),
                FunctionKind::Rest => {
                    let missing = self.library.missing(function, &documents);
                    missing.into_iter().collect()
                }
                _ => continue,
            };
            for uri in others {
                // Credentials are sent only to the host that they are for.
                let near = types::find(types::word(&function.kind))
                    .and_then(|kind| (kind.document)(function))
                    .is_some_and(|own| same_origin(own, &uri));
                let auth = function.resource_auth.filter(|_| near);
                match all.iter_mut().find(|known| known.uri == uri) {
                    Some(known) => known.auth = known.auth.or(auth),
                    None => all.push(Needed { uri, auth }),
                }
            }
        }
        all
    }
}

fn same_origin(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => one.origin() == other.origin(),
        _ => false,
    }
}

/// Calls the functions of all prepared definitions over shared connections.
pub struct Caller {
    clients: Arc<Clients>,
    settings: Settings,
    /// The limit for a call whose actions have no timeout.
    timeout: Duration,
    definitions: RwLock<HashMap<DefinitionId, Arc<Prepared>>>,
}

/// By the keys of functions.
type Prepared = HashMap<String, PreparedFunction>;

struct PreparedFunction {
    compiled: Compiled,
    timeout: Duration,
    /// The time after which a call is late: the engine's own timeout if there is one.
    late: Duration,
}

impl Caller {
    pub fn new(http: Http) -> Caller {
        Caller::with_settings(http, Settings::default())
    }

    pub fn with_settings(http: Http, settings: Settings) -> Caller {
        let http = http.redirecting(&settings.servers);
        Caller {
            timeout: http.config().timeout,
            clients: Arc::new_cyclic(|own| Clients {
                own: own.clone(),
                brokers: Brokers::default(),
                custom: CustomCaller::new(http.clone(), settings.connector_environment.clone()),
                processes: ProcessCaller::new(
                    settings.processes.clone(),
                    http.config().response_bytes_max,
                ),
                rpc: RpcCaller::new(http.clone()),
                rest: RestCaller::new(http.clone()),
                services: Services::new(http),
            }),
            settings,
            definitions: RwLock::default(),
        }
    }

    /// The operator's settings for the function types.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The circuits of the hosts that are called over HTTP and gRPC, or `None` if circuit breakers are off.
    pub fn breakers(&self) -> Option<&Arc<Breakers>> {
        self.clients.services.http().breakers()
    }

    /// The documents that a definition's functions refer to, each once. Documents that the reader itself fetches
    /// (lists, schemas) aren't among them.
    pub fn needs(workflow: &Workflow) -> Vec<Needed> {
        let mut needed: Vec<Needed> = Vec::new();
        for function in &workflow.functions {
            let kind = types::find(types::word(&function.kind));
            let Some(uri) = kind.and_then(|kind| (kind.document)(function)) else {
                continue;
            };
            let auth = function.resource_auth;
            match needed.iter_mut().find(|known| known.uri == uri) {
                Some(known) => known.auth = known.auth.or(auth),
                None => needed.push(Needed {
                    uri: uri.to_owned(),
                    auth,
                }),
            }
        }
        needed
    }

    /// Collects the documents that the functions of a workflow need, see [`Gather`].
    pub fn gather<'a>(&'a self, workflow: &'a Workflow) -> Gather<'a> {
        Gather::new(workflow, &self.settings)
    }

    /// Compiles a definition's functions, and finds the reasons why calls would fail whatever the data, according to
    /// the documents that describe the functions. A definition that was deployed before isn't checked again.
    /// `resources` are the documents, by their URI as the definition writes it.
    pub fn check(
        &self,
        workflow: &Workflow,
        resources: &[(String, String)],
    ) -> (CompiledFunctions, Vec<Problem>) {
        let checks = Checks::new(workflow, resources, &self.settings);
        let problems = checks.calls(workflow);
        (checks.into_functions(), problems)
    }

    /// Compiles a definition's functions and keeps them, see [`Caller::keep`].
    ///
    /// # Errors
    /// As for [`Caller::keep`].
    pub fn prepare(
        &self,
        definition: &DefinitionId,
        workflow: &Workflow,
        resources: &[(String, String)],
    ) -> Result<(), Vec<Problem>> {
        let mut functions = CompiledFunctions::new(workflow, resources, &self.settings);
        functions.release_documents();
        self.keep(definition, workflow, functions)
    }

    /// Keeps the functions of a definition for [`FunctionCaller::call`], instead of those that are kept already.
    ///
    /// # Errors
    /// All problems, in the order of the functions. Nothing is kept in that case.
    pub fn keep(
        &self,
        definition: &DefinitionId,
        workflow: &Workflow,
        functions: CompiledFunctions,
    ) -> Result<(), Vec<Problem>> {
        let problems = functions.problems(workflow);
        if !problems.is_empty() {
            return Err(problems);
        }
        self.keep_callable(definition, workflow, functions);
        Ok(())
    }

    /// The same, without those that cannot be called.
    pub(crate) fn keep_callable(
        &self,
        definition: &DefinitionId,
        workflow: &Workflow,
        functions: CompiledFunctions,
    ) {
        let mut prepared = Prepared::new();
        let all = workflow.functions.iter().zip(functions.into_callable());
        for (index, (function, compiled)) in all.enumerate() {
            let Some(compiled) = compiled else { continue };
            let (late, timeout) = self.limits_of(workflow, FunctionId(index as u32));
            let entry = PreparedFunction {
                compiled,
                timeout,
                late,
            };
            prepared.insert(function.key().to_owned(), entry);
        }
        let mut definitions = self
            .definitions
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        definitions.insert(definition.clone(), Arc::new(prepared));
    }

    /// The longest timeout of any action that calls this function, and the client's limit derived from it. An action
    /// without a timeout has the client's default.
    fn limits_of(&self, workflow: &Workflow, id: FunctionId) -> (Duration, Duration) {
        let processes = self.settings.processes.timeout;
        if types::is_process(&workflow[id]) {
            return (processes, processes.saturating_add(MARGIN));
        }
        let limits = workflow
            .actions
            .iter()
            .filter_map(|action| match &action.kind {
                ActionKind::Call(call) if call.function == id && call.subscription.is_some() => {
                    let limit = processes.saturating_add(MARGIN);
                    Some((limit, limit))
                }
                ActionKind::Call(call) if call.function == id => Some(match &action.timeout {
                    Some(timeout) => (fixed(timeout), fixed(timeout).saturating_add(MARGIN)),
                    None => (self.timeout, self.timeout),
                }),
                _ => None,
            });
        let longest = limits.max_by_key(|(_, limit)| *limit);
        longest.unwrap_or((self.timeout, self.timeout))
    }

    /// Whether a function of a definition is kept for calls.
    pub(crate) fn has(&self, definition: &DefinitionId, function: &Function) -> bool {
        let prepared = self.entry(definition);
        prepared.is_some_and(|all| all.contains_key(function.key()))
    }

    fn entry(&self, definition: &DefinitionId) -> Option<Arc<Prepared>> {
        let definitions = self
            .definitions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        definitions.get(definition).cloned()
    }
}

/// Credentials that a request can't be made with. A task (DSL 1.0) has no name for them.
fn unreadable(mut error: CallError, name: &str, is_task: bool) -> CallError {
    if is_task {
        error.message = error
            .message
            .replace("the auth definition", "the authentication");
        return types::task_answer::in_words(error);
    }
    error.message = format!("auth `{name}`: {}", error.message);
    error
}

#[async_trait]
impl FunctionCaller for Caller {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        let prepared = self.entry(&request.definition);
        let Some(entry) = prepared
            .as_ref()
            .and_then(|all| all.get(request.function.key()))
        else {
            return Err(unknown(&request, prepared.is_some()));
        };
        let auth = match &request.auth {
            None => None,
            Some(auth) => {
                let read = Auth::from_properties(auth.scheme, &auth.properties);
                Some(read.map_err(|error| {
                    let is_task = !request.function.place.is_empty();
                    WorkflowError::from(&unreadable(error, &auth.name, is_task))
                })?)
            }
        };
        // A subscription with a span ends by itself.
        let span = request.consumes.as_ref().and_then(|rule| rule.span());
        let own = span.map(|span| span.saturating_add(MARGIN));
        let context = Context {
            auth: auth.as_ref(),
            timeout: own.unwrap_or(entry.timeout),
        };
        let call = entry.compiled.call(&self.clients, &request, &context);
        let call = exchange::noted(request.last_exchange.clone(), request.secrets.clone(), call);
        let result = breaker::with_limit(own.unwrap_or(entry.late), call).await;
        result.map_err(|error| {
            let is_exact = error.exact.is_some();
            let mut error = WorkflowError::from(&error);
            let mut shown = error.clone();
            request.secrets.error(&mut shown);
            tracing::debug!(function = %request.function.name, error = %shown, "a call failed");
            // The message is our own and quotes the service's answer. Handlers match by name and code.
            if !is_exact {
                request.secrets.message(&mut error);
            }
            error
        })
    }

    fn keep_subscriptions(&self, scope: &ScopeRef, numbers: &[u32]) {
        self.clients.brokers.subscriptions.keep(scope, numbers);
    }
}

fn unknown(request: &CallRequest, is_prepared: bool) -> WorkflowError {
    let function = &request.function;
    let message = if types::find(types::word(&function.kind)).is_none() {
        format!(
            "function `{}`: {}",
            function.name,
            types::no_caller(&function.kind)
        )
    } else if is_prepared {
        format!(
            "the definition {} has no function `{}`",
            request.definition, function.name
        )
    } else {
        format!(
            "function `{}`: the definition {} isn't loaded on this worker",
            function.name, request.definition
        )
    };
    WorkflowError {
        code: Some("function".to_owned()),
        ..WorkflowError::new(names::FUNCTION_ERROR, message)
    }
}

/// The upper bound of a duration. A month counts as 31 days. If only the instance knows the duration, its own timer
/// ends the call, and the client's limit is a day.
fn fixed(period: &Period) -> Duration {
    const DAY: IsoDuration = IsoDuration::from_secs(24 * 3600);
    let duration = period.fixed().unwrap_or(DAY);
    const MONTH: Duration = Duration::from_secs(31 * 24 * 3600);
    MONTH
        .saturating_mul(duration.months)
        .saturating_add(Duration::from_millis(duration.millis))
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller")
            .field("clients", &self.clients)
            .finish_non_exhaustive()
    }
}
