//! Web pages of other origins that may use the API.

use reqwest::{Method, StatusCode};
use swirl_coordinator::access::Access;

use crate::running::{Setup, client};

const PAGE: &str = "https://app.example.org";

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_allowed_origins_may_use_the_api() {
    let running = Setup {
        origins: vec![PAGE.to_owned()],
        ..Setup::new(Access::open("default"))
    };
    let running = running.start().await;
    let url = format!("http://{}/api/v1/definitions", running.address);
    let ask = async |method: Method, headers: &[(&str, &str)]| {
        let mut request = client().request(method, &url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    };
    let header = |answer: &reqwest::Response, name: &str| {
        let value = answer.headers().get(name);
        value.map(|value| value.to_str().unwrap().to_owned())
    };

    // A browser sends a preflight request first.
    let answer = ask(
        Method::OPTIONS,
        &[
            ("origin", PAGE),
            ("sec-fetch-site", "cross-site"),
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "authorization,content-type",
            ),
        ],
    )
    .await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    for (name, value) in [
        ("access-control-allow-origin", PAGE),
        ("access-control-allow-methods", "GET, POST, DELETE"),
        ("access-control-allow-headers", "authorization,content-type"),
        ("access-control-max-age", "600"),
    ] {
        assert_eq!(header(&answer, name).as_deref(), Some(value), "{name}");
    }

    // Then it sends the request, and may read the response, even if it is an error.
    let from = [("origin", PAGE), ("sec-fetch-site", "cross-site")];
    for (method, status) in [(Method::GET, 200), (Method::PUT, 405)] {
        let answer = ask(method, &from).await;
        assert_eq!(answer.status(), status);
        let origin = header(&answer, "access-control-allow-origin");
        assert_eq!(origin.as_deref(), Some(PAGE));
        assert_eq!(header(&answer, "access-control-allow-credentials"), None);
        let all = answer.headers().get_all("vary").iter();
        assert!(all.into_iter().any(|name| name == "origin"));
    }

    // Other origins are still refused, and so are requests that hide their origin.
    for headers in [
        &[("origin", "https://app.example.org.evil.example")][..],
        &[("origin", "http://app.example.org")],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site")],
    ] {
        for method in [Method::GET, Method::OPTIONS] {
            let answer = ask(method, headers).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{headers:?}");
            assert_eq!(header(&answer, "access-control-allow-origin"), None);
        }
    }
    // The responses tell caches that they depend on the origin.
    let answer = ask(Method::GET, &[]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(header(&answer, "access-control-allow-origin"), None);
}
