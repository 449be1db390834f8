//! A workflow's functions are compiled once and called with its credentials.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::resources::{HttpOptions, HttpResources};
use swirl_functions::{Caller, Problem};
use swirl_model::ids::{DefinitionId, InstanceId, ScopeRef};
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::{
    Action, ActionKind, AuthDef, AuthId, AuthScheme, Call, Function, FunctionId, FunctionKind,
    Template, Workflow,
};
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::call::CallAuth;
use swirl_ports::{CallRequest, FunctionCaller};
use swirl_servers::PATIENCE;

use crate::ports::serve;

fn caller(timeout: Duration) -> Caller {
    let config = HttpConfig {
        timeout,
        proxy_from_env: false,
        ..HttpConfig::default()
    };
    Caller::new(Http::new(config).unwrap())
}

fn function(name: &str, kind: FunctionKind, operation: &str) -> Function {
    Function {
        name: name.into(),
        kind,
        operation: operation.to_owned(),
        place: String::new(),
        resource_auth: None,
        auth: None,
        metadata: Data::NULL,
        within: None,
    }
}

pub fn rest(name: &str, operation: &str) -> Function {
    function(name, FunctionKind::Rest, operation)
}

/// A workflow with an action for each function. The actions have this timeout.
pub fn workflow(functions: Vec<Function>, timeout: Option<IsoDuration>) -> Workflow {
    let actions = (0..functions.len() as u32).map(|index| Action {
        kind: ActionKind::Call(Call {
            function: FunctionId(index),
            arguments: None,
            selection_set: None,
            detached: false,
            subscription: None,
        }),
        timeout: timeout.map(Into::into),
        ..Action::default()
    });
    Workflow {
        actions: actions.collect(),
        functions,
        ..Workflow::default()
    }
}

pub fn definition() -> DefinitionId {
    DefinitionId {
        workflow: "shop".into(),
        version: "1.0.0".into(),
    }
}

pub fn request(function: &Function, arguments: Data) -> CallRequest {
    CallRequest {
        trace: None,
        definition: definition(),
        function: Arc::new(function.clone()),
        scope: ScopeRef::root(InstanceId::new("shop-1")),
        arguments,
        selection_set: None,
        key: "key-1".to_owned(),
        secrets: Default::default(),
        last_exchange: Default::default(),
        stored: Default::default(),
        consumes: None,
        at: Timestamp::default(),
        auth: None,
    }
}

fn seen(error: WorkflowError) -> (String, Option<String>, Option<u16>) {
    (error.name, error.code, error.status)
}

#[tokio::test]
async fn the_demo_service_is_called_by_a_workflows_functions() {
    let base = serve(swirl_demo_service::router()).await;
    let uri = format!("{base}/openapi.json");
    let greet = rest("greet", &format!("{uri}#greet"));
    let price = rest("price", &format!("{uri}#getPrice"));
    let sum = function("sum", FunctionKind::Expression, ".a + .b");
    let workflow = workflow(vec![greet.clone(), sum, price.clone()], None);

    let needed = Caller::needs(&workflow);
    assert_eq!(
        needed.iter().map(|needed| &needed.uri).collect::<Vec<_>>(),
        [&uri]
    );
    let fetched = HttpResources::new(HttpOptions::default())
        .unwrap()
        .fetch(&uri)
        .await
        .unwrap();
    let resources = [(uri, String::from_utf8(fetched).unwrap())];
    let caller = caller(PATIENCE);
    caller
        .prepare(&definition(), &workflow, &resources)
        .unwrap();

    let answer = caller
        .call(request(&greet, data!({"name": "Ada"})))
        .await
        .unwrap();
    assert_eq!(answer, data!({"greeting": "Hello Ada!"}));
    let answer = caller
        .call(request(&price, data!({"item": "book", "quantity": 2})))
        .await
        .unwrap();
    assert_eq!(
        answer,
        data!({"item": "book", "price": 1250, "quantity": 2, "total": 2500})
    );
    let error = caller
        .call(request(&price, data!({"item": "moon"})))
        .await
        .unwrap_err();
    assert_eq!(
        seen(error),
        ("FunctionError".into(), Some("404".into()), Some(404))
    );
    let error = caller.call(request(&price, data!({}))).await.unwrap_err();
    assert_eq!(
        seen(error),
        ("FunctionError".into(), Some("arguments".into()), None)
    );

    let calls = HttpResources::new(HttpOptions::default()).unwrap();
    let calls = calls.fetch(&format!("{base}/calls")).await.unwrap();
    let calls: serde_json::Value = serde_json::from_slice(&calls).unwrap();
    assert_eq!(calls.as_array().map(Vec::len), Some(3));
    assert_eq!(calls[0]["idempotencyKey"], "key-1");
}

