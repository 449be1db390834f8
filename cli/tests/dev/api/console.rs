//! The console over HTTP, without a browser: each page shows the current state, and each form works.

mod drafts;
mod schedules;

use std::cell::RefCell;

use reqwest::Method;
use serde_json::json;

use super::{having, started, waiting};
use crate::dev::http::Answer;
use crate::dev::process::Dev;

/// A browser that keeps its cookie and the token of its forms.
struct Browser<'a> {
    dev: &'a Dev,
    cookie: RefCell<String>,
    csrf: RefCell<String>,
}

impl<'a> Browser<'a> {
    async fn new(dev: &'a Dev) -> Browser<'a> {
        let browser = Browser {
            dev,
            cookie: RefCell::default(),
            csrf: RefCell::default(),
        };
        let page = dev.get("/console/events").await;
        let cookie = page.headers["set-cookie"].to_str().unwrap();
        *browser.cookie.borrow_mut() = cookie.split(';').next().unwrap().to_owned();
        let (_, rest) = page.text.split_once("name=\"csrf\" value=\"").unwrap();
        *browser.csrf.borrow_mut() = rest.split_once('"').unwrap().0.to_owned();
        browser
    }

    async fn page(&self, path: &str) -> String {
        let cookie = self.cookie.borrow().clone();
        let headers = [("cookie", cookie.as_str())];
        let path = format!("/console{path}");
        let answer = self.dev.send(Method::GET, &path, &headers, "").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.text
    }

    /// Submits a form, and returns the page that follows.
    async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let cookie = self.cookie.borrow().clone();
        let headers = [
            ("cookie", cookie.as_str()),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.append_pair("csrf", &self.csrf.borrow());
        let body = body.extend_pairs(fields).finish();
        let path = format!("/console{path}");
        self.dev.send(Method::POST, &path, &headers, body).await
    }
}

#[track_caller]
fn has(text: &str, all: &[&str]) {
    for words in all {
        assert!(text.contains(words), "{words} is missing in {text}");
    }
}

const DOCUMENT: &str = "id: written\nversion: '1'\nspecVersion: '0.8'\ndataInputSchema: {schema: {type: object, \
properties: {name: {type: string, title: Your name}, age: {type: integer}}, required: [name]}, failOnValidationErrors: true}\n\
states:\n  - {name: Only, type: inject, data: {a: 1}, end: true}\n";

pub async fn check(dev: &Dev) {
    let browser = Browser::new(dev).await;
    instances(dev, &browser).await;
    failures(dev, &browser).await;
    edited(dev, &browser).await;
    definitions(dev, &browser).await;
    events(dev, &browser).await;
    schedules::check(dev, &browser).await;
    refusals(dev).await;
    batches(dev, &browser).await;
    ticked(dev, &browser).await;
    views(&browser).await;
    audit(dev, &browser).await;
    has(
        &browser.page("/system").await,
        &[
            "This server is ready",
            "everything (swirl dev)",
            "All 2 checks passed.",
            "None is overdue.",
        ],
    );
    has(
        &browser.page("/").await,
        &["Is work waiting?", "everything (swirl dev)", "Process id"],
    );
}

async fn instances(dev: &Dev, browser: &Browser<'_>) {
    let id = waiting(dev, "<b>console</b>").await;
    let listed = browser
        .page("/instances?workflow=waiter&status=waiting")
        .await;
    has(&listed, &[&id, "◷", "waiting", "Wait"]);
    let page = browser.page(&format!("/instances/{id}")).await;
    has(
        &page,
        &[
            "It waits for the event “Go” in the state “Wait”.",
            "Event <b>Go</b>",
            "<code>test.go</code>",
            "&lt;b&gt;console&lt;/b&gt;",
            "class=\"chart\"",
            "card here",
            "class=\"timeline\"",
            "entered Wait",
            "Suspend…",
        ],
    );
    assert!(!page.contains("<b>console</b>"), "data is escaped");
    assert!(
        !page.contains("Try again…"),
        "only what is possible is offered"
    );
    let path = format!("/instances/{id}");
    let suspended = browser
        .send(&format!("{path}/suspend"), &[("reason", "lunch")])
        .await;
    assert_eq!(suspended.status, 200);
    has(
        &suspended.text,
        &["The instance is suspended.", "Resume…", "because: lunch"],
    );
    // The instance has changed since the page was loaded.
    let again = browser.send(&format!("{path}/suspend"), &[]).await;
    assert_eq!(again.status, 409);
    has(
        &again.text,
        &["That is not possible now", "suspended already"],
    );
    browser.send(&format!("{path}/resume"), &[]).await;
    let cancelled = browser.send(&format!("{path}/cancel"), &[]).await;
    has(&cancelled.text, &["is being cancelled"]);
    having(dev, &id, "cancelled").await;
    let page = browser.page(&format!("{path}?from=1")).await;
    has(&page, &["Lines 2 to", "Earlier"]);
    let none = dev.get("/console/instances/none").await;
    assert_eq!(none.status, 404);
    has(&none.text, &["There is nothing here"]);
}

async fn failures(dev: &Dev, browser: &Browser<'_>) {
    let input = json!({"key": "console", "failures": 100});
    let id = started(dev, "faulty", input).await;
    having(dev, &id, "faulted").await;
    let overview = browser.page("/").await;
    has(
        &overview,
        &[
            "What has failed",
            "faulty",
            "Work",
            "faulted",
            "again…",
            "status = faulted and workflow = ",
        ],
    );
    let path = format!("/instances/{id}");
    let page = browser.page(&path).await;
    has(
        &page,
        &[
            "Try again…",
            "Skip the step…",
            "failed here",
            "It failed in the state “Work”",
        ],
    );
    let wrong = browser
        .send(&format!("{path}/skip"), &[("result", "{")])
        .await;
    assert_eq!(wrong.status, 400);
    has(&wrong.text, &["not valid JSON"]);
    let skipped = browser
        .send(&format!("{path}/skip"), &[("result", "{\"by\": \"hand\"}")])
        .await;
    assert_eq!(skipped.status, 200);
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["result"], json!({"by": "hand"}));
}

