//! Requests that are sent and answers that are received.

use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;
use swirl_functions::Settings;
use swirl_functions::servers::Servers;
use swirl_model::data;
use swirl_model::workflow::AuthScheme;
use tokio::net::TcpListener;

use crate::rpc::fixture::{Callable, TIMEOUT, call, config};
use crate::rpc::service;

#[tokio::test]
async fn each_kind_of_method_is_called() {
    let ada = data!({"name": "Ada", "age": 36, "roles": []});
    assert_eq!(call("GetUser", data!({"name": "Ada"})).await.unwrap(), ada);
    assert_eq!(call("AddUser", ada).await.unwrap(), data!({}));
    let users = call("ListUsers", data!({"count": 2})).await.unwrap();
    assert_eq!(
        users,
        data!([{"name": "user1", "age": 1, "roles": []}, {"name": "user2", "age": 2, "roles": []}])
    );
    assert_eq!(call("ListUsers", data!({})).await.unwrap(), data!([]));
    let messages = data!({"messages": [{"name": "a"}, {"name": "b"}, {}]});
    assert_eq!(call("Import", messages).await.unwrap(), data!({"count": 3}));
    assert_eq!(
        call("Import", data!({"messages": []})).await.unwrap(),
        data!({"count": 0})
    );
    let since = data!({"messages": [{"since": "2024-02-29T12:00:00Z"}, {"roles": ["x"]}]});
    let echoed = call("Echo", since).await.unwrap();
    assert_eq!(
        echoed,
        data!([{"name": "", "age": 0, "roles": [], "since": "2024-02-29T12:00:00Z"},
            {"name": "", "age": 0, "roles": ["x"]}])
    );
}

#[tokio::test]
async fn a_call_carries_its_key_deadline_and_trace() {
    let (server, seen) = service::serve().await;
    let get = Callable::new(&server, "GetUser", config());
    get.call(data!({"name": "Ada"})).await.unwrap();
    let seen = seen.lock().unwrap();
    let text = |name| {
        seen.metadata[0]
            .get(name)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(text("idempotency-key"), "key-1");
    assert!(
        text("user-agent").starts_with("swirl/"),
        "{}",
        text("user-agent")
    );
    let deadline = text("grpc-timeout");
    let micros: u64 = deadline.strip_suffix('u').unwrap().parse().unwrap();
    let most = u64::try_from(TIMEOUT.as_micros()).unwrap();
    assert!((1..=most).contains(&micros), "{deadline}");
    assert!(seen.metadata[0].get("authorization").is_none());
}

#[tokio::test]
async fn credentials_are_metadata() {
    let (server, seen) = service::serve().await;
    let get = Callable::new(&server, "GetUser", config());
    let basic = data!({"username": "me", "password": "pw"});
    for (scheme, properties) in [
        (AuthScheme::Basic, basic),
        (AuthScheme::Bearer, data!({"token": "t0ken"})),
    ] {
        get.call_with(data!({"name": "guarded"}), Some((scheme, properties)))
            .await
            .unwrap();
    }
    let seen = seen.lock().unwrap();
    let sent = seen
        .metadata
        .iter()
        .map(|m| m.get("authorization").unwrap());
    assert!(sent.eq(["Basic bWU6cHc=", "Bearer t0ken"]));
}

/// The server rejects the first token. A fresh one is requested once.
#[tokio::test]
async fn a_rejected_token_is_renewed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tokens = format!("http://{}/token", listener.local_addr().unwrap());
    let mut given = ["old-token", "new-token"].into_iter().cycle();
    let given = std::sync::Arc::new(std::sync::Mutex::new(move || given.next()));
    let token = post(move || async move {
        let token = given.lock().unwrap()();
        Json(json!({"access_token": token, "token_type": "bearer", "expires_in": 3600}))
    });
    let router = Router::new().route("/token", token);
    tokio::spawn(async move { axum::serve(listener, router).await });

    let (server, seen) = service::serve().await;
    let get = Callable::new(&server, "GetUser", config());
    let properties = data!({"authority": tokens, "grantType": "clientCredentials",
        "clientId": "me", "clientSecret": "s3cret"});
    for _ in 0..2 {
        let auth = Some((AuthScheme::OAuth2, properties.clone()));
        get.call_with(data!({"name": "guarded"}), auth)
            .await
            .unwrap();
    }
    let seen = seen.lock().unwrap();
    let sent = seen
        .metadata
        .iter()
        .map(|m| m.get("authorization").unwrap());
    assert!(sent.eq(["Bearer old-token", "Bearer new-token", "Bearer new-token"]));
}

#[tokio::test]
async fn the_operators_address_takes_precedence() {
    let (server, _) = service::serve().await;
    let settings = Settings {
        servers: Servers::parse(&[format!("acme.v1.UserService={server}")]).unwrap(),
        ..Settings::default()
    };
    let get = Callable::with_settings("grpc://127.0.0.1:1", "GetUser", config(), settings);
    let answer = get.call(data!({"name": "Ada"})).await.unwrap();
    assert_eq!(answer.get("age"), Some(data!(36)));
}

/// The process trusts the certificate through an environment variable, so a second process makes the call that
/// succeeds: it runs this test again.
#[tokio::test]
async fn certificates_are_checked_against_the_hosts_authorities() {
    const SERVER: &str = "TEST_RPC_TLS_SERVER";
    if let Ok(server) = std::env::var(SERVER) {
        let get = Callable::new(&server, "GetUser", config());
        let answer = get.call(data!({"name": "Ada"})).await.unwrap();
        assert_eq!(answer.get("age"), Some(data!(36)));
        return;
    }
    let server = service::serve_tls().await;
    let get = Callable::new(&server, "GetUser", config());
    let (code, message) = get.fails(data!({"name": "Ada"})).await;
    assert!(
        code == "connection" && message.contains("certificate"),
        "{message}"
    );
    let name = "rpc::calls::certificates_are_checked_against_the_hosts_authorities";
    let done = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact"])
        .env(
            "SSL_CERT_FILE",
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rpc/tls-cert.pem"),
        )
        .env(SERVER, server)
        .output()
        .await
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && output.contains("1 passed"),
        "{output}"
    );
}
