//! Fetching of documents, and its limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Redirect;
use axum::routing::get;
use swirl_functions::auth::{Auth, Secret};
use swirl_functions::resources::{Cause, FetchError, Fetcher, Hosts, HttpOptions, HttpResources};
use swirl_spec::resource::{FileResources, Resources};

use crate::ports::serve;

fn options() -> HttpOptions {
    HttpOptions {
        bytes_max: 1000,
        timeout: swirl_servers::PATIENCE,
        ..HttpOptions::default()
    }
}

fn resources() -> HttpResources {
    HttpResources::new(options()).unwrap()
}

fn failed(uri: String, cause: Cause) -> Result<Vec<u8>, FetchError> {
    Err(FetchError { uri, cause })
}

/// Answers with the received `Authorization` header, or `none`.
async fn who(headers: HeaderMap) -> String {
    let value = headers
        .get("authorization")
        .map(|value| value.to_str().unwrap());
    value.unwrap_or("none").to_owned()
}

#[tokio::test]
async fn the_demo_document_can_be_fetched_from_blocking_code() {
    let base = serve(swirl_demo_service::router()).await;
    let uri = format!("{base}/openapi.json#greet");
    let resources = HttpResources::new(HttpOptions::default()).unwrap();
    let bytes = resources.fetch(&uri).await.unwrap();
    let expected = swirl_demo_service::openapi();
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&bytes).unwrap(),
        expected
    );
    // Twice, because the second fetch must not use anything from the first fetch's runtime.
    for _ in 0..2 {
        let (resources, uri) = (resources.clone(), uri.clone());
        let again = tokio::task::spawn_blocking(move || resources.get(&uri))
            .await
            .unwrap();
        assert_eq!(again.unwrap(), bytes);
    }
}

#[tokio::test]
async fn errors_state_size_status_and_connection() {
    let router = Router::new()
        .route("/large", get(async || "x".repeat(1001)))
        .route("/full", get(async || "x".repeat(1000)))
        .route("/busy", get(async || StatusCode::SERVICE_UNAVAILABLE));
    let base = serve(router).await;
    let fetch = async |path: &str| resources().fetch(&format!("{base}{path}")).await;
    assert_eq!(fetch("/full").await.unwrap().len(), 1000);
    let uri = format!("{base}/large");
    assert_eq!(
        fetch("/large?s3cret").await,
        failed(uri, Cause::TooLarge { limit: 1000 })
    );
    for (path, status, can_retry) in [("/missing", 404, false), ("/busy", 503, true)] {
        let result = fetch(path).await;
        assert_eq!(
            result,
            failed(format!("{base}{path}"), Cause::Status(status))
        );
        assert_eq!(result.unwrap_err().can_retry(), can_retry);
    }
    // A port that was free a moment ago.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/a", listener.local_addr().unwrap());
    drop(listener);
    let error = resources().fetch(&uri).await.unwrap_err();
    assert!(
        error.can_retry() && error.to_string().contains("no connection to 127.0.0.1"),
        "{error}"
    );
    for uri in [
        "file:///etc/passwd",
        "ftp://127.0.0.1/a",
        "openapi.json",
        "",
    ] {
        let error = resources().fetch(uri).await.unwrap_err();
        assert!(matches!(error.cause, Cause::Uri), "{uri}: {error}");
    }
}

#[tokio::test]
async fn a_fetch_without_an_answer_times_out() {
    let router = Router::new().route("/slow", get(std::future::pending::<()>));
    let uri = format!("{}/slow", serve(router).await);
    let limit = Duration::from_millis(200);
    let options = HttpOptions {
        timeout: limit,
        ..options()
    };
    let error = HttpResources::new(options)
        .unwrap()
        .fetch(&uri)
        .await
        .unwrap_err();
    assert_eq!(Err(error), failed(uri, Cause::Timeout { limit }));
}