/// One form changes data, version and state.
async fn edited(dev: &Dev, browser: &Browser<'_>) {
    let input = json!({"key": "console-edit", "failures": 100});
    let id = started(dev, "faulty", input).await;
    let failed = having(dev, &id, "faulted").await;
    let data = &failed["scopes"][0]["data"];
    let path = format!("/instances/{id}");
    let page = browser.page(&path).await;
    has(
        &page,
        &[
            "Edit and continue…",
            "console-edit",
            "<option>Prepare</option>",
        ],
    );
    let edit = async |fields: &[(&str, &str)]| {
        let answer = browser.send(&format!("{path}/edit"), fields).await;
        (answer.status, answer.text)
    };
    let (status, text) = edit(&[("data", "{\"draft\":")]).await;
    assert_eq!(status, 400);
    has(&text, &["not valid JSON", "{&#34;draft&#34;:</textarea>"]);
    let (status, _) = edit(&[("version", "9")]).await;
    assert_eq!(status, 422, "there is no such version");
    let unchanged = format!("{data:#}");
    let (status, text) = edit(&[("data", &unchanged), ("reason", "once more")]).await;
    assert_eq!(status, 200, "{text}");
    let history = format!("/api/v1/instances/{id}/history");
    let again = |history: &serde_json::Value| {
        let entries = history["entries"].as_array().unwrap();
        entries
            .iter()
            .filter(|entry| entry["event"] == "ended")
            .count()
            == 2
    };
    let found = dev.until(&history, "failed again", again).await;
    let entries = found["entries"].as_array().unwrap();
    let operated = entries.iter().find(|entry| entry["event"] == "operated");
    let operated = operated.unwrap();
    assert_eq!(operated["reason"], "once more");
    assert!(operated.get("data").is_none(), "nothing was changed");
    let changed = json!({"key": "console-edited", "failures": 0}).to_string();
    let fields = [("data", changed.as_str()), ("state", "Prepare")];
    let asked = [&fields[..], &[("do", "show")]].concat();
    let (status, text) = edit(&asked).await;
    assert_eq!(status, 200, "{text}");
    has(&text, &["Nothing has been done yet.", "<code>/key</code>"]);
    having(dev, &id, "faulted").await;
    let (status, text) = edit(&fields).await;
    assert_eq!(status, 200, "{text}");
    has(&text, &["at the state that you chose"]);
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["key"], "console-edited", "{done:#}");
}

