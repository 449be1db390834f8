//! Signing in to the console at a provider, as a browser and the provider see it.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;
use swirl_config as config;
use swirl_coordinator::process;
use swirl_login::{AUDIENCE, CLIENT, Conduct, Login};
use swirl_servers::eventually;

use crate::console::{Browser, location};
use crate::running::{Running, Setup, client, guarded};

/// The settings of a coordinator.
fn settings(login: &Login) -> config::Oidc {
    config::Oidc {
        issuer: login.issuer.clone(),
        audience: vec![AUDIENCE.to_owned()],
        jwks_url: None,
        jwks_file: None,
        algorithms: vec!["EdDSA".to_owned()],
        roles_claim: "roles".to_owned(),
        roles: [].into(),
        namespaces_claim: None,
        leeway: Duration::ZERO,
        ca: None,
        sign_in: Some(config::SignIn {
            client_id: CLIENT.to_owned(),
            client_secret: Some(config::Secret::new("s3cret")),
            scopes: vec!["openid".to_owned(), "profile".to_owned()],
            redirect_url: None,
        }),
    }
}

async fn started(settings: &config::Oidc) -> Running {
    let oidc = process::oidc(settings).unwrap();
    Setup::new(guarded(Some(oidc))).start().await
}

/// The headers of a browser that the provider has led to a page.
const FROM_ELSEWHERE: [(&str, &str); 3] = [
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

/// Follows the link of the sign-in page, signs in at the provider, and returns the path that this leads back to.
async fn to_the_provider_and_back(
    browser: &mut Browser<'_>,
    running: &Running,
    login: &Login,
    next: &str,
) -> String {
    let page = browser.get("/console/sign-in").await.text().await.unwrap();
    assert!(page.contains("Sign in with localhost"), "{page}");
    let there = browser
        .get(&format!("/console/sign-in/with?next={next}"))
        .await;
    assert_eq!(there.status(), StatusCode::SEE_OTHER);
    let back = login.consent(location(&there)).unwrap();
    let path = back.strip_prefix(&running.url(""));
    path.unwrap_or_else(|| panic!("another server: {back}"))
        .to_owned()
}

/// The status of the page that the browser comes back to, and its text.
async fn come_back(browser: &mut Browser<'_>, path: &str) -> (StatusCode, String) {
    let answer = browser.get_with(path, &FROM_ELSEWHERE).await;
    (answer.status(), answer.text().await.unwrap())
}

/// Whether the browser is signed in, and what the overview shows.
async fn overview(browser: &mut Browser<'_>) -> (bool, String) {
    let answer = browser.get("/console/").await;
    let is_in = answer.status() == StatusCode::OK;
    (is_in, answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_signs_in_at_the_provider_and_out_again() {
    let login = Login::start().await.unwrap();
    let running = started(&settings(&login)).await;
    let mut browser = Browser::new(&running);
    let path = to_the_provider_and_back(&mut browser, &running, &login, "/console/events").await;
    let before = browser.cookie.clone();
    let (status, page) = come_back(&mut browser, &path).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(
        page.contains("content=\"0; url=/console/events\""),
        "{page}"
    );
    assert_ne!(
        browser.cookie, before,
        "the name from before is worth nothing"
    );
    let events = browser.get("/console/events").await;
    assert_eq!(events.status(), StatusCode::OK);
    let events = events.text().await.unwrap();
    assert!(events.contains("<b>ada</b>"), "{events}");
    for text in [&page, &events] {
        assert!(!text.contains("eyJ"), "no token leaves the server: {text}");
    }
    let [form] = &login.forms()[..] else {
        panic!("{:?}", login.forms());
    };
    // "console:s3cret"
    assert_eq!(form["authorization"], "Basic Y29uc29sZTpzM2NyZXQ=");
    assert!(!form.contains_key("client_secret"));

    // A state that has been used opens nothing more.
    let (status, page) = come_back(&mut browser, &path).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(page.contains("has begun no such sign-in"), "{page}");
    assert_eq!(login.forms().len(), 1, "the provider isn't asked");

    let csrf = browser.csrf("/console/").await;
    let out = browser
        .post("/console/sign-out", &[("csrf", &csrf)], &[])
        .await;
    assert_eq!(out.status(), StatusCode::OK);
    let page = out.text().await.unwrap();
    let there = format!(
        "{}/logout?client_id=console&#38;post_logout_redirect_uri=",
        login.issuer
    );
    assert!(page.contains(&there), "{page}");
    assert!(!page.contains("eyJ"), "no token is in an address: {page}");
    assert!(!overview(&mut browser).await.0);
    let (status, page) = come_back(&mut browser, "/console/sign-in").await;
    assert_eq!(status, StatusCode::OK, "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_belongs_to_the_browser_that_began_it() {
    let login = Login::start().await.unwrap();
    let running = started(&settings(&login)).await;
    let (mut browser, mut other) = (Browser::new(&running), Browser::new(&running));
    let path = to_the_provider_and_back(&mut browser, &running, &login, "/console/").await;
    other.get("/console/sign-in").await;
    let (address, _) = path.split_once("state=").unwrap();
    for (is_other, path) in [
        (true, path.clone()),
        (false, format!("{address}state={}", "0".repeat(64))),
        (false, format!("{address}state=")),
    ] {
        let browser = if is_other { &mut other } else { &mut browser };
        let (status, page) = come_back(browser, &path).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        assert!(page.contains("has begun no such sign-in"), "{page}");
        assert!(!overview(browser).await.0, "{path}");
    }
    assert!(login.forms().is_empty(), "the provider isn't asked");
    assert_eq!(come_back(&mut browser, &path).await.0, StatusCode::OK);
    assert!(overview(&mut browser).await.0);

    // Nothing else may come from other sites.
    for headers in [&FROM_ELSEWHERE[..1], &FROM_ELSEWHERE[..2]] {
        let refused = browser.get_with(&path, headers).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        assert!(refused.text().await.unwrap().contains("foreign-origin"));
    }
    let refused = browser.get_with("/console/events", &FROM_ELSEWHERE).await;
    assert!(refused.text().await.unwrap().contains("foreign-origin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_may_not_say_opens_nothing() {
    let login = Login::start().await.unwrap();
    let running = started(&settings(&login)).await;
    type Change = fn(&mut Conduct);
    let changes: &[(Change, StatusCode, &str)] = &[
        (
            |conduct| conduct.id_claims = json!({"nonce": "another"}),
            StatusCode::FORBIDDEN,
            "belongs to another sign-in (nonce)",
        ),
        (
            |conduct| conduct.id_claims = json!({"nonce": null}),
            StatusCode::FORBIDDEN,
            "belongs to another sign-in (nonce)",
        ),
        (
            |conduct| conduct.id_claims = json!({"aud": "another"}),
            StatusCode::FORBIDDEN,
            "the ID token is not accepted: it is meant for another service (aud)",
        ),
        (
            |conduct| conduct.id_claims = json!({"iss": "https://evil.test"}),
            StatusCode::FORBIDDEN,
            "the ID token is not accepted: it is from another issuer (iss)",
        ),
        (
            |conduct| conduct.id_claims = json!({"aud": [CLIENT, "b"], "azp": "b"}),
            StatusCode::FORBIDDEN,
            "for another client (azp)",
        ),
        (
            |conduct| conduct.lasts = -60,
            StatusCode::FORBIDDEN,
            "the ID token is not accepted: it has expired (exp)",
        ),
        (
            |conduct| conduct.access_claims = Some(json!({"aud": "another"})),
            StatusCode::FORBIDDEN,
            "none of the tokens is accepted",
        ),
        (
            |conduct| conduct.access_claims = None,
            StatusCode::FORBIDDEN,
            "its access token: it is not a signed JWT",
        ),
        (
            |conduct| conduct.access_claims = Some(json!({"roles": ["cook"]})),
            StatusCode::FORBIDDEN,
            "needs the role viewer",
        ),
        (
            |conduct| conduct.refusal = Some("invalid_grant"),
            StatusCode::FORBIDDEN,
            "localhost answers “invalid_grant”",
        ),
        (
            |conduct| conduct.refusal = Some("invalid_client"),
            StatusCode::FORBIDDEN,
            "auth.oidc.client_secret",
        ),
        (
            |conduct| conduct.is_down = true,
            StatusCode::SERVICE_UNAVAILABLE,
            "localhost doesn&#39;t answer this server as it should",
        ),
    ];
    for (change, expected, part) in changes {
        let mut browser = Browser::new(&running);
        let path = to_the_provider_and_back(&mut browser, &running, &login, "/console/").await;
        login.behave(change);
        let (status, page) = come_back(&mut browser, &path).await;
        assert_eq!(status, *expected, "{part}: {page}");
        assert!(page.contains(part), "{part}: {page}");
        assert!(page.contains("Sign in with localhost"), "{page}");
        assert!(!page.contains("eyJ"), "{page}");
        assert!(!overview(&mut browser).await.0, "{part}");
        login.behave(|conduct| *conduct = Conduct::default());
    }
    // The visitor changes her mind, or somebody invents an answer.
    let mut browser = Browser::new(&running);
    let path = to_the_provider_and_back(&mut browser, &running, &login, "/console/").await;
    let (_, state) = path.split_once("state=").unwrap();
    let path = format!("/console/sign-in/callback?error=access_denied%0A%3Cb%3E&state={state}");
    let (status, page) = come_back(&mut browser, &path).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(
        page.contains("localhost answers “access_denied&#60;b&#62;”"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_led_to_another_site() {
    let login = Login::start().await.unwrap();
    let running = started(&settings(&login)).await;
    for next in [
        "https://evil.test/",
        "//evil.test",
        "/console/%5Cevil.test",
        "/other",
    ] {
        let mut browser = Browser::new(&running);
        let path = to_the_provider_and_back(&mut browser, &running, &login, next).await;
        let (status, page) = come_back(&mut browser, &path).await;
        assert_eq!(status, StatusCode::OK);
        assert!(
            page.contains("content=\"0; url=/console/\""),
            "{next}: {page}"
        );
        assert!(!page.contains("evil"), "{next}: {page}");
    }
    // A configured address doesn't follow from the request.
    let mut settings = settings(&login);
    let address = "https://swirl.example.org/console/sign-in/callback";
    settings.sign_in.as_mut().unwrap().redirect_url = Some(address.parse().unwrap());
    let running = started(&settings).await;
    let there = Browser::new(&running).get("/console/sign-in/with").await;
    let back = login.consent(location(&there)).unwrap();
    assert!(back.starts_with(address), "{back}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_provider_is_away_tokens_work() {
    let login = Login::start().await.unwrap();
    login.behave(|conduct| conduct.is_down = true);
    let running = started(&settings(&login)).await;
    let mut browser = Browser::new(&running);
    let there = browser.get("/console/sign-in/with").await;
    assert_eq!(there.status(), StatusCode::SERVICE_UNAVAILABLE);
    let page = there.text().await.unwrap();
    assert!(page.contains("localhost doesn&#39;t answer"), "{page}");
    assert!(
        !page.contains(&login.issuer),
        "addresses are for the log: {page}"
    );
    let answer = browser.sign_in("viewer", "/console/").await;
    assert_eq!(location(&answer), "/console/");
    // Its session isn't one of the provider.
    let csrf = browser.csrf("/console/").await;
    let form = [("csrf", csrf.as_str())];
    let out = browser.post("/console/sign-out", &form, &[]).await;
    assert_eq!(location(&out), "/console/sign-in");

    login.behave(|conduct| conduct.is_down = false);
    eventually("the provider is asked again", async || {
        let there = Browser::new(&running).get("/console/sign-in/with").await;
        (there.status() == StatusCode::SEE_OTHER).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expires_is_renewed_for_the_same_visitor() {
    let login = Login::start().await.unwrap();
    login.behave(|conduct| {
        conduct.lasts = 6;
        conduct.refreshes = true;
    });
    let running = started(&settings(&login)).await;
    let mut browser = Browser::new(&running);
    let path = to_the_provider_and_back(&mut browser, &running, &login, "/console/").await;
    let (status, page) = come_back(&mut browser, &path).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let mut renewed = async |count: usize| {
        eventually("a new token", async || {
            let (is_in, page) = overview(&mut browser).await;
            assert!(is_in && page.contains("<b>ada</b>"), "{page}");
            let forms = login.forms();
            let renewals = forms
                .iter()
                .filter(|form| form["grant_type"] == "refresh_token");
            (renewals.count() == count).then_some(())
        })
        .await;
    };
    renewed(1).await;
    renewed(2).await;
    login.behave(|conduct| {
        conduct.access_claims = Some(json!({"roles": ["admin"], "sub": "eve"}));
    });
    eventually("the end of the session", async || {
        let (is_in, page) = overview(&mut browser).await;
        assert!(!page.contains("<b>eve</b>"), "{page}");
        (!is_in).then_some(())
    })
    .await;
}

/// This is for providers whose access tokens are only for themselves.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_will_do_for_the_console_and_not_for_the_api() {
    let login = Login::start().await.unwrap();
    login.behave(|conduct| {
        conduct.access_claims = None;
        conduct.id_claims = json!({"roles": ["viewer"]});
    });
    let running = started(&settings(&login)).await;
    let mut browser = Browser::new(&running);
    let path = to_the_provider_and_back(&mut browser, &running, &login, "/console/").await;
    assert_eq!(come_back(&mut browser, &path).await.0, StatusCode::OK);
    assert!(overview(&mut browser).await.1.contains("<b>ada</b>"));
    let [token] = &login.id_tokens()[..] else {
        panic!("{:?}", login.id_tokens());
    };
    let asked = client().get(running.url("/api/v1/instances"));
    let asked = asked.bearer_auth(token).send().await.unwrap();
    assert_eq!(asked.status(), StatusCode::UNAUTHORIZED);
    let csrf = browser.csrf("/console/").await;
    let form = [("csrf", csrf.as_str())];
    let out = browser.post("/console/sign-out", &form, &[]).await;
    let page = out.text().await.unwrap();
    assert!(page.contains("/logout?"), "{page}");
    assert!(!page.contains("eyJ"), "no token is in an address: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_client_there_is_only_the_form_for_tokens() {
    let login = Login::start().await.unwrap();
    login.behave(|conduct| conduct.signs_out = false);
    let mut settings = settings(&login);
    let running = started(&settings).await;
    let mut browser = Browser::new(&running);
    let path = to_the_provider_and_back(&mut browser, &running, &login, "/console/").await;
    assert_eq!(come_back(&mut browser, &path).await.0, StatusCode::OK);
    let csrf = browser.csrf("/console/").await;
    let form = [("csrf", csrf.as_str())];
    let out = browser.post("/console/sign-out", &form, &[]).await;
    assert_eq!(
        location(&out),
        "/console/sign-in",
        "the provider has no such page"
    );

    settings.sign_in = None;
    let running = started(&settings).await;
    let mut browser = Browser::new(&running);
    let page = browser.get("/console/sign-in").await.text().await.unwrap();
    assert!(!page.contains("Sign in with"), "{page}");
    for path in ["/console/sign-in/with", "/console/sign-in/callback"] {
        assert_eq!(browser.get(path).await.status(), StatusCode::NOT_FOUND);
    }
}
