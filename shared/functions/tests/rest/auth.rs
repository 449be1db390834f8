//! Credentials as they are sent, and OAuth2 with a fake token endpoint.

use std::sync::{Arc, Mutex};

use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get as on_get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use swirl_functions::CallErrorKind;
use swirl_functions::auth::{Auth, GrantType, OAuth2, Secret};
use swirl_functions::types::rest::{Operation, RestCaller};
use swirl_model::{Data, data};

use crate::rest::fixture::*;

fn basic() -> Auth {
    Auth::Basic {
        username: "me".to_owned(),
        password: Secret::new("p\u{e4}ss:word"),
    }
}

fn bearer() -> Auth {
    Auth::Bearer {
        token: Secret::new("tok en&"),
    }
}

fn echo(base: &str, security: &str) -> Operation {
    operation(
        base,
        &format!(
            "components: {{securitySchemes: {{\
             basic: {{type: http, scheme: basic}}, bearer: {{type: http, scheme: bearer}}, \
             query: {{type: apiKey, in: query, name: 'a key'}}, header: {{type: apiKey, in: header, name: X-Key}}, \
             cookie: {{type: apiKey, in: cookie, name: sid}}, mtls: {{type: mutualTLS}}}}}}\n\
             paths: {{/echo: {{get: {{operationId: op, security: {security}}}}}}}"
        ),
    )
}

/// The document determines how the credentials are sent.
#[tokio::test]
async fn credentials_are_sent_as_the_document_requires() {
    let base = demo().await;
    let basic_header = "Basic bWU6cMOkc3M6d29yZA==";
    for (security, auth, place, expected) in [
        ("[]", basic(), "authorization", basic_header),
        ("[]", bearer(), "authorization", "Bearer tok en&"),
        ("[{basic: []}]", basic(), "authorization", basic_header),
        (
            "[{bearer: []}, {basic: []}]",
            basic(),
            "authorization",
            basic_header,
        ),
        ("[{mtls: []}, {header: []}]", bearer(), "x-key", "tok en&"),
        ("[{cookie: []}]", bearer(), "cookie", "sid=tok%20en%26"),
        ("[{query: []}]", bearer(), "query", "a%20key=tok%20en%26"),
        ("[{header: []}, {}]", basic(), "authorization", basic_header),
    ] {
        let result = caller()
            .call(
                &echo(&base, security),
                &Data::object(),
                &context(Some(&auth)),
            )
            .await
            .unwrap();
        let seen = match place {
            "query" => result.get("query"),
            header => result.get("headers").unwrap().get(header),
        };
        assert_eq!(seen, Some(data!(expected)), "{security} {}", auth.scheme());
    }
}

#[tokio::test]
async fn an_api_key_may_be_an_argument_beside_auth() {
    let base = demo().await;
    let operation = echo(&base, "[{header: [], bearer: []}]");
    let arguments = data!({"X-Key": "k"});
    let result = caller()
        .call(&operation, &arguments, &context(Some(&bearer())))
        .await
        .unwrap();
    let headers = result.get("headers").unwrap();
    assert_eq!(headers.get("x-key"), Some(data!("k")));
    assert_eq!(headers.get("authorization"), Some(data!("Bearer tok en&")));
}

#[tokio::test]
async fn credentials_without_a_use_are_rejected() {
    let base = demo().await;
    for (security, auth, wanted) in [
        ("[{header: []}]", basic(), "an API key `X-Key` (header)"),
        (
            "[{basic: []}, {mtls: []}]",
            bearer(),
            "HTTP basic or mutualTLS",
        ),
        (
            "[{header: [], query: []}]",
            bearer(),
            "an API key `X-Key` (header) and an API key `a key` (query)",
        ),
    ] {
        let operation = echo(&base, security);
        let error = caller()
            .call(&operation, &Data::NULL, &context(Some(&auth)))
            .await
            .unwrap_err();
        let expected = format!(
            "operation `op` asks for {wanted}; the function's auth of scheme `{}` cannot give that",
            auth.scheme()
        );
        assert_eq!((error.kind, error.message), (CallErrorKind::Auth, expected));
    }
    let calls = call(&get(&base, "/calls"), Data::NULL).await.unwrap();
    assert_eq!(calls, data!([]));
}

