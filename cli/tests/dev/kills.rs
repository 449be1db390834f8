//! The process is killed at twenty random points while it runs an order, and started again. The outcome is the same, no
//! event is lost or consumed twice, no produced event has two ids, and calls are only repeated with the same key.
//!
//! `SWIRL_TEST_SEED` repeats the points of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use swirl_chaos::Random;
use swirl_servers::eventually;

use crate::dev::http::Http;
use crate::dev::order::{event, folder, waits_for_approval};
use crate::dev::process::{Dev, command};

const POINTS: usize = 20;
/// Actions that call a function.
const CALLS: [&str; 3] = ["charge", "echo", "flaky"];

/// Places orders. If the server is unavailable or dies before it answers, the same request is sent again.
struct Client {
    http: Http,
    /// The server's address. Its port changes after each start.
    url: Mutex<String>,
}

/// The observed outcome of an order.
#[derive(Debug, PartialEq)]
struct Outcome {
    output: Value,
    consumed: Vec<String>,
    produced: Vec<String>,
    attempts: BTreeMap<String, usize>,
}

impl Client {
    async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let what = format!("an answer to {path}");
        eventually(what, async || {
            let url = self.url.lock().unwrap().clone();
            let headers = [("content-type", "application/cloudevents+json")];
            let sent = self
                .http
                .send(method.clone(), &url, path, &headers, body.to_string());
            match sent.await {
                Ok(answer) if answer.status < 300 => return Some(answer.body),
                Ok(answer) => assert_eq!(answer.status, 503, "{answer:#?}"),
                Err(_) => {}
            }
            None
        })
        .await
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, &format!("/api/v1/{path}"), &Value::Null)
            .await
    }

    async fn publish(&self, kind: &str, order: &str) {
        let event = event(kind, order);
        let answer = self.ask(Method::POST, "/api/v1/events", &event).await;
        assert_eq!(answer["accepted"][0]["id"], event["id"], "{answer}");
    }

    async fn instances(&self, workflow: &str) -> Vec<Value> {
        let list = self
            .get(&format!("instances?workflow={workflow}&limit=1000"))
            .await;
        list["instances"].as_array().unwrap().clone()
    }

    /// The instance of this order, once it satisfies the condition.
    async fn until(&self, order: &str, what: &str, there: impl Fn(&Value) -> bool) -> Value {
        let what = format!("{order}, {what}");
        eventually(what, async || {
            let mut found = Vec::new();
            for line in self.instances("order").await {
                let instance = self.instance(&line).await;
                if instance["correlation"]["order"] == order {
                    found.push(instance);
                }
            }
            assert!(found.len() <= 1, "one event, one instance: {found:#?}");
            found.pop_if(|instance| there(instance))
        })
        .await
    }

    async fn instance(&self, line: &Value) -> Value {
        self.get(&format!("instances/{}", line["id"].as_str().unwrap()))
            .await
    }

    /// Places an order and approves it, immediately if `early`.
    async fn run(&self, order: &str, early: bool) -> Value {
        self.publish("order.placed", order).await;
        if !early {
            self.until(order, "waiting", waits_for_approval).await;
        }
        self.publish("order.approved", order).await;
        let ended = |instance: &Value| instance["status"] != "running";
        self.until(order, "ended", ended).await
    }

    async fn history(&self, instance: &Value) -> Vec<Value> {
        let id = instance["id"].as_str().unwrap();
        let history = self.get(&format!("instances/{id}/history")).await;
        history["entries"].as_array().unwrap().clone()
    }

    async fn outcome(&self, instance: &Value) -> Outcome {
        assert_eq!(instance["status"], "completed", "{instance:#}");
        let history = self.history(instance).await;
        let ids = |event: &str| {
            let entries = history.iter().filter(|entry| entry["event"] == event);
            entries
                .map(|entry| entry["id"].as_str().unwrap().to_owned())
                .collect()
        };
        let compensated = history
            .iter()
            .filter(|entry| entry["event"] == "compensated");
        assert_eq!(compensated.count(), 1, "{history:#?}");
        let mut attempts = BTreeMap::new();
        for entry in history
            .iter()
            .filter(|entry| entry["event"] == "action_started")
        {
            let action = entry["action"].as_str().unwrap();
            if CALLS.contains(&action) {
                *attempts.entry(action.to_owned()).or_default() += 1;
            }
        }
        Outcome {
            output: instance["output"].clone(),
            consumed: ids("event_consumed"),
            produced: ids("event_produced"),
            attempts,
        }
    }
}

/// The shop's calls for an order, with their distinct keys, by action.
async fn calls(shop: &Http, address: &str, order: &str) -> BTreeMap<String, Vec<String>> {
    let base = format!("http://{address}");
    let calls = shop
        .send(Method::GET, &base, "/calls", &[], "")
        .await
        .unwrap()
        .is(200);
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for call in calls.as_array().unwrap() {
        let query = call["query"].as_str().unwrap_or_default();
        let action = match call["path"].as_str().unwrap() {
            "/flaky" if query.split('&').any(|pair| pair == format!("key={order}")) => "flaky",
            "/echo" if call["body"]["order"] == order => "echo",
            path if path == format!("/orders/{order}/payment") => "charge",
            _ => continue,
        };
        let key = call["idempotencyKey"].as_str().unwrap().to_owned();
        keys.entry(action.to_owned()).or_default().push(key);
    }
    keys
}