async fn definitions(dev: &Dev, browser: &Browser<'_>) {
    has(
        &browser.page("/definitions").await,
        &["waiter", "current", "Start"],
    );
    has(
        &browser.page("/definitions/waiter/1.0.0").await,
        &["class=\"chart\"", "onEvents", "Start an instance"],
    );
    let wrong = DOCUMENT.replace("end: true", "edn: true");
    let reason = ("reason", "ordered by Ann");
    let fields = [("document", wrong.as_str()), reason];
    let refused = browser.send("/definitions", &fields).await;
    assert_eq!(refused.status, 422);
    has(
        &refused.text,
        &[
            "line 6",
            "unknown-property",
            "edn",
            "id: written",
            "value=\"ordered by Ann\"",
        ],
    );
    drafts::check(dev, browser).await;
    let document = DOCUMENT.replace('\n', "\r\n");
    let fields = [("document", document.as_str()), reason];
    let deployed = browser.send("/definitions", &fields).await;
    assert_eq!(deployed.status, 200, "{}", deployed.text);
    let path = "/api/v1/audit?action=deploy&subject=written";
    let log = dev.get(path).await.is(200);
    assert_eq!(log["entries"][0]["reason"], "ordered by Ann", "{log:#}");
    has(
        &deployed.text,
        &["The definition is deployed.", "id: written"],
    );
    let form = browser.page("/start/written/1").await;
    has(&form, &["Your name", "p-age", "(required)"]);
    let (_, key) = form.split_once("name=\"key\" value=\"").unwrap();
    let key = key.split_once('"').unwrap().0;
    let wrong = [("key", key), ("p-name", "Ada"), ("p-age", "old")];
    let refused = browser.send("/start/written/1", &wrong).await;
    assert_eq!(refused.status, 400);
    has(&refused.text, &["“age” must be a number", "value=\"Ada\""]);
    let good = [("key", key), ("p-name", "Ada"), ("p-age", "36")];
    let first = browser.send("/start/written/1", &good).await;
    has(&first.text, &["The instance is started."]);
    let again = browser.send("/start/written/1", &good).await;
    assert_eq!(again.status, 200, "the same form starts one instance");
    let listed = dev.get("/api/v1/instances?workflow=written").await.is(200);
    let all = listed["instances"].as_array().unwrap();
    assert_eq!(all.len(), 1, "{listed:#}");
    let id = all[0]["id"].as_str().unwrap();
    let done = having(dev, id, "completed").await;
    assert_eq!(done["input"], json!({"name": "Ada", "age": 36}));
    let reason = [("reason", "written by mistake")];
    let deleted = browser.send("/definitions/written/1/delete", &reason).await;
    has(&deleted.text, &["The version is deleted"]);
    dev.get("/api/v1/definitions/written/1")
        .await
        .refused(404, "unknown-workflow");
}

/// What isn't a page of the console, or has a wrong address, is refused with a page.
async fn refusals(dev: &Dev) {
    for (method, path, status, words) in [
        (
            Method::GET,
            "/?trend=a&trend=b",
            400,
            "has &#39;trend&#39; twice",
        ),
        (
            Method::GET,
            "/batches?after=1&after=2",
            400,
            "has &#39;after&#39; twice",
        ),
        (Method::DELETE, "/instances", 405, "Method Not Allowed"),
        (Method::GET, "/nowhere", 404, "no such page"),
    ] {
        let path = format!("/console{path}");
        let answer = dev.send(method, &path, &[], "").await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        has(&answer.text, &["<h1>", words]);
    }
}

