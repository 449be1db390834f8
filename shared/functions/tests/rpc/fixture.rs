//! Definitions with functions of `users.proto`, and calls of those functions.

use std::sync::Arc;
use std::time::Duration;

use swirl_functions::Settings;
use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::{Caller, Problem};
use swirl_model::ids::{DefinitionId, InstanceId, ScopeRef};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{AuthScheme, Function, FunctionKind, Workflow};
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::call::CallAuth;
use swirl_ports::{CallRequest, FunctionCaller as _};

use crate::rpc::service;

pub const URI: &str = "file://users.proto";
/// Longer than any call takes. The rest of it is the deadline that is sent to servers.
pub const TIMEOUT: Duration = Duration::from_secs(90);

pub fn config() -> HttpConfig {
    HttpConfig {
        timeout: TIMEOUT,
        proxy_from_env: false,
        ..HttpConfig::default()
    }
}

pub fn function(operation: &str, metadata: Data) -> Function {
    Function {
        name: "f".into(),
        kind: FunctionKind::Rpc,
        operation: operation.to_owned(),
        place: String::new(),
        resource_auth: None,
        auth: None,
        metadata,
        within: None,
    }
}

pub fn definition() -> DefinitionId {
    DefinitionId {
        workflow: "shop".into(),
        version: "1.0.0".into(),
    }
}

pub fn prepare(caller: &Caller, function: &Function, proto: &str) -> Result<(), Vec<Problem>> {
    let workflow = Workflow {
        functions: vec![function.clone()],
        ..Workflow::default()
    };
    let resources = [(URI.to_owned(), proto.to_owned())];
    caller.prepare(&definition(), &workflow, &resources)
}

/// A function that can be called.
pub struct Callable {
    caller: Caller,
    function: Function,
}

impl Callable {
    pub fn new(server: &str, method: &str, config: HttpConfig) -> Callable {
        Callable::with_settings(server, method, config, Settings::default())
    }

    pub fn with_settings(
        server: &str,
        method: &str,
        config: HttpConfig,
        settings: Settings,
    ) -> Callable {
        let caller = Caller::with_settings(Http::new(config).unwrap(), settings);
        let operation = format!("{URI}#UserService#{method}");
        let function = function(&operation, data!({"server": server}));
        prepare(&caller, &function, service::PROTO).unwrap();
        Callable { caller, function }
    }

    pub async fn call(&self, arguments: Data) -> Result<Data, WorkflowError> {
        self.call_with(arguments, None).await
    }

    pub async fn call_with(
        &self,
        arguments: Data,
        auth: Option<(AuthScheme, Data)>,
    ) -> Result<Data, WorkflowError> {
        let auth = auth.map(|(scheme, properties)| CallAuth {
            name: "shop".to_owned(),
            scheme,
            properties,
        });
        let request = CallRequest {
            trace: None,
            definition: definition(),
            function: Arc::new(self.function.clone()),
            scope: ScopeRef::root(InstanceId::new("shop-1")),
            arguments,
            selection_set: None,
            key: "key-1".to_owned(),
            secrets: Default::default(),
            last_exchange: Default::default(),
            stored: Default::default(),
            consumes: None,
            at: Timestamp::default(),
            auth,
        };
        self.caller.call(request).await
    }

    /// The code and message of the failure.
    pub async fn fails(&self, arguments: Data) -> (String, String) {
        let error = self.call(arguments).await.unwrap_err();
        (error.code.unwrap(), error.message)
    }
}

/// Calls one method of a server that the test itself runs.
pub async fn call(method: &str, arguments: Data) -> Result<Data, WorkflowError> {
    let (server, _) = service::serve().await;
    Callable::new(&server, method, config())
        .call(arguments)
        .await
}
