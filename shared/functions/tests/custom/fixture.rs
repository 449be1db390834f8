//! Definitions with a function of a custom type, and calls of that function.

use std::sync::Arc;

use swirl_functions::Settings;
use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::types::custom::Connectors;
use swirl_functions::{Caller, Problem};
use swirl_model::ids::{DefinitionId, InstanceId, ScopeRef};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{AuthId, AuthScheme, Function, FunctionKind, Workflow};
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::call::CallAuth;
use swirl_ports::{CallRequest, FunctionCaller as _, LastExchange};

pub fn config() -> HttpConfig {
    HttpConfig {
        timeout: swirl_servers::PATIENCE,
        proxy_from_env: false,
        ..HttpConfig::default()
    }
}

pub fn caller(connector: &str, config: HttpConfig) -> Caller {
    let settings = Settings {
        connectors: Connectors::parse(&[connector]).unwrap(),
        ..Settings::default()
    };
    Caller::with_settings(Http::new(config).unwrap(), settings)
}

pub fn function(kind: &str, auth: bool) -> Function {
    Function {
        name: "send".into(),
        kind: FunctionKind::Custom(kind.to_owned()),
        operation: "order.ts#main".to_owned(),
        place: String::new(),
        resource_auth: None,
        auth: auth.then_some(AuthId(0)),
        metadata: data!({"team": "shop"}),
        within: None,
    }
}

pub fn definition() -> DefinitionId {
    DefinitionId {
        workflow: "shop".into(),
        version: "1.0.0".into(),
    }
}

pub fn prepare(caller: &Caller, function: &Function) -> Result<(), Vec<Problem>> {
    let workflow = Workflow {
        functions: vec![function.clone()],
        ..Workflow::default()
    };
    caller.prepare(&definition(), &workflow, &[])
}

pub async fn call(
    caller: &Caller,
    arguments: Data,
    auth: Option<(AuthScheme, Data)>,
) -> Result<Data, WorkflowError> {
    call_with_exchange(caller, arguments, auth, LastExchange::default()).await
}

/// `last_exchange`: records which service the call contacted.
pub async fn call_with_exchange(
    caller: &Caller,
    arguments: Data,
    auth: Option<(AuthScheme, Data)>,
    last_exchange: LastExchange,
) -> Result<Data, WorkflowError> {
    let function = function("mail", false);
    call_function(caller, function, arguments, auth, last_exchange).await
}

pub async fn call_function(
    caller: &Caller,
    function: Function,
    arguments: Data,
    auth: Option<(AuthScheme, Data)>,
    last_exchange: LastExchange,
) -> Result<Data, WorkflowError> {
    prepare(caller, &function).unwrap();
    let auth = auth.map(|(scheme, properties)| CallAuth {
        name: "shop".to_owned(),
        scheme,
        properties,
    });
    let request = CallRequest {
        trace: None,
        definition: definition(),
        function: Arc::new(function),
        scope: ScopeRef::root(InstanceId::new("shop-1")),
        arguments,
        selection_set: None,
        key: "key-1".to_owned(),
        secrets: Default::default(),
        last_exchange,
        stored: Default::default(),
        consumes: None,
        at: Timestamp::default(),
        auth,
    };
    caller.call(request).await
}

/// A connector's input for the call above.
pub fn as_sent(arguments: Data) -> Data {
    let mut as_sent = data!({"function": "send", "type": "mail", "operation": "order.ts#main",
        "metadata": {"team": "shop"}, "workflow": {"id": "shop", "version": "1.0.0"},
        "instance": "shop-1", "key": "key-1"});
    as_sent.set("arguments", arguments);
    as_sent
}
