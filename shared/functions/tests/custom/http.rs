//! Connectors that are services.

use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use swirl_model::workflow::AuthScheme;
use swirl_model::{Data, WorkflowError, data};
use tokio::net::TcpListener;

use crate::custom::fixture::{as_sent, call, caller, config, function, prepare};

/// A service that answers according to the arguments, with the request that it received.
async fn serve() -> String {
    let answer = |headers: HeaderMap, Json(call): Json<Value>| async move {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let arguments = &call["arguments"];
        match arguments.get("status").and_then(Value::as_u64) {
            Some(status) => {
                let status = StatusCode::from_u16(status as u16).unwrap();
                let body = match &arguments["body"] {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    body => body.to_string(),
                };
                let json = [("content-type", "application/json")];
                (status, json, body).into_response()
            }
            None => Json(json!({"call": call, "key": text("idempotency-key"),
                "authorization": text("authorization")}))
            .into_response(),
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "mail=http://{}/send?tenant=t1",
        listener.local_addr().unwrap()
    );
    let router = Router::new().route("/send", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn answer(arguments: Data) -> Result<Data, WorkflowError> {
    call(&caller(&serve().await, config()), arguments, None).await
}

#[tokio::test]
async fn a_call_is_posted_and_the_answer_is_the_result() {
    let arguments = data!({"to": "ada", "list": [1, null]});
    let answer = answer(arguments.clone()).await.unwrap();
    assert_eq!(answer.get("call"), Some(as_sent(arguments)));
    assert_eq!(answer.get("key"), Some(data!("key-1")));
    assert_eq!(answer.get("authorization"), Some(Data::NULL));
}

#[tokio::test]
async fn any_json_is_a_result() {
    for body in [data!({"a": 1}), data!([1]), data!(7), data!("\"text\"")] {
        let expected = match body.as_str() {
            Some(text) => Data::parse(text.as_bytes()).unwrap(),
            None => body.clone(),
        };
        let mut arguments = data!({"status": 201});
        arguments.set("body", body);
        assert_eq!(answer(arguments).await.unwrap(), expected);
    }
    assert_eq!(answer(data!({"status": 204})).await.unwrap(), Data::NULL);
}

#[tokio::test]
async fn credentials_are_sent() {
    let caller = caller(&serve().await, config());
    let auth = Some((AuthScheme::Bearer, data!({"token": "t0ken"})));
    let answer = call(&caller, data!({}), auth).await.unwrap();
    assert_eq!(answer.get("authorization"), Some(data!("Bearer t0ken")));
}

#[tokio::test]
async fn failures_keep_the_services_error() {
    let given = data!({"error": {"name": "MailboxFull", "code": 552, "message": "no room"}});
    for (status, body, expected) in [
        (
            503,
            data!("busy"),
            (
                "FunctionError",
                "503",
                Some(503),
                "503 Service Unavailable: busy",
            ),
        ),
        (
            409,
            given.clone(),
            ("MailboxFull", "552", Some(409), "no room"),
        ),
        (200, given, ("MailboxFull", "552", None, "no room")),
        (
            200,
            data!({"error": {"code": "full"}}),
            ("FunctionError", "full", None, "it failed"),
        ),
        (
            200,
            data!("{"),
            (
                "FunctionError",
                "response",
                None,
                "the body is not valid JSON",
            ),
        ),
    ] {
        let mut arguments = Data::object();
        arguments.set("status", Data::int(status));
        arguments.set("body", body);
        let error = answer(arguments).await.unwrap_err();
        let (name, code, status, message) = expected;
        assert_eq!((error.name.as_str(), error.status), (name, status));
        assert_eq!(error.code.as_deref(), Some(code));
        assert!(
            error
                .message
                .starts_with("connector `mail`: POST http://127.0.0.1:"),
            "{error}"
        );
        assert!(
            error.message.contains(message) && !error.message.contains("tenant"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_type_without_a_connector_is_rejected() {
    let caller = caller("mail=http://127.0.0.1:1/", config());
    let problems = prepare(&caller, &function("fax", false)).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "function `send`: functions of type `fax` with the operation `order.ts#main` have no implementation here: name a connector with `--connector fax=http://host/path`, `--connector \
         fax=nats://host:port/subject` or `--connector fax=exec:program`"
    );
}
