//! Finds the tasks of DSL 1.0 that make requests, and the hosts of those requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swirl_engine::Definition;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::workflow::{ActionKind, Function, StateId, StateKind, Workflow};
use swirl_ports::{Filter, InstanceQueries};
use swirl_redis::Redis;
use swirl_scenario::requests::is_request;
use swirl_scenario::{Observed, RunError};
use swirl_spec::Reading;
use url::Url;

/// Why a workflow's calls can't be answered over HTTP.
pub fn unanswerable(workflow: &Workflow) -> Option<&'static str> {
    let mut functions = workflow.functions.iter();
    functions
        .any(|function| !function.place.is_empty() && !is_request(function))
        .then_some(
            "its tasks make calls other than requests over HTTP, which the mock can't answer",
        )
}

/// The hosts of a scenario's requests, as the run in virtual time has shown them.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    pub fn of(imagined: &Observed) -> Hosts {
        let calls = imagined.instances.iter().flat_map(|one| &one.calls);
        let requests = calls.filter_map(|call| call.request.as_ref());
        let urls = requests.filter_map(|request| Url::parse(&request.uri).ok());
        let origins: BTreeSet<String> =
            urls.map(|url| url.origin().ascii_serialization()).collect();
        Hosts(origins.into_iter().collect())
    }

    /// The entries of `functions.servers`: each host has a path of its own at the mock.
    pub fn servers(&self, mock: &str) -> String {
        let entries = self.0.iter().enumerate();
        let entries = entries.map(|(number, origin)| format!("{origin}={mock}/{number}"));
        entries.collect::<Vec<_>>().join(",")
    }

    /// The URL that was meant by a request to the mock.
    pub fn meant(&self, path: &str, query: Option<&str>) -> Option<Url> {
        let path = path.strip_prefix('/')?;
        let numbered = || {
            let (number, rest) = path.split_once('/')?;
            Some((self.0.get(number.parse::<usize>().ok()?)?, rest))
        };
        // A redirect to a path of the same host has lost the number.
        let alone = || match self.0.as_slice() {
            [origin] => Some((origin, path)),
            _ => None,
        };
        let (origin, rest) = numbered().or_else(alone)?;
        let mut url = Url::parse(&format!("{origin}/{rest}")).ok()?;
        url.set_query(query);
        Some(url)
    }
}

/// Knows the instances of a scenario by the keys of their calls.
pub struct Callers {
    redis: Redis,
    workflows: BTreeMap<String, Arc<Workflow>>,
}

impl Callers {
    pub fn new(redis: Redis, readings: &[(String, Reading)]) -> Callers {
        let workflows = readings.iter();
        let workflows = workflows.filter_map(|(_, reading)| reading.workflow.as_ref());
        Callers {
            redis,
            workflows: workflows
                .map(|workflow| {
                    let id = Definition::id_of(workflow).to_string();
                    (id, Arc::new(workflow.clone()))
                })
                .collect(),
        }
    }

    /// The instance and the function of the call with this key: `INSTANCE-SCOPE-CALL-START`. The call is in the history
    /// before it is made.
    pub async fn find(&self, key: &str) -> Result<Option<(String, Function)>, RunError> {
        let failed = |error: swirl_ports::Error| RunError::Failed(error.to_string());
        let mut parts = key.rsplitn(4, '-').skip(1);
        let call = parts.next().and_then(|call| call.parse::<u32>().ok());
        let (Some(call), Some(scope), Some(id)) = (call, parts.next(), parts.next()) else {
            return Ok(None);
        };
        let filter = Filter {
            limit: 10_000,
            ..Filter::default()
        };
        let all = self.redis.list(&filter).await.map_err(failed)?;
        let found = all.into_iter().find(|one| one.header.id.as_str() == id);
        let Some(header) = found.map(|one| one.header) else {
            return Ok(None);
        };
        let history = self.redis.history(&header.id).await.map_err(failed)?;
        let workflow = self.workflows.get(&header.definition.to_string());
        let function = workflow.and_then(|workflow| {
            let state = state_of(&history, scope, call)?;
            function_of(workflow, state)
        });
        Ok(function.map(|function| (id.to_owned(), function.clone())))
    }
}

/// The state in which a scope made a call.
fn state_of(history: &[HistoryEntry], scope: &str, wanted: u32) -> Option<StateId> {
    let mut current = None;
    for entry in history.iter().filter(|it| it.scope.as_str() == scope) {
        match &entry.event {
            Event::StateEntered { state, .. } => current = Some(*state),
            Event::ActionStarted { call, .. } if *call == wanted => return current,
            _ => {}
        }
    }
    None
}

fn function_of(workflow: &Workflow, state: StateId) -> Option<&Function> {
    let StateKind::Operation(list) = workflow[state].kind else {
        return None;
    };
    let action = workflow[list].actions.first()?;
    match &workflow[*action].kind {
        ActionKind::Call(call) => Some(&workflow[call.function]),
        _ => None,
    }
}