#[tokio::test]
async fn an_authorization_argument_excludes_auth() {
    let base = demo().await;
    let operation = operation(
        &base,
        "paths: {/echo: {get: {operationId: op, parameters: [{name: Authorization, in: header}]}}}",
    );
    let arguments = data!({"Authorization": "Custom s3cret"});
    let result = call(&operation, arguments.clone()).await.unwrap();
    let seen = result.get("headers").unwrap().get("authorization");
    assert_eq!(seen, Some(data!("Custom s3cret")));
    let error = caller()
        .call(&operation, &arguments, &context(Some(&bearer())))
        .await
        .unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Arguments);
}

/// The requests to the fake token endpoint and the service behind it, and their answers.
#[derive(Default)]
struct Fake {
    /// The token requests: the form fields, plus the `Authorization` header as `authorization`.
    asked: Vec<Value>,
    /// The `Authorization` headers that the service received.
    used: Vec<String>,
    /// Tokens that the service rejects.
    revoked: Vec<String>,
    expires_in: Option<Value>,
    discovery: Option<Value>,
    refusal: Option<(u16, Value)>,
}

type Shared = Arc<Mutex<Fake>>;

async fn token(
    State(fake): State<Shared>,
    headers: HeaderMap,
    Form(form): Form<Vec<(String, String)>>,
) -> Response {
    let mut fake = fake.lock().unwrap();
    let mut asked: Vec<_> = form.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
    asked.sort();
    if let Some(header) = headers.get("authorization") {
        asked.push(header.to_str().unwrap().to_owned());
    }
    fake.asked.push(json!(asked));
    if let Some((status, body)) = &fake.refusal {
        return (StatusCode::from_u16(*status).unwrap(), Json(body.clone())).into_response();
    }
    let mut answer =
        json!({"access_token": format!("token-{}", fake.asked.len()), "token_type": "Bearer"});
    if let Some(expires_in) = &fake.expires_in {
        answer["expires_in"] = expires_in.clone();
    }
    Json(answer).into_response()
}

async fn service(State(fake): State<Shared>, headers: HeaderMap) -> StatusCode {
    let mut fake = fake.lock().unwrap();
    let used = headers["authorization"].to_str().unwrap().to_owned();
    let is_revoked = fake
        .revoked
        .iter()
        .any(|token| used == format!("Bearer {token}"));
    fake.used.push(used);
    if is_revoked {
        StatusCode::UNAUTHORIZED
    } else {
        StatusCode::NO_CONTENT
    }
}

