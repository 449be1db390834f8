//! Tokens of a provider: which are accepted, and which are refused.

use std::sync::Arc;

use ring::hmac;
use serde_json::{Value, json};
use swirl_coordinator::access::{Access, KeySource, Need, Oidc, OidcError, Role, Sender, Tokens};
use swirl_servers::eventually;

use crate::provider::{AUDIENCE, Key, Provider, Web, encode, now};
use crate::running::{Running, Setup, client, guarded};

async fn ask(running: &Running, path: &str, token: &str) -> (u16, Value) {
    let request = client().get(running.url(path)).bearer_auth(token);
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

/// The status and its reason.
async fn read(running: &Running, token: &str) -> (u16, String) {
    let (status, body) = ask(running, "/api/v1/instances", token).await;
    let detail = body["detail"].as_str().unwrap_or_default();
    (status, detail.to_owned())
}

fn with(value: &Value, name: &str, member: Value) -> Value {
    let mut value = value.clone();
    match member {
        Value::Null => drop(value.as_object_mut().unwrap().remove(name)),
        member => value[name] = member,
    }
    value
}

#[tokio::test]
async fn valid_tokens_allow_what_their_roles_allow() {
    let (ed, ec) = (Key::ed("a"), Key::ec("b"));
    let provider = Provider::start(&[&ed, &ec]).await;
    let running = Setup::new(guarded(Some(provider.oidc()))).start().await;
    for key in [&ed, &ec] {
        let token = key.token(&provider.claims("viewer"));
        assert_eq!(read(&running, &token).await.0, 200, "{}", key.id);
        let request = client().post(running.url("/api/v1/definitions"));
        let response = request
            .bearer_auth(&token)
            .body("id: x")
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 403);
        let body: Value = response.json().await.unwrap();
        let detail = "this needs the role deployer, but 'ada' has viewer";
        assert_eq!(body["detail"], detail);
    }
    let claims = provider.claims("viewer");
    for claims in [
        with(&claims, "aud", json!(["a", AUDIENCE])),
        with(&claims, "aud", json!("other")),
        with(&claims, "nbf", Value::Null),
        with(&claims, "roles", json!("viewer")),
        // This is within the leeway.
        with(&claims, "exp", json!(now() - 2)),
        with(&claims, "nbf", json!(now() + 2)),
    ] {
        let (status, detail) = read(&running, &ed.token(&claims)).await;
        assert_eq!(status, 200, "{claims}: {detail}");
    }
    // Without a key id, only one key may fit.
    let header = with(&ed.header(), "kid", Value::Null);
    let token = ed.token_with(&header, &claims);
    assert_eq!(read(&running, &token).await.0, 200);
    for kind in [Value::Null, json!("at+jwt"), json!("application/at+JWT")] {
        let token = ed.token_with(&with(&ed.header(), "typ", kind), &claims);
        assert_eq!(read(&running, &token).await.0, 200);
    }
    // Static tokens still work next to it.
    assert_eq!(read(&running, "viewer-token").await.0, 200);
    let none = ed.token(&with(&claims, "roles", json!(["cook"])));
    assert_eq!(read(&running, &none).await.0, 403);
    assert_eq!(provider.asked(), 1, "the keys are cached");
}