/// A search, a preview of a batch, the batch, and its end.
async fn batches(dev: &Dev, browser: &Browser<'_>) {
    let id = waiting(dev, "console-batch").await;
    let query = format!("id = {id} and status = running");
    let page = browser.page("/instances").await;
    assert!(
        !page.contains("Act on all that match"),
        "nothing is searched for"
    );
    let search = query.replace(' ', "%20").replace('=', "%3D");
    let page = browser.page(&format!("/instances?query={search}")).await;
    has(
        &page,
        &["Act on all that match", &format!("value=\"{query}\"")],
    );
    let fields = [
        ("operation", "cancel"),
        ("query", query.as_str()),
        ("reason", "a <b>batch</b>"),
        ("rate", "10"),
    ];
    let cookie = browser.cookie.borrow().clone();
    let form = ("content-type", "application/x-www-form-urlencoded");
    let forged = "operation=cancel&do=create&query=status%3Drunning";
    let headers = [("cookie", cookie.as_str()), form];
    let forged = dev.post("/console/batches", &headers, forged).await;
    assert_eq!(forged.status, 403, "no page of the console sent it");
    let trial = browser
        .send("/batches", &[&fields[..], &[("do", "show")]].concat())
        .await;
    assert_eq!(trial.status, 200, "{}", trial.text);
    has(
        &trial.text,
        &["Cancel: 1 instance", "Nothing has been done yet", &id],
    );
    having(dev, &id, "running").await;
    let (_, key) = trial.text.split_once("name=\"key\" value=\"").unwrap();
    let key = key.split_once('"').unwrap().0;
    let create = [&fields[..], &[("key", key), ("do", "create")]].concat();
    // The batch's page follows.
    let shown = async || {
        let created = browser.send("/batches", &create).await;
        assert_eq!(created.status, 200, "{}", created.text);
        let (_, id) = created.text.split_once("Id <code title=\"").unwrap();
        id.split_once('"').unwrap().0.to_owned()
    };
    let batch = shown().await;
    assert_eq!(shown().await, batch, "the form was sent twice");
    having(dev, &id, "cancelled").await;
    let path = &format!("/batches/{batch}");
    let api = path.replacen("/batches", "/api/v1/batches", 1);
    let ended = |batch: &serde_json::Value| batch["status"] == "completed";
    dev.until(&api, "the end of the batch", ended).await;
    let page = browser.page(path).await;
    has(
        &page,
        &[
            "1 of 1 instances processed",
            "Acted on: 1. Refused: 0. Failed: 0.",
            "1 cancelled",
            "a &#60;b&#62;batch&#60;/b&#62;",
            &id,
        ],
    );
    let stopped = browser.send(&format!("{path}/stop"), &[]).await;
    assert_eq!(stopped.status, 409, "it has ended");
    let unknown = browser.send(&format!("{path}/repair"), &[]).await;
    assert_eq!(unknown.status, 404);
    has(
        &browser.page("/batches").await,
        &["Cancel", "1 of 1", "1 cancelled", "all succeeded"],
    );
}

/// Instances that are ticked in the list.
async fn ticked(dev: &Dev, browser: &Browser<'_>) {
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(waiting(dev, &format!("console-ticked-{n}")).await);
    }
    let page = browser.page("/instances?workflow=waiter").await;
    let boxes = ids
        .iter()
        .map(|id| format!("name=\"instance\" value=\"{id}\""));
    for tick in boxes {
        has(&page, &[&tick, "Act on the ticked ones…"]);
    }
    let fields = [("ticked", "yes"), ("operation", "suspend"), ("do", "show")];
    let none = browser.send("/batches", &fields).await;
    assert_eq!(none.status, 400);
    has(&none.text, &["no instance is ticked"]);
    let two = [("instance", ids[0].as_str()), ("instance", ids[2].as_str())];
    let trial = browser
        .send("/batches", &[&fields[..], &two].concat())
        .await;
    assert_eq!(trial.status, 200, "{}", trial.text);
    has(&trial.text, &["Suspend: 2 instances", &ids[0], &ids[2]]);
    assert!(!trial.text.contains(&ids[1]), "it isn't ticked");
    let query = format!("id in (\"{}\", \"{}\")", ids[0], ids[2]);
    let create = [
        ("operation", "suspend"),
        ("query", &query),
        ("do", "create"),
        ("key", "console-ticked"),
    ];
    let created = browser.send("/batches", &create).await;
    assert_eq!(created.status, 200, "{}", created.text);
    for (id, suspended) in [(&ids[0], true), (&ids[2], true), (&ids[1], false)] {
        let as_wanted = |instance: &serde_json::Value| instance["suspended"] == suspended;
        dev.until(&format!("/api/v1/instances/{id}"), "its turn", as_wanted)
            .await;
    }
}