async fn discovery(State(fake): State<Shared>) -> Response {
    match &fake.lock().unwrap().discovery {
        Some(found) => Json(found.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The fake server, its base URL, an operation of the service and a caller.
async fn fake() -> (Shared, String, Operation, RestCaller) {
    let fake = Shared::default();
    let router = Router::new()
        .route("/service", on_get(service))
        .route("/realm/.well-known/openid-configuration", on_get(discovery))
        .route("/direct/token", post(token))
        .route("/oauth2/token", post(token))
        .route("/realm", post(token))
        .with_state(fake.clone());
    let base = serve(router).await;
    let operation = get(&base, "/service");
    (fake, base, operation, caller())
}

fn client(authority: &str) -> OAuth2 {
    OAuth2 {
        authority: Some(authority.to_owned()),
        grant_type: GrantType::ClientCredentials,
        client_id: "id".to_owned(),
        client_secret: Some(Secret::new("cl:ient-s3cret")),
        scopes: vec!["read".to_owned(), "write".to_owned()],
        username: None,
        password: None,
        audiences: Vec::new(),
        subject_token: None,
        ..OAuth2::default()
    }
}

async fn run(caller: &RestCaller, operation: &Operation, oauth2: &OAuth2) -> Result<Data, String> {
    let auth = Auth::OAuth2(Box::new(oauth2.clone()));
    let result = caller
        .call(operation, &Data::NULL, &context(Some(&auth)))
        .await;
    result.map_err(|error| format!("{} {}: {error}", error.code(), error.can_retry))
}

/// `id` and the form-encoded `cl%3Aient-s3cret`.
const BASIC: &str = "Basic aWQ6Y2wlM0FpZW50LXMzY3JldA==";

#[tokio::test]
async fn each_grant_type_sends_its_own_request() {
    let (fake, base, operation, caller) = fake().await;
    let credentials = client(&format!("{base}/direct/token"));
    let password = OAuth2 {
        grant_type: GrantType::Password,
        username: Some("me".to_owned()),
        password: Some(Secret::new("pw")),
        client_secret: None,
        scopes: Vec::new(),
        ..credentials.clone()
    };
    let exchange = OAuth2 {
        grant_type: GrantType::TokenExchange,
        subject_token: Some(Secret::new("subject")),
        audiences: vec!["a1".to_owned(), "a2".to_owned()],
        requested_subject: Some("you".to_owned()),
        requested_issuer: Some("issuer".to_owned()),
        ..credentials.clone()
    };
    for oauth2 in [&credentials, &password, &exchange] {
        run(&caller, &operation, oauth2).await.unwrap();
    }
    let fake = fake.lock().unwrap();
    assert_eq!(
        fake.asked,
        [
            json!(["grant_type=client_credentials", "scope=read write", BASIC]),
            json!([
                "client_id=id",
                "grant_type=password",
                "password=pw",
                "username=me"
            ]),
            json!([
                "audience=a1",
                "audience=a2",
                "grant_type=urn:ietf:params:oauth:grant-type:token-exchange",
                "requested_issuer=issuer",
                "requested_subject=you",
                "scope=read write",
                "subject_token=subject",
                "subject_token_type=urn:ietf:params:oauth:token-type:access_token",
                BASIC,
            ]),
        ]
    );
    assert_eq!(
        fake.used,
        ["Bearer token-1", "Bearer token-2", "Bearer token-3"]
    );
}

#[tokio::test]
async fn the_token_endpoint_is_found() {
    let (fake, base, operation, caller) = fake().await;
    // Without a configuration: the authority's own path, or `/oauth2/token`.
    run(&caller, &operation, &client(&format!("{base}/realm")))
        .await
        .unwrap();
    run(&caller, &operation, &client(&base)).await.unwrap();
    assert_eq!(fake.lock().unwrap().asked.len(), 2);

    fake.lock().unwrap().discovery = Some(json!({
        "token_endpoint": format!("{base}/direct/token"),
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
    }));
    // With a trailing slash, so that the token cached above isn't used.
    run(&caller, &operation, &client(&format!("{base}/realm/")))
        .await
        .unwrap();
    assert_eq!(
        fake.lock().unwrap().asked[2],
        json!([
            "client_id=id",
            "client_secret=cl:ient-s3cret",
            "grant_type=client_credentials",
            "scope=read write"
        ])
    );

    // Without an authority, the document's token URL is used.
    let operation = self::operation(
        &base,
        &format!(
            "components: {{securitySchemes: {{o: {{type: oauth2, flows: {{clientCredentials: \
             {{tokenUrl: '{base}/direct/token'}}}}}}}}}}\n\
             paths: {{/service: {{get: {{operationId: op, security: [{{o: []}}]}}}}}}"
        ),
    );
    let oauth2 = OAuth2 {
        authority: None,
        ..client("")
    };
    run(&caller, &operation, &oauth2).await.unwrap();
    assert_eq!(fake.lock().unwrap().asked.len(), 4);
}

#[tokio::test]
async fn tokens_are_cached_per_credentials_until_they_expire() {
    let (fake, base, operation, caller) = fake().await;
    let oauth2 = client(&format!("{base}/direct/token"));
    let asked = || fake.lock().unwrap().asked.len();
    fake.lock().unwrap().expires_in = Some(json!("3600"));
    for _ in 0..3 {
        run(&caller, &operation, &oauth2).await.unwrap();
    }
    assert_eq!(asked(), 1);
    let other_secret = OAuth2 {
        client_secret: Some(Secret::new("other")),
        ..oauth2.clone()
    };
    let other_scopes = OAuth2 {
        scopes: Vec::new(),
        ..oauth2.clone()
    };
    for other in [other_secret, other_scopes] {
        run(&caller, &operation, &other).await.unwrap();
    }
    assert_eq!(asked(), 3);
    // A token that expires immediately is requested each time.
    fake.lock().unwrap().expires_in = Some(json!(0));
    let short = OAuth2 {
        audiences: vec!["short".to_owned()],
        ..oauth2
    };
    for _ in 0..2 {
        run(&caller, &operation, &short).await.unwrap();
    }
    assert_eq!(asked(), 5);
}

#[tokio::test]
async fn concurrent_calls_share_one_token_request() {
    let (fake, base, operation, caller) = fake().await;
    let oauth2 = client(&format!("{base}/direct/token"));
    let (a, b, c) = tokio::join!(
        run(&caller, &operation, &oauth2),
        run(&caller, &operation, &oauth2),
        run(&caller, &operation, &oauth2),
    );
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(fake.lock().unwrap().asked.len(), 1);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let (fake, base, operation, caller) = fake().await;
    let oauth2 = client(&format!("{base}/direct/token"));
    fake.lock().unwrap().revoked = vec!["token-1".to_owned()];
    run(&caller, &operation, &oauth2).await.unwrap();
    assert_eq!(
        fake.lock().unwrap().used,
        ["Bearer token-1", "Bearer token-2"]
    );

    fake.lock()
        .unwrap()
        .revoked
        .extend(["token-2".to_owned(), "token-3".to_owned()]);
    let error = run(&caller, &operation, &oauth2).await.unwrap_err();
    assert!(error.starts_with("401 false: GET "), "{error}");
    assert_eq!(
        fake.lock().unwrap().used[2..],
        ["Bearer token-2", "Bearer token-3"]
    );
}

#[tokio::test]
async fn a_failed_token_request_is_an_error() {
    let (fake, base, operation, caller) = fake().await;
    let oauth2 = client(&format!("{base}/direct/token"));
    let refusal = |status, body| fake.lock().unwrap().refusal = Some((status, body));
    for (status, body, expected) in [
        (
            401,
            json!({"error": "invalid_client", "error_description": "not cl:ient-s3cret"}),
            "auth false: OAuth2 token: POST {base}/direct/token: 401: invalid_client: not ***",
        ),
        (
            503,
            json!(null),
            "auth true: OAuth2 token: POST {base}/direct/token: 503",
        ),
        (
            200,
            json!({"token": 1}),
            "auth false: OAuth2 token: POST {base}/direct/token: the answer has no `access_token`",
        ),
        (
            200,
            json!({"access_token": "t", "token_type": "mac"}),
            "auth false: OAuth2 token: POST {base}/direct/token: the token isn't a bearer token",
        ),
    ] {
        refusal(status, body);
        let error = run(&caller, &operation, &oauth2).await.unwrap_err();
        assert_eq!(error, expected.replace("{base}", &base));
    }
    for (oauth2, expected) in [
        (
            OAuth2 {
                authority: None,
                ..oauth2.clone()
            },
            "auth false: the auth definition has no `authority`, and the OpenAPI document no token URL",
        ),
        (
            OAuth2 {
                authority: Some("ftp://x".to_owned()),
                ..oauth2.clone()
            },
            "auth false: OAuth2: the authority is not an http or https URL",
        ),
        (
            OAuth2 {
                grant_type: GrantType::Password,
                ..oauth2.clone()
            },
            "auth false: OAuth2: this grant type needs `password`, which the auth definition lacks",
        ),
    ] {
        assert_eq!(
            run(&caller, &operation, &oauth2).await.unwrap_err(),
            expected
        );
    }
    assert!(
        fake.lock().unwrap().used.is_empty(),
        "the service was called without a token"
    );
}

#[tokio::test]
async fn missing_auth_is_an_error() {
    let base = serve(Router::new().route("/echo", on_get(async || StatusCode::UNAUTHORIZED))).await;
    let error = call(&echo(&base, "[{bearer: []}]"), Data::NULL)
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        format!(
            "GET {base}/echo: 401 Unauthorized (the operation asks for a bearer token, and the function has no auth)"
        )
    );
}