#[tokio::test]
async fn invalid_tokens_are_refused_with_the_reason() {
    let (ed, ec, stranger) = (Key::ed("a"), Key::ec("b"), Key::ed("a"));
    let provider = Provider::start(&[&ed, &ec]).await;
    let running = Setup::new(guarded(Some(provider.oidc()))).start().await;
    let claims = provider.claims("admin");
    let header = ed.header();
    let claimed = |name: &str, member: Value| ed.token(&with(&claims, name, member));
    let headed = |name: &str, member: Value| ed.token_with(&with(&header, name, member), &claims);
    let good = ed.token(&claims);
    let parts: Vec<&str> = good.split('.').collect();
    let (head, body, signature) = (parts[0], parts[1], parts[2]);
    let forged = encode(with(&claims, "sub", json!("eve")).to_string().as_bytes());
    let nothing = encode(br#"{"alg":"none","typ":"JWT"}"#);
    // The public key, used as a shared secret.
    let shared = encode(br#"{"alg":"HS256","typ":"JWT","kid":"a"}"#);
    let message = format!("{shared}.{body}");
    let secret = hmac::Key::new(hmac::HMAC_SHA256, ed.public());
    let confused = encode(hmac::sign(&secret, message.as_bytes()).as_ref());

    for (token, part) in [
        (claimed("iss", json!("https://evil.example")), "iss"),
        (claimed("iss", Value::Null), "'iss'"),
        (
            claimed("iss", json!([claims["iss"], "https://evil.example"])),
            "iss",
        ),
        (claimed("iss", json!([claims["iss"]])), "iss"),
        (headed("typ", json!("logout+jwt")), "typ"),
        (headed("typ", json!("dpop+jwt")), "typ"),
        (headed("typ", json!("application/logout+jwt")), "typ"),
        (claimed("aud", json!("bank")), "aud"),
        (claimed("aud", json!(["bank", "post"])), "aud"),
        (claimed("aud", Value::Null), "'aud'"),
        (claimed("aud", json!(7)), "'aud'"),
        (claimed("exp", json!(now() - 30)), "expired"),
        (claimed("exp", Value::Null), "'exp'"),
        (claimed("exp", json!("never")), "'exp'"),
        (claimed("nbf", json!(now() + 30)), "nbf"),
        (headed("kid", json!("z")), "kid"),
        (headed("kid", json!("b")), "kid"),
        (headed("alg", json!("ES256")), "kid"),
        (headed("alg", json!("RS256")), "kid"),
        (headed("alg", json!("PS256")), "algorithms"),
        (headed("crit", json!(["b64"])), "crit"),
        (stranger.token(&claims), "signature"),
        (format!("{head}.{forged}.{signature}"), "signature"),
        (format!("{head}.{body}."), "signature"),
        (format!("{nothing}.{body}."), "JWT"),
        (format!("{nothing}.{body}.{signature}"), "JWT"),
        (format!("{message}.{confused}"), "algorithms"),
        (format!("{head}.{body}"), "unknown"),
        (format!("{head}.{body}.{signature}.x"), "unknown"),
        ("a.b.c".to_owned(), "JWT"),
        ("..".to_owned(), "JWT"),
    ] {
        let (status, detail) = read(&running, &token).await;
        assert_eq!(status, 401, "{token}: {detail}");
        assert!(detail.contains(part), "{part}: {detail}");
        assert!(!detail.contains(signature), "{detail}");
    }
    assert_eq!(read(&running, &good).await.0, 200);
    assert_eq!(provider.asked(), 1, "invalid tokens cause no request");
}

#[tokio::test]
async fn keys_may_be_replaced() {
    let (old, new) = (Key::ed("2025"), Key::ec("2026"));
    let provider = Provider::start(&[&old]).await;
    let running = Setup::new(guarded(Some(provider.oidc()))).start().await;
    let claims = provider.claims("viewer");
    assert_eq!(read(&running, &old.token(&claims)).await.0, 200);
    provider.has(Some(&[&new]));
    eventually("the new key", async || {
        let claims = provider.claims("viewer");
        let (status, detail) = read(&running, &new.token(&claims)).await;
        assert!([200, 401].contains(&status), "{status}: {detail}");
        (status == 200).then_some(())
    })
    .await;
    assert_eq!(provider.asked(), 2, "not with every token");
    let (status, detail) = read(&running, &old.token(&claims)).await;
    assert_eq!(status, 401, "it has been withdrawn: {detail}");
}

#[tokio::test]
async fn without_keys_no_token_can_be_checked() {
    let key = Key::ed("a");
    let provider = Provider::start(&[]).await;
    provider.has(None);
    let running = Setup::new(guarded(Some(provider.oidc()))).start().await;
    let token = key.token(&provider.claims("viewer"));
    let (status, body) = ask(&running, "/api/v1/instances", &token).await;
    assert_eq!(
        (status, &body["code"]),
        (503, &json!("provider-unavailable"))
    );
    let detail = body["detail"].to_string();
    assert!(
        !detail.contains("127.0.0.1"),
        "addresses are only logged: {detail}"
    );
    assert_eq!(read(&running, "viewer-token").await.0, 200);
    provider.has(Some(&[&key]));
    eventually("the keys", async || {
        let token = key.token(&provider.claims("viewer"));
        let (status, _) = read(&running, &token).await;
        (status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_discovery_document_must_name_the_configured_issuer() {
    let key = Key::ed("a");
    let provider = Provider::start(&[&key]).await;
    let mut settings = provider.settings();
    settings.issuer = settings.issuer.replace("127.0.0.1", "localhost");
    let oidc = Oidc::new(settings.clone(), Arc::new(Web)).unwrap();
    let error = oidc.check().await.unwrap_err();
    assert!(error.contains("is from the issuer"), "{error}");
    assert_eq!(provider.oidc().check().await, Ok(1));

    let refused = |change: fn(&mut swirl_coordinator::access::OidcSettings)| {
        let mut settings = settings.clone();
        change(&mut settings);
        Oidc::new(settings, Arc::new(Web)).err()
    };
    let shared = refused(|settings| settings.algorithms = vec!["HS256".to_owned()]);
    assert_eq!(shared, Some(OidcError::Algorithm("HS256".to_owned())));
    let none = refused(|settings| settings.algorithms = vec!["none".to_owned()]);
    assert_eq!(none, Some(OidcError::Algorithm("none".to_owned())));
    let everybody = refused(|settings| settings.audience.clear());
    assert_eq!(everybody, Some(OidcError::Audience));
    let no_file = refused(|settings| settings.keys = KeySource::File("/no/such/file".into()));
    assert!(matches!(no_file, Some(OidcError::Keys(_))));
}

/// The tokens of RFC 7515, A.2 and A.3: their signatures are valid, and they have long expired.
#[tokio::test]
async fn signatures_of_the_standard_are_valid() {
    const BODY: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const RSA: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    const EC: &str =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let keys = json!({"keys": [
        {"kty": "RSA", "e": "AQAB", "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"},
        {"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},
    ]});
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, keys.to_string()).unwrap();
    let provider = Provider::start(&[]).await;
    let mut settings = provider.settings();
    settings.issuer = "joe".to_owned();
    settings.keys = KeySource::File(file);
    let oidc = Oidc::new(settings, Arc::new(Web)).unwrap();
    let access = Access::guarded("shop", Tokens::none(), Some(oidc));
    let refused = async |token: &str| {
        let header = format!("Bearer {token}");
        let refused = access
            .authorize(Some(header.as_bytes()), Need::Read, Sender::default())
            .await;
        refused.unwrap_err().to_string()
    };
    for (header, signature) in [("eyJhbGciOiJSUzI1NiJ9", RSA), ("eyJhbGciOiJFUzI1NiJ9", EC)] {
        // The signature is checked first, and they name no audience.
        let reason = refused(&format!("{header}.{BODY}.{signature}")).await;
        assert!(reason.contains("'aud'"), "{reason}");
        let wrong = signature.replacen(&signature[..1], "E", 1);
        let reason = refused(&format!("{header}.{BODY}.{wrong}")).await;
        assert!(reason.contains("signature is wrong"), "{reason}");
    }
}

#[tokio::test]
async fn roles_and_namespaces_come_from_claims() {
    let key = Key::ed("a");
    let provider = Provider::start(&[&key]).await;
    let mut settings = provider.settings();
    settings.roles_claim = "realm_access.roles".to_owned();
    settings.roles = [("sre".to_owned(), Role::Operator)].into();
    settings.namespaces_claim = Some("spaces".to_owned());
    let oidc = Oidc::new(settings, Arc::new(Web)).unwrap();
    let running = Setup::new(guarded(Some(oidc))).start().await;
    let claims = with(
        &provider.claims("admin"),
        "realm_access",
        json!({"roles": ["sre", "admin"]}),
    );
    let named = |spaces: Value| key.token(&with(&claims, "spaces", spaces));
    assert_eq!(read(&running, &named(json!(["bank", "shop"]))).await.0, 200);
    assert_eq!(read(&running, &named(json!("shop"))).await.0, 200);
    for spaces in [json!(["bank"]), json!([]), Value::Null] {
        let (status, detail) = read(&running, &named(spaces)).await;
        assert_eq!(status, 403);
        assert!(detail.contains("namespace 'shop'"), "{detail}");
    }
    // 'admin' isn't in the mapping, so it is ignored.
    let request = client().post(running.url("/api/v1/definitions"));
    let request = request.bearer_auth(named(json!("shop"))).body("id: x");
    assert_eq!(request.send().await.unwrap().status(), 403);
}