#[tokio::test]
async fn other_hosts_are_contacted_only_if_allowed() {
    let uri = "http://example.invalid/openapi.json?key=s3cret";
    let error = resources().fetch(uri).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`http://example.invalid/openapi.json`: documents of the host \
         `example.invalid` may not be fetched; allow it with `--allow-host example.invalid` or `http.allow_hosts`"
    );
    let hosts = Hosts::parse(&["example.invalid"]).unwrap();
    let options = HttpOptions {
        hosts,
        proxy_from_env: false,
        ..options()
    };
    let error = HttpResources::new(options)
        .unwrap()
        .fetch(uri)
        .await
        .unwrap_err();
    assert!(matches!(error.cause, Cause::Unreachable(_)), "{error}");
}

#[tokio::test]
async fn redirects_are_followed_within_the_rule() {
    let router = Router::new()
        .route("/who", get(who))
        .route("/once", get(async || Redirect::permanent("who")))
        .route("/loop", get(async || Redirect::temporary("/loop")))
        .route(
            "/away",
            get(async || Redirect::to("http://example.invalid/a?key=s3cret")),
        )
        .route("/file", get(async || Redirect::to("file:///etc/passwd")))
        .route("/nowhere", get(async || StatusCode::FOUND));
    let base = serve(router).await;
    let fetch = async |path: &str| resources().fetch(&format!("{base}{path}")).await;
    assert_eq!(fetch("/once").await.unwrap(), b"none");
    for (path, expected) in [
        ("/loop", "there are more than 5 redirects"),
        (
            "/away",
            "to `http://example.invalid/a` isn't followed: allow its host",
        ),
        ("/file", "it is not an http or https URL"),
        ("/nowhere", "it is not an http or https URL"),
    ] {
        let error = fetch(path).await.unwrap_err().to_string();
        assert!(
            error.contains(expected) && !error.contains("s3cret"),
            "{path}: {error}"
        );
    }
}

