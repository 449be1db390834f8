//! Servers on free ports, and functions that call them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;
use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::servers::Servers;
use swirl_functions::{Caller, Settings};
use swirl_model::ids::{DefinitionId, InstanceId, ScopeRef};
use swirl_model::messages::Consumes;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{AuthScheme, Function, FunctionKind, Workflow};
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::call::CallAuth;
use swirl_ports::{CallRequest, FunctionCaller as _, Stored};
use tokio::net::TcpListener;

/// A request that a server received.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

/// A server's answer to a request: status, content type and body.
pub type Answer = (u16, &'static str, String);

type Answering = Arc<dyn Fn(&Seen) -> Answer + Send + Sync>;

#[derive(Clone)]
struct Shared {
    answer: Answering,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A server that returns prepared answers and records the requests.
pub struct Server {
    pub base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub async fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Server {
        let seen = Arc::default();
        let shared = Shared {
            answer: Arc::new(answer),
            seen: Arc::clone(&seen),
        };
        let router = Router::new().fallback(handle).with_state(shared);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Server { base, seen }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn handle(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 1], String) {
    let seen = Seen {
        method,
        uri,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    shared.seen.lock().unwrap().push(seen.clone());
    let (status, content_type, body) = (shared.answer)(&seen);
    if status == 0 {
        std::future::pending::<()>().await;
    }
    (
        StatusCode::from_u16(status).unwrap(),
        [("content-type", content_type)],
        body,
    )
}

pub fn json(status: u16, body: &Value) -> Answer {
    (status, "application/json", body.to_string())
}

pub fn config() -> HttpConfig {
    HttpConfig {
        timeout: Duration::from_secs(60),
        proxy_from_env: false,
        ..HttpConfig::default()
    }
}

/// A callable function.
pub struct Callable {
    caller: Caller,
    function: Function,
}

impl Callable {
    pub fn new(kind: FunctionKind, operation: &str) -> Callable {
        Callable::with(kind, operation, Data::NULL, &[], config()).unwrap()
    }

    /// # Errors
    /// The problem that deployment reports.
    pub fn with(
        kind: FunctionKind,
        operation: &str,
        metadata: Data,
        documents: &[(&str, &str)],
        config: HttpConfig,
    ) -> Result<Callable, String> {
        Callable::among(&[], kind, operation, metadata, documents, config)
    }

    /// The same with addresses of the operator's, as `NAME=ADDRESS`. The function's name is `f`.
    ///
    /// # Errors
    /// The problem that deployment reports.
    pub fn among(
        servers: &[String],
        kind: FunctionKind,
        operation: &str,
        metadata: Data,
        documents: &[(&str, &str)],
        config: HttpConfig,
    ) -> Result<Callable, String> {
        let function = Function {
            name: "f".into(),
            kind,
            operation: operation.to_owned(),
            place: String::new(),
            resource_auth: None,
            auth: None,
            metadata,
            within: None,
        };
        let workflow = Workflow {
            functions: vec![function.clone()],
            ..Workflow::default()
        };
        let resources: Vec<(String, String)> = documents
            .iter()
            .map(|(uri, text)| ((*uri).to_owned(), (*text).to_owned()))
            .collect();
        let settings = Settings {
            servers: Servers::parse(servers).unwrap(),
            ..Settings::default()
        };
        let caller = Caller::with_settings(Http::new(config).unwrap(), settings);
        // The given documents contain the requested ones and those that they refer to.
        let mut asked: Vec<(String, String)> = Vec::new();
        loop {
            let missing = caller.gather(&workflow).missing(&asked);
            let Some(needed) = missing.first() else { break };
            let given = resources.iter().find(|(uri, _)| *uri == needed.uri);
            match given {
                Some(given) => asked.push(given.clone()),
                None => break,
            }
        }
        assert_eq!(asked.len(), resources.len(), "{asked:?}");
        caller
            .prepare(&definition(), &workflow, &resources)
            .map_err(|problems| problems[0].message.clone())?;
        Ok(Callable { caller, function })
    }

    pub async fn call(&self, arguments: Data) -> Result<Data, WorkflowError> {
        self.request(arguments, None, None).await
    }

    pub async fn select(&self, arguments: Data, selection: &str) -> Result<Data, WorkflowError> {
        self.request(arguments, Some(selection), None).await
    }

    fn made(
        &self,
        arguments: Data,
        selection: Option<&str>,
        auth: Option<(AuthScheme, Data)>,
    ) -> CallRequest {
        let auth = auth.map(|(scheme, properties)| CallAuth {
            name: "own".to_owned(),
            scheme,
            properties,
        });
        CallRequest {
            trace: None,
            definition: definition(),
            function: Arc::new(self.function.clone()),
            scope: ScopeRef::root(InstanceId::new("shop-1")),
            arguments,
            selection_set: selection.map(str::to_owned),
            key: "key-1".to_owned(),
            secrets: Default::default(),
            last_exchange: Default::default(),
            stored: Default::default(),
            consumes: None,
            at: Timestamp::default(),
            auth,
        }
    }

    pub async fn request(
        &self,
        arguments: Data,
        selection: Option<&str>,
        auth: Option<(AuthScheme, Data)>,
    ) -> Result<Data, WorkflowError> {
        let request = self.made(arguments, selection, auth);
        let stored = request.stored.clone();
        let result = self.caller.call(request).await;
        stored.notify().await;
        result
    }

    /// Takes several messages.
    pub async fn take(&self, rule: impl Consumes + 'static) -> Result<Data, WorkflowError> {
        self.take_of(Data::object(), rule).await
    }

    pub async fn take_of(
        &self,
        arguments: Data,
        rule: impl Consumes + 'static,
    ) -> Result<Data, WorkflowError> {
        let mut request = self.made(arguments, None, None);
        request.consumes = Some(Arc::new(rule));
        let stored = request.stored.clone();
        let result = self.caller.call(request).await;
        stored.notify().await;
        result
    }

    /// The same, and the handle for reporting that the result is stored.
    pub async fn take_unstored(
        &self,
        rule: impl Consumes + 'static,
    ) -> (Result<Data, WorkflowError>, Stored) {
        let mut request = self.made(Data::object(), None, None);
        request.consumes = Some(Arc::new(rule));
        let stored = request.stored.clone();
        (self.caller.call(request).await, stored)
    }

    /// Ends the other subscriptions.
    pub fn keep_subscriptions(&self, numbers: &[u32]) {
        let scope = ScopeRef::root(InstanceId::new("shop-1"));
        self.caller.keep_subscriptions(&scope, numbers);
    }

    /// The result, and the handle for reporting that it is stored.
    pub async fn call_unstored(&self, arguments: Data) -> (Result<Data, WorkflowError>, Stored) {
        let request = self.made(arguments, None, None);
        let stored = request.stored.clone();
        (self.caller.call(request).await, stored)
    }
}

fn definition() -> DefinitionId {
    DefinitionId {
        workflow: "shop".into(),
        version: "1.0.0".into(),
    }
}

/// Name, code and status of an error, and its message.
pub fn error_parts(error: WorkflowError) -> (String, String, Option<u16>, String) {
    let code = error.code.unwrap_or_default();
    (error.name, code, error.status, error.message)
}

pub fn basic(username: &str, password: &str) -> Option<(AuthScheme, Data)> {
    let properties = data!({"username": username, "password": password});
    Some((AuthScheme::Basic, properties))
}

pub fn bearer(token: &str) -> Option<(AuthScheme, Data)> {
    Some((AuthScheme::Bearer, data!({"token": token})))
}