/// Kills the process after a time, and sometimes also its successor while it recovers unfinished work.
async fn restarted(dev: Dev, folder: &Path, after: Duration, again: Option<Duration>) -> Dev {
    // Time has to pass: it determines the point at which the process is killed.
    tokio::time::sleep(after).await;
    dev.kill();
    if let Some(after) = again {
        let mut process = command(folder)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Time has to pass: the same reason as above.
        tokio::time::sleep(after).await;
        process.kill().unwrap();
        process.wait().unwrap();
    }
    Dev::start(folder).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_twenty_points() {
    let given = std::env::var("SWIRL_TEST_SEED").ok();
    let seed = given.map_or_else(drawn, |seed| seed.parse().unwrap());
    eprintln!("SWIRL_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let (folder, address) = folder().await;
    let mut dev = Dev::start(folder.path()).await;
    let client = Client {
        http: Http::new(),
        url: Mutex::new(dev.url.clone()),
    };
    let shop = Http::new();

    let begun = Instant::now();
    let undisturbed = client.run("o0", false).await;
    let whole = begun.elapsed();
    let expected = client.outcome(&undisturbed).await;
    assert_eq!(expected.output, json!({"order": "o0", "status": "failed"}));
    // The service answers 503 twice before it accepts the call.
    assert_eq!(expected.attempts["flaky"], 3);
    let mut produced: BTreeSet<String> = expected.produced.iter().cloned().collect();
    let mut repeated = 0;

    for point in 1..=POINTS {
        let order = format!("o{point}");
        let early = random.below(3) == 0;
        let after = whole.mul_f64(random.below(1000) as f64 / 1000.0);
        let again = (random.below(4) == 0).then(|| Duration::from_millis(random.below(300) as u64));
        let restart = async {
            let dev = restarted(dev, folder.path(), after, again).await;
            *client.url.lock().unwrap() = dev.url.clone();
            dev
        };
        let (instance, restarted) = tokio::join!(client.run(&order, early), restart);
        dev = restarted;

        let place =
            format!("seed {seed}, point {point}: after {after:?}, {again:?}, early: {early}");
        let outcome = client.outcome(&instance).await;
        assert_eq!(
            outcome.output,
            json!({"order": order, "status": "failed"}),
            "{place}"
        );
        let sent = [
            format!("order.placed-{order}"),
            format!("order.approved-{order}"),
        ];
        assert_eq!(outcome.consumed, sent, "{place}");
        assert_eq!(outcome.produced.len(), 2, "{place}: {outcome:#?}");
        produced.extend(outcome.produced.iter().cloned());

        let calls = calls(&shop, &address, &order).await;
        let mut keys = BTreeMap::new();
        for (action, keys_of) in &calls {
            let different: BTreeSet<&String> = keys_of.iter().collect();
            keys.insert(action.clone(), different.len());
            repeated += keys_of.len() - different.len();
        }
        // Each attempt in the history has its key, and no call had another one. Attempts that were answered with 503
        // are a single call whose outcome is unknown. If the process is killed before it records such an answer, the
        // same attempt gets the next one, and the history has fewer attempts.
        let mut attempts = outcome.attempts.clone();
        let tried = attempts.insert("flaky".to_owned(), 1);
        assert!(
            tried.is_some_and(|tried| (1..=3).contains(&tried)),
            "{place}: {tried:?}"
        );
        assert_eq!(keys, attempts, "{place}: {calls:#?}");
        assert!(calls["flaky"].len() >= 3, "{place}: {calls:#?}");
        assert_eq!((keys["echo"], keys["charge"]), (1, 1), "{place}");
    }

    // Each event was produced once with a single id, because each started one instance.
    assert_eq!(produced.len(), 2 * (POINTS + 1), "seed {seed}");
    let audited = audited(&client).await;
    assert_eq!(
        audited,
        produced.into_iter().collect::<Vec<_>>(),
        "seed {seed}"
    );
    assert_eq!(
        client.instances("order").await.len(),
        POINTS + 1,
        "seed {seed}"
    );
    eprintln!("an order took {whole:?}; {repeated} calls were repeated");
}

/// The ids of the events that started an audit, once all audits have ended.
async fn audited(client: &Client) -> Vec<String> {
    let audits = eventually("the end of all audits", async || {
        let audits = client.instances("audit").await;
        let ended = audits.iter().filter(|audit| audit["status"] == "completed");
        let is_all = ended.count() == audits.len() && audits.len() >= 2 * (POINTS + 1);
        is_all.then_some(audits)
    })
    .await;
    let mut ids = Vec::new();
    for audit in &audits {
        for entry in client.history(audit).await {
            if entry["event"] == "event_consumed" {
                ids.push(entry["id"].as_str().unwrap().to_owned());
            }
        }
    }
    ids.sort();
    ids
}

/// Different points in each run.
fn drawn() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::from(since.subsec_nanos()) ^ u64::from(std::process::id()) << 32
}