#[tokio::test]
async fn credentials_go_to_their_document_and_no_other_host() {
    let other = serve(Router::new().route("/who", get(who))).await;
    let away = format!("{other}/who");
    let router = Router::new()
        .route("/who", get(who))
        .route("/near", get(async || Redirect::to("/who")))
        .route("/away", get(move || async move { Redirect::to(&away) }));
    let base = serve(router).await;
    let bearer = Auth::Bearer {
        token: Secret::new("s3cret"),
    };
    let basic = Auth::Basic {
        username: "me".to_owned(),
        password: Secret::new("pw"),
    };
    let resources = resources()
        .with_auth(&format!("{base}/near#op"), bearer.clone())
        .with_auth(&format!("{base}/away"), bearer)
        .with_auth(&format!("{base}/who"), basic);
    for (path, expected) in [
        ("/near", "Bearer s3cret"),
        ("/away", "none"),
        ("/who#op", "Basic bWU6cHc="),
        ("/who?", "none"),
    ] {
        let got = resources.fetch(&format!("{base}{path}")).await.unwrap();
        assert_eq!(String::from_utf8(got).unwrap(), expected, "{path}");
    }
    assert!(!format!("{resources:?}").contains("s3cret"));
    let broken = Auth::Bearer {
        token: Secret::new("s3cret\n"),
    };
    let error = resources.with_auth(&format!("{base}/who"), broken);
    let error = error.fetch(&format!("{base}/who")).await.unwrap_err();
    assert!(matches!(error.cause, Cause::Auth(_)), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[tokio::test]
async fn the_referring_document_decides_between_files_and_hosts() {
    let router = Router::new().route("/docs/a.json", get(async || "over http"));
    let base = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), "a file").unwrap();
    let fetcher = Fetcher {
        given: swirl_spec::resource::MapResources::default(),
        http: resources(),
        files: Some(FileResources::new(folder.path(), 100)),
        catalog: None,
    };
    let without = Fetcher {
        files: None,
        ..fetcher.clone()
    };
    // From blocking code, as the reader of a definition calls it.
    let check = move || {
        let remote = format!("{base}/docs/index.json");
        let fetch = |uri: &str, base: Option<&str>| match fetcher.fetch(uri, base) {
            Ok(bytes) => String::from_utf8(bytes).unwrap(),
            Err(error) => error.to_string(),
        };
        assert_eq!(fetch("a.json", None), "a file");
        assert_eq!(fetch("file://a.json", Some("shop.sw.yaml")), "a file");
        assert_eq!(fetch(&format!("{base}/docs/a.json"), None), "over http");
        assert_eq!(fetch("a.json", Some(&remote)), "over http");
        assert!(fetch("HTTP://127.0.0.1:1/a", None).contains("no connection"));
        for (uri, expected) in [
            ("a.json", "send it with the document"),
            ("file:///etc/hostname", "send it with the document"),
            ("ftp://127.0.0.1/a", "the scheme 'ftp'"),
        ] {
            let error = without.fetch(uri, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{uri}: {error}");
        }
        for (uri, base, expected) in [
            ("http://example.invalid/a", None, "documents of the host"),
            (
                "//example.invalid/a",
                Some(remote.as_str()),
                "documents of the host",
            ),
            (
                "file://a.json",
                Some(remote.as_str()),
                "a document on the web cannot refer to a file",
            ),
            (
                "ftp://127.0.0.1/a",
                None,
                "the scheme 'ftp', which is not available",
            ),
            (
                "ftp://127.0.0.1/a",
                Some(remote.as_str()),
                "the scheme 'ftp', which is not available",
            ),
            ("../a.json", None, "cannot be read from"),
        ] {
            let error = fetch(uri, base);
            assert!(error.contains(expected), "{uri}: {error}");
        }
    };
    tokio::task::spawn_blocking(check).await.unwrap();
}

/// A server that counts its requests. `/slow` never answers.
async fn counting() -> (String, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let answer = move |uri: Uri| {
        seen.fetch_add(1, Ordering::SeqCst);
        async move {
            match uri.path() {
                "/slow" => std::future::pending().await,
                "/there" => StatusCode::OK,
                _ => StatusCode::NOT_FOUND,
            }
        }
    };
    let router = Router::new().fallback(answer);
    (serve(router).await, count)
}

#[tokio::test]
async fn a_document_that_failed_is_not_asked_again_for_its_definition() {
    let (base, count) = counting().await;
    let resources = resources().for_a_definition();
    let missing = format!("{base}/missing");
    for _ in 0..3 {
        let cause = Cause::Status(404);
        assert_eq!(
            resources.fetch(&missing).await,
            failed(missing.clone(), cause)
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // With credentials, the answer may be another one.
    let token = Secret::new("t");
    let other = resources
        .clone()
        .with_auth(&missing, Auth::Bearer { token });
    other.fetch(&missing).await.unwrap_err();
    assert_eq!(count.load(Ordering::SeqCst), 2);
    resources
        .for_a_definition()
        .fetch(&missing)
        .await
        .unwrap_err();
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn the_documents_of_a_definition_have_limits_in_total() {
    let (base, count) = counting().await;
    let limit = Duration::from_millis(300);
    let few = HttpOptions {
        total_count_max: 2,
        ..options()
    };
    let few = HttpResources::new(few).unwrap().for_a_definition();
    let there = format!("{base}/there");
    for _ in 0..2 {
        few.fetch(&there).await.unwrap();
    }
    let cause = Cause::TotalCount { limit: 2 };
    assert_eq!(few.fetch(&there).await, failed(there.clone(), cause));
    assert_eq!(count.load(Ordering::SeqCst), 2);

    let short = HttpOptions {
        total_time_max: limit,
        ..options()
    };
    let short = HttpResources::new(short).unwrap().for_a_definition();
    for path in ["/slow", "/there", "/slow"] {
        let uri = format!("{base}{path}");
        let cause = Cause::TotalTime { limit };
        assert_eq!(short.fetch(&uri).await, failed(uri, cause));
    }
    assert!(count.load(Ordering::SeqCst) <= 3);
}
