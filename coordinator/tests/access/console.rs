//! The console as a browser sees it: its access control, its forms, its protective headers.

use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use swirl_coordinator::access::Access;
use swirl_servers::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::running::{Running, Setup, guarded};

/// A browser with one cookie, which follows no redirect.
pub struct Browser<'a> {
    running: &'a Running,
    client: Client,
    pub cookie: String,
}

impl Browser<'_> {
    pub fn new(running: &Running) -> Browser<'_> {
        let _ = crate::running::client();
        let client = Client::builder().no_proxy().redirect(Policy::none());
        Browser {
            running,
            client: client.build().unwrap(),
            cookie: String::new(),
        }
    }

    pub async fn get(&mut self, path: &str) -> Response {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&mut self, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = self.client.get(self.running.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.header("cookie", &self.cookie).send().await.unwrap();
        self.keep(answer.headers());
        answer
    }

    pub async fn post(
        &mut self,
        path: &str,
        form: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Response {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let body = body.extend_pairs(form).finish();
        let mut request = self.client.post(self.running.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let kind = "application/x-www-form-urlencoded";
        let request = request.header("content-type", kind);
        let request = request.header("cookie", &self.cookie).body(body);
        let answer = request.send().await.unwrap();
        self.keep(answer.headers());
        answer
    }

    /// Sends a form with files, of which the parts are separated by `x`.
    async fn send_files(&mut self, body: &str) -> Response {
        let request = self.client.post(self.running.url("/console/deploy/files"));
        let request = request.header("content-type", "multipart/form-data; boundary=x");
        let request = request.header("cookie", &self.cookie);
        request.body(body.to_owned()).send().await.unwrap()
    }

    fn keep(&mut self, headers: &HeaderMap) {
        if let Some(given) = headers.get("set-cookie") {
            let given = given.to_str().unwrap();
            assert!(
                given.contains("HttpOnly") && given.contains("SameSite=Lax"),
                "{given}"
            );
            self.cookie = given.split(';').next().unwrap().to_owned();
        }
    }

    /// The CSRF token of the page's forms.
    pub async fn csrf(&mut self, path: &str) -> String {
        let text = self.get(path).await.text().await.unwrap();
        let (_, rest) = text.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }

    /// Signs in with the token of this name, and returns the response.
    pub async fn sign_in(&mut self, name: &str, next: &str) -> Response {
        let csrf = self.csrf("/console/sign-in").await;
        let token = format!("{name}-token");
        let form = [("csrf", csrf.as_str()), ("token", &token), ("next", next)];
        self.post("/console/sign-in", &form, &[]).await
    }
}

pub fn location(answer: &Response) -> &str {
    let found = answer.headers().get("location");
    assert!(found.is_some(), "{answer:?}");
    found.unwrap().to_str().unwrap()
}

const PAGES: &[&str] = &[
    "/console/",
    "/console/instances",
    "/console/instances?status=faulted",
    "/console/definitions",
    "/console/deploy",
    "/console/deploy/files",
    "/console/events",
    "/console/schedules",
    "/console/system",
];

#[tokio::test(flavor = "multi_thread")]
async fn pages_require_signing_in() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    for path in PAGES {
        let answer = browser.get(path).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{path}");
        assert!(
            location(&answer).starts_with("/console/sign-in?next="),
            "{path}"
        );
    }
    let plain = browser.get("/console").await;
    assert_eq!(location(&plain), "/console/");
    let wrong = browser.sign_in("nobody", "/console/").await;
    assert_eq!(wrong.status(), StatusCode::FORBIDDEN);
    let text = wrong.text().await.unwrap();
    assert!(
        text.contains("You are not signed in") && !text.contains("nobody-token"),
        "{text}"
    );
    let still = browser.get("/console/").await;
    assert_eq!(still.status(), StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lasts_until_signing_out() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    browser.get("/console/sign-in").await;
    let before = browser.cookie.clone();
    let answer = browser
        .sign_in("viewer", "/console/instances?status=faulted")
        .await;
    assert_eq!(location(&answer), "/console/instances?status=faulted");
    assert_ne!(browser.cookie, before, "the old session is invalid");
    for path in PAGES {
        let answer = browser.get(path).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("cache-control"), "no-store");
        let text = answer.text().await.unwrap();
        assert!(
            text.contains("<b>viewer</b>") && text.contains("shop"),
            "{path}"
        );
        // The page contains nothing that the policy would block.
        for inline in ["<style", " style=", " onclick=", "<script>"] {
            assert!(!text.contains(inline), "{path}: {inline}");
        }
    }
    // A signed-in visitor is redirected at once, and only within the site.
    let on = browser
        .get("/console/sign-in?next=https://evil.test/")
        .await;
    assert_eq!(location(&on), "/console/");
    let csrf = browser.csrf("/console/").await;
    let out = browser
        .post("/console/sign-out", &[("csrf", &csrf)], &[])
        .await;
    assert_eq!(location(&out), "/console/sign-in");
    assert_eq!(
        browser.get("/console/").await.status(),
        StatusCode::SEE_OTHER
    );
}

/// The paths of forms, and the tokens that may send them.
const FORMS: &[(&str, &str)] = &[
    ("/console/instances/none/cancel", "operator"),
    ("/console/instances/none/retry", "operator"),
    ("/console/definitions", "deployer"),
    ("/console/definitions/none/1/delete", "deployer"),
    ("/console/schedules/none/pause", "operator"),
    ("/console/schedules/none/fire", "operator"),
    ("/console/dead-letters/1/drop", "operator"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_form_needs_the_role_that_the_api_requires() {
    let running = Setup::new(guarded(None)).start().await;
    for role in ["viewer", "operator", "deployer", "admin"] {
        let mut browser = Browser::new(&running);
        browser.sign_in(role, "/console/").await;
        let csrf = browser.csrf("/console/").await;
        for (path, needed) in FORMS {
            let form = [("csrf", csrf.as_str()), ("document", "none")];
            let answer = browser.post(path, &form, &[]).await;
            let may = role == *needed || role == "admin";
            let refused = answer.status() == StatusCode::FORBIDDEN;
            assert_eq!(refused, !may, "{path} as {role}: {}", answer.status());
            if refused {
                let text = answer.text().await.unwrap();
                assert!(
                    text.contains("needs the role") && text.contains(needed),
                    "{text}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_forms_are_refused() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    browser.sign_in("admin", "/console/").await;
    let csrf = browser.csrf("/console/").await;
    let own = running.url("");
    let path = "/console/instances/none/cancel";
    let good = [("csrf", csrf.as_str())];
    let taken = browser.post(path, &good, &[("origin", &own)]).await;
    assert_eq!(
        taken.status(),
        StatusCode::NOT_FOUND,
        "there is no such instance"
    );
    for (form, headers) in [
        (&[][..], &[][..]),
        (&[("csrf", "")], &[]),
        (&[("csrf", "0000")], &[]),
        (&good, &[("origin", "https://evil.test")]),
        (&good, &[("origin", "null")]),
        (&good, &[("sec-fetch-site", "cross-site")]),
        (&good, &[("sec-fetch-site", "same-site")]),
    ] {
        let refused = browser.post(path, form, headers).await;
        assert_eq!(
            refused.status(),
            StatusCode::FORBIDDEN,
            "{form:?} {headers:?}"
        );
    }
    // The CSRF token of another browser.
    let mut other = Browser::new(&running);
    other.sign_in("admin", "/console/").await;
    let refused = other.post(path, &good, &[]).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
}

/// An origin that may use the API may not use the console. Otherwise its pages could act for a signed-in visitor.
#[tokio::test(flavor = "multi_thread")]
async fn origins_allowed_for_the_api_are_refused_by_the_console() {
    let page = "https://app.example.org";
    let running = Setup {
        origins: vec![page.to_owned()],
        ..Setup::new(Access::open("default"))
    };
    let running = running.start().await;
    let mut browser = Browser::new(&running);
    let csrf = browser.csrf("/console/deploy").await;
    let form = [("csrf", csrf.as_str()), ("document", "none")];
    let own = browser.post("/console/definitions", &form, &[]).await;
    assert_eq!(own.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let text = own.text().await.unwrap();
    assert!(
        text.contains("the document is not a valid definition"),
        "{text}"
    );
    let other = browser
        .post("/console/definitions", &form, &[("origin", page)])
        .await;
    assert_eq!(other.status(), StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_known_files_are_served() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    for (name, kind) in [
        ("console.css", "text/css; charset=utf-8"),
        ("chart.css", "text/css; charset=utf-8"),
        ("console.js", "text/javascript; charset=utf-8"),
        ("editor.js", "text/javascript; charset=utf-8"),
        ("codemirror.js", "text/javascript; charset=utf-8"),
        ("codemirror.licences.txt", "text/plain; charset=utf-8"),
        ("icon.svg", "image/svg+xml; charset=utf-8"),
    ] {
        let answer = browser.get(&format!("/console/assets/{name}")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
        assert_eq!(answer.headers()["content-type"], kind);
    }
    for path in ["/console/assets/..%2Fconsole.css", "/console/nothing"] {
        assert_eq!(
            browser.get(path).await.status(),
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_served_below_a_path() {
    let mut setup = Setup::new(guarded(None));
    setup.base_path = "/swirl/";
    let running = setup.start().await;
    let mut browser = Browser::new(&running);
    let answer = browser.get("/swirl/console/").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let location = answer.headers()["location"].to_str().unwrap().to_owned();
    assert!(location.starts_with("/swirl/console/sign-in"), "{location}");
    let page = browser.get(&location).await;
    let cookie = page.headers().get("set-cookie").cloned();
    let text = page.text().await.unwrap();
    assert!(text.contains("href=\"/swirl/console/assets/"), "{text}");
    assert!(text.contains("action=\"/swirl/console/sign-in"), "{text}");
    assert!(!text.contains("=\"/console/assets"), "{text}");
    if let Some(cookie) = cookie {
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.contains("Path=/swirl/console;"), "{cookie}");
    }
    let csrf = browser.csrf(&location).await;
    let form = [
        ("csrf", csrf.as_str()),
        ("token", "viewer-token"),
        ("next", "/console/instances"),
    ];
    let signed_in = browser.post("/swirl/console/sign-in", &form, &[]).await;
    assert_eq!(signed_in.status(), StatusCode::SEE_OTHER);
    assert_eq!(signed_in.headers()["location"], "/swirl/console/instances");
    let list = browser.get("/swirl/console/instances").await;
    assert_eq!(list.status(), StatusCode::OK);
    let list = list.text().await.unwrap();
    assert!(list.contains("href=\"/swirl/console/definitions"), "{list}");
    // Probes, and proxies that remove the path.
    for path in ["/swirl/api/v1/openapi.json", "/swirl/healthz", "/healthz"] {
        assert_eq!(browser.get(path).await.status(), StatusCode::OK, "{path}");
    }
    let other = browser.get("/swirling/healthz").await;
    assert_eq!(other.status(), StatusCode::NOT_FOUND);
}

/// This server makes no rehearsals.
#[tokio::test(flavor = "multi_thread")]
async fn there_is_nothing_to_try_where_rehearsals_are_off() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    browser.sign_in("deployer", "/console/").await;
    let page = browser.get("/console/deploy").await.text().await.unwrap();
    assert!(page.contains("Deploy a definition") && !page.contains("Try it"));
    let csrf = browser.csrf("/console/deploy").await;
    let form = [("csrf", &*csrf), ("document", "id: w"), ("try-input", "{}")];
    let refused = browser.post("/console/deploy/rehearse", &form, &[]).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let text = refused.text().await.unwrap();
    assert!(text.contains("rehearsals are switched off"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_comes_back_as_a_file() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    browser.sign_in("deployer", "/console/").await;
    let csrf = browser.csrf("/console/deploy").await;
    let path = "/console/rehearsals/save";
    let (name, scenario) = (
        ("name", "../order.scenario.yaml"),
        ("scenario", "name: x\r\n"),
    );
    let answer = browser
        .post(path, &[("csrf", &csrf), name, scenario], &[])
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    let headers = answer.headers();
    let file = "attachment; filename=\"order.scenario.yaml\"";
    assert_eq!(headers["content-disposition"], file);
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(answer.text().await.unwrap(), "name: x\n");
    let forged = browser.post(path, &[name, scenario], &[]).await;
    assert_eq!(forged.status(), StatusCode::FORBIDDEN);
}

/// The files of somebody who may not deploy aren't read: the answer comes while they are still on their way.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_refused_before_they_are_read() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    browser.sign_in("viewer", "/console/").await;
    let csrf = browser.csrf("/console/").await;
    for path in ["/console/deploy/files", "/console/deploy/findings"] {
        let whole = multipart(&csrf);
        let (begun, _) = whole.split_once("id: <w>").unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nContent-Length: 100000\r\n\
             Content-Type: multipart/form-data; boundary=x\r\n\r\n{begun}",
            running.address, browser.cookie
        );
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !String::from_utf8_lossy(&answer).contains("the role") {
            let mut some = [0; 4096];
            let read = tokio::time::timeout(PATIENCE, stream.read(&mut some)).await;
            match read.expect("it waits for the files").unwrap() {
                0 => break,
                count => answer.extend(&some[..count]),
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
        assert!(answer.contains("eploying needs the role"), "{answer}");
    }
}

/// Files keep their names, also in other scripts, and an empty one is there when the definition is deployed.
#[tokio::test(flavor = "multi_thread")]
async fn empty_files_and_names_in_other_scripts_survive() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    browser.sign_in("deployer", "/console/").await;
    let csrf = browser.csrf("/console/deploy/files").await;
    let file = |name: &str, content: &str| {
        format!(
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/yaml\r\n\r\n{content}\r\n"
        )
    };
    let begins = format!("--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n{csrf}\r\n");
    let body = [
        &begins,
        &file("日本.sw.yaml", ""),
        &file("空.yaml", ""),
        "--x--\r\n",
    ];
    let answer = browser.send_files(&body.concat()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let text = answer.text().await.unwrap();
    for part in ["日本.sw.yaml", "1 finding", "空.yaml", "is empty"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// As browsers write it.
fn multipart(csrf: &str) -> String {
    let part = |head: &str, content: &str| {
        format!("--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
    };
    let file = "name=\"file\"; filename=\"w.sw.yaml\"\r\nContent-Type: application/yaml";
    [
        part("name=\"csrf\"", csrf),
        part(file, "id: <w>\n"),
        "--x--\r\n".to_owned(),
    ]
    .concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_listed_for_those_who_may_deploy() {
    let running = Setup::new(guarded(None)).start().await;
    for (role, status) in [
        ("deployer", StatusCode::OK),
        ("viewer", StatusCode::FORBIDDEN),
    ] {
        let mut browser = Browser::new(&running);
        browser.sign_in(role, "/console/").await;
        let csrf = browser.csrf("/console/deploy/files").await;
        let answer = browser.send_files(&multipart(&csrf)).await;
        assert_eq!(answer.status(), status, "{role}");
        let text = answer.text().await.unwrap();
        assert_eq!(text.contains("w.sw.yaml"), role == "deployer", "{text}");
        let forged = browser.send_files(&multipart("a1")).await;
        assert_eq!(forged.status(), StatusCode::FORBIDDEN);
    }
}