async fn views(browser: &Browser<'_>) {
    let save = async |name: &str, query: &str| {
        let fields = [("name", name), ("workflow", "waiter"), ("query", query)];
        browser.send("/views", &fields).await
    };
    let page = browser.page("/instances").await;
    assert!(!page.contains("Save this view…"), "nothing is searched for");
    let saved = save("Late <orders>", "started < -1h").await;
    assert_eq!(saved.status, 200, "{}", saved.text);
    has(
        &saved.text,
        &[
            "The view is saved",
            "Late &#60;orders&#62;</a>",
            "aria-current=\"page\">Late",
            "value=\"started &#60; -1h\"",
            "Save this view…",
        ],
    );
    let page = browser.page("/instances").await;
    has(
        &page,
        &["href=\"/console/instances?workflow=waiter&#38;query=started+%3C+-1h\">Late"],
    );
    let wrong = save("Wrong", "started <").await;
    assert_eq!(wrong.status, 400);
    let removed = browser
        .send("/views/remove", &[("name", "Late <orders>")])
        .await;
    has(&removed.text, &["The view is removed."]);
    assert!(!removed.text.contains("Late"), "{}", removed.text);
    let again = browser
        .send("/views/remove", &[("name", "Late <orders>")])
        .await;
    assert_eq!(again.status, 404);
}

async fn audit(dev: &Dev, browser: &Browser<'_>) {
    let id = waiting(dev, "console-audit").await;
    let fields = [("reason", "no <longer> wanted")];
    browser
        .send(&format!("/instances/{id}/cancel"), &fields)
        .await;
    let page = browser.page(&format!("/audit?subject={id}")).await;
    has(
        &page,
        &[
            "cancelled it",
            "workflow: waiter",
            "not signed in",
            "no &#60;longer&#62; wanted",
            &format!("href=\"/console/instances/{id}\""),
        ],
    );
    let page = browser.page("/audit?action=schedule-pause").await;
    has(
        &page,
        &["schedule of hourly", "paused a schedule", "Show all"],
    );
    let page = browser.page("/audit?action=delete&subject=written").await;
    has(
        &page,
        &["written 1", "deleted a version", "written by mistake"],
    );
    for action in swirl_api::audit::Action::WORDS {
        has(&page, &[&format!("<option value=\"{action}\"")]);
    }
    let page = browser.page("/audit?by=nobody").await;
    has(&page, &["No action matches."]);
    let page = browser.page("/audit").await;
    has(
        &page,
        &[
            "created a batch",
            "deployed a version",
            "href=\"/console/audit\" aria-current",
        ],
    );
}

async fn events(dev: &Dev, browser: &Browser<'_>) {
    let id = waiting(dev, "console-event").await;
    let event = json!({"specversion": "1.0", "id": "c1", "source": "/test", "type": "test.go", "order": "other"});
    let text = event.to_string();
    let explained = browser
        .send("/events", &[("event", &text), ("do", "explain")])
        .await;
    assert_eq!(explained.status, 200);
    has(
        &explained.text,
        &[
            "Nothing would receive it",
            "console-event",
            "&#39;order&#39; is &#39;other&#39;",
        ],
    );
    let text = text.replace("other", "console-event");
    let sent = browser
        .send("/events", &[("event", &text), ("do", "send")])
        .await;
    has(&sent.text, &["The event was sent", &id, "Recent events"]);
    having(dev, &id, "completed").await;
    let wrong = browser
        .send("/events", &[("event", "{}"), ("do", "send")])
        .await;
    assert_eq!(wrong.status, 400);
    has(&wrong.text, &["role=\"alert\"", "specversion"]);
    let none = dev.get("/console/dead-letters/7").await;
    assert_eq!(none.status, 404);
}