#[tokio::test]
async fn uncallable_functions_are_rejected_at_deployment() {
    let document = "openapi: 3.0.3\npaths: {/a: {get: {operationId: getA}}}";
    let resources = [
        ("http://127.0.0.1:1/a.yaml".to_owned(), document.to_owned()),
        ("broken.json".to_owned(), "{".to_owned()),
    ];
    let good = rest("good", "http://127.0.0.1:1/a.yaml#getA");
    let bad = workflow(
        vec![
            rest("misnamed", "http://127.0.0.1:1/a.yaml#geta"),
            good.clone(),
            rest("elsewhere", "other.json#getA"),
            rest("broken", "broken.json#getA"),
            rest("nothing", "http://127.0.0.1:1/a.yaml"),
            function("own", FunctionKind::Custom("ftp".to_owned()), "put"),
        ],
        None,
    );
    let caller = caller(PATIENCE);
    let problems = caller.prepare(&definition(), &bad, &resources).unwrap_err();
    let expected = [
        ("misnamed", "did you mean `getA`?"),
        (
            "elsewhere",
            "`other.json`: it isn't among the definition's resources",
        ),
        (
            "broken",
            "`broken.json`: the OpenAPI document is neither JSON nor YAML",
        ),
        (
            "nothing",
            "the operation `http://127.0.0.1:1/a.yaml` must be the URI of an OpenAPI",
        ),
        (
            "own",
            "functions of type `ftp` with the operation `put` have no implementation here: name a connector with `--connector ftp=",
        ),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for (problem, (function, message)) in problems.iter().zip(expected) {
        let Problem {
            function: name,
            message: text,
            ..
        } = problem;
        assert!(name == function && text.contains(message), "{problem}");
    }
    // Nothing was kept, not even the valid functions.
    let error = caller.call(request(&good, data!({}))).await.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("function"));
    assert!(
        error
            .message
            .contains("shop:1.0.0 isn't loaded on this worker"),
        "{error}"
    );
    caller
        .prepare(&definition(), &workflow(vec![good], None), &resources)
        .unwrap();
    let error = caller
        .call(request(&rest("new", "x#y"), data!({})))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("shop:1.0.0 has no function `new`"),
        "{error}"
    );
}

#[tokio::test]
async fn credentials_are_read_from_the_evaluated_properties() {
    let base = serve(swirl_demo_service::router()).await;
    let uri = format!("{base}/openapi.json");
    let echo = rest("echo", &format!("{uri}#echoGet"));
    let resources = [(uri, swirl_demo_service::openapi().to_string())];
    let caller = caller(PATIENCE);
    caller
        .prepare(
            &definition(),
            &workflow(vec![echo.clone()], None),
            &resources,
        )
        .unwrap();
    let with = |scheme, properties| {
        let auth = CallAuth {
            name: "shop".to_owned(),
            scheme,
            properties,
        };
        CallRequest {
            trace: None,
            auth: Some(auth),
            ..request(&echo, data!({"q": "a"}))
        }
    };
    let basic = with(
        AuthScheme::Basic,
        data!({"username": "me", "password": "pw"}),
    );
    let answer = caller.call(basic).await.unwrap();
    let header = answer
        .get("headers")
        .and_then(|headers| headers.get("authorization"));
    assert_eq!(header, Some(data!("Basic bWU6cHc=")));
    let lacking = with(AuthScheme::Basic, data!({"username": "me"}));
    let error = caller.call(lacking).await.unwrap_err();
    assert_eq!(
        error.message,
        "auth `shop`: the auth definition has no `password`"
    );
    assert_eq!(
        seen(error),
        ("FunctionError".into(), Some("auth".into()), None)
    );
}

#[tokio::test]
async fn the_longest_timeout_of_the_actions_bounds_a_call() {
    let base = serve(Router::new().route("/", get(std::future::pending::<()>))).await;
    let document = "openapi: 3.0.3\npaths: {/: {get: {operationId: wait}}}";
    let wait = rest("wait", &format!("{base}/a.yaml#wait"));
    let resources = [(format!("{base}/a.yaml"), document.to_owned())];
    let caller = caller(Duration::from_millis(100));
    let call = |limit| tokio::time::timeout(limit, caller.call(request(&wait, data!({}))));
    caller
        .prepare(
            &definition(),
            &workflow(vec![wait.clone()], None),
            &resources,
        )
        .unwrap();
    let error = call(PATIENCE).await.unwrap().unwrap_err();
    assert_eq!(
        seen(error),
        ("FunctionError".into(), Some("timeout".into()), None)
    );
    // The engine's own timeout must come first, so the call is still under way.
    let timed = workflow(vec![wait.clone()], Some(IsoDuration::from_secs(60 * 60)));
    caller.prepare(&definition(), &timed, &resources).unwrap();
    assert!(call(Duration::from_secs(1)).await.is_err());
}

#[test]
fn a_document_is_needed_once_with_the_auth_of_any_function() {
    let with_auth = Function {
        resource_auth: Some(AuthId(0)),
        ..rest("b", "http://h/a#b")
    };
    let mut workflow = workflow(
        vec![
            rest("a", "http://h/a#a"),
            with_auth,
            rest("c", "http://h/c#c"),
            rest("d", "wrong"),
        ],
        None,
    );
    let properties = Template::Literal(data!({"token": "t"}));
    let auth = AuthDef {
        name: "docs".to_owned(),
        scheme: AuthScheme::Bearer,
        properties,
    };
    workflow.auth.push(auth);
    let needed = Caller::needs(&workflow);
    let needed: Vec<_> = needed
        .iter()
        .map(|n| (n.uri.as_str(), n.auth.map(|auth| &*workflow[auth].name)))
        .collect();
    assert_eq!(needed, [("http://h/a", Some("docs")), ("http://h/c", None)]);
}
