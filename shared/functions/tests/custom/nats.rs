//! Connectors that are subjects of a NATS server.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::StreamExt as _;
use swirl_model::workflow::AuthScheme;
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::{ExchangeProtocol, LastExchange};
use swirl_servers::{NatsOptions, NatsServer, eventually};

use crate::custom::fixture::{as_sent, call, call_with_exchange, caller, config};

fn seen(error: &WorkflowError) -> (&str, Option<&str>) {
    (error.name.as_str(), error.code.as_deref())
}

/// Returns when the server has processed the client's subscriptions.
async fn settle(client: &async_nats::Client) {
    let inbox = client.new_inbox();
    let mut echo = client.subscribe(inbox.clone()).await.unwrap();
    client.publish(inbox, "".into()).await.unwrap();
    echo.next().await.unwrap();
}

/// Replies to each call with the call itself, or as the arguments specify.
async fn replier(server: &NatsServer) -> async_nats::Client {
    let client = async_nats::connect(server.address()).await.unwrap();
    let mut calls = client.subscribe("f.mail").await.unwrap();
    settle(&client).await;
    let replies = client.clone();
    tokio::spawn(async move {
        while let Some(message) = calls.next().await {
            let as_sent = Data::parse(&message.payload).unwrap();
            let headers = message.headers.unwrap();
            assert_eq!(headers.get("Nats-Msg-Id").unwrap().as_str(), "key-1");
            let arguments = as_sent.get("arguments").unwrap();
            let answer = arguments.get("answer").unwrap_or(as_sent);
            let reply = message.reply.unwrap();
            replies
                .publish(reply, answer.to_string().into())
                .await
                .unwrap();
        }
    });
    client
}

#[tokio::test]
async fn a_reply_is_the_result() {
    let server = NatsServer::start().unwrap();
    let _replier = replier(&server).await;
    let caller = caller(
        &format!("mail=nats://{}/f.mail", server.address()),
        config(),
    );
    let exchange = LastExchange::default();
    let asked = call_with_exchange(&caller, data!({"a": 1}), None, exchange.clone());
    assert_eq!(asked.await.unwrap(), as_sent(data!({"a": 1})));
    let protocol = ExchangeProtocol::Message {
        system: "nats",
        destination: "f.mail".to_owned(),
        receives: false,
    };
    assert_eq!(exchange.get().unwrap().protocol, protocol);
    for (answer, expected) in [(data!(null), data!(null)), (data!([1]), data!([1]))] {
        let result = call(&caller, data!({"answer": answer}), None).await;
        assert_eq!(result.unwrap(), expected);
    }
    let failure = data!({"error": {"name": "MailboxFull", "code": "552", "message": "no room"}});
    let error = call(&caller, data!({"answer": failure}), None)
        .await
        .unwrap_err();
    assert_eq!(seen(&error), ("MailboxFull", Some("552")));
    assert!(
        error.message.ends_with("request to `f.mail`: no room"),
        "{error}"
    );
}

#[tokio::test]
async fn a_missing_responder_fails_at_once_and_a_silent_one_in_time() {
    let server = NatsServer::start().unwrap();
    let target = format!("mail=nats://{}/f.mail", server.address());
    let patient = caller(&target, config());
    let error = call(&patient, data!({}), None).await.unwrap_err();
    assert_eq!(
        seen(&error),
        ("FunctionError", Some("connection")),
        "{error}"
    );
    let client = async_nats::connect(server.address()).await.unwrap();
    let _silent = client.subscribe("f.mail").await.unwrap();
    settle(&client).await;
    let short = swirl_functions::http::HttpConfig {
        timeout: Duration::from_millis(500),
        ..config()
    };
    let error = call(&caller(&target, short), data!({}), None)
        .await
        .unwrap_err();
    assert_eq!(seen(&error), ("FunctionError", Some("timeout")), "{error}");
}

#[tokio::test]
async fn credentials_come_from_the_definition_or_the_operator() {
    let options = NatsOptions {
        config: "authorization { user: me, password: \"p@w\" }".to_owned(),
        ..NatsOptions::default()
    };
    let server = NatsServer::start_with(options).unwrap();
    let logged_in = async_nats::ConnectOptions::with_user_and_password("me".into(), "p@w".into());
    let client = logged_in.connect(server.address()).await.unwrap();
    let mut calls = client.subscribe("f.mail").await.unwrap();
    settle(&client).await;
    let replies = client.clone();
    tokio::spawn(async move {
        while let Some(message) = calls.next().await {
            replies
                .publish(message.reply.unwrap(), "7".into())
                .await
                .unwrap();
        }
    });
    let without = caller(
        &format!("mail=nats://{}/f.mail", server.address()),
        config(),
    );
    let basic = data!({"username": "me", "password": "p@w"});
    let result = call(&without, data!({}), Some((AuthScheme::Basic, basic))).await;
    assert_eq!(result.unwrap(), data!(7));
    let error = call(&without, data!({}), None).await.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("auth"), "{error}");
    let own = caller(
        &format!("mail=nats://me:p%40w@{}/f.mail", server.address()),
        config(),
    );
    assert_eq!(call(&own, data!({}), None).await.unwrap(), data!(7));
}

/// Killed when the test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nats-function")
}

/// The program from the guide, exactly as printed there.
#[tokio::test]
async fn a_function_in_python_is_called() {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no python3");
        return;
    }
    let server = NatsServer::start().unwrap();
    let mut program = Command::new("python3");
    program.arg(examples().join("price.py"));
    program.args([server.address().as_str(), "f.price"]);
    call_price_service(&server, &mut program).await;
}

/// The same in Rust, where it has been built: `cargo test` builds the examples of this crate.
#[tokio::test]
async fn a_function_in_rust_is_called() {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(Path::parent).unwrap();
    let program = folder.join("examples/price");
    if !program.is_file() {
        eprintln!("skipped: {} is not built", program.display());
        return;
    }
    let server = NatsServer::start().unwrap();
    let mut program = Command::new(program);
    program.args([server.address().as_str(), "f.price"]);
    call_price_service(&server, &mut program).await;
}

async fn call_price_service(server: &NatsServer, program: &mut Command) {
    let program = program.stdout(Stdio::null()).spawn().unwrap();
    let _program = Program(program);
    let caller = caller(
        &format!("mail=nats://{}/f.price", server.address()),
        config(),
    );
    // The service is missing until it has subscribed.
    let price = eventually("its subscription", async || {
        match call(&caller, data!({"item": "lamp"}), None).await {
            Err(error) if error.code.as_deref() == Some("connection") => None,
            answer => Some(answer),
        }
    });
    let price = price.await.unwrap();
    assert_eq!(price, data!({"item": "lamp", "price": 3990}));
    let error = call(&caller, data!({"item": "sofa"}), None)
        .await
        .unwrap_err();
    assert_eq!(error.name, "UnknownItem", "{error}");
}
