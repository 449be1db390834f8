//! Events with the same key reach their instance in the order in which they were published: with one coordinator, and
//! with several that are stopped, frozen or killed meanwhile.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use swirl_chaos::{Cluster, Role};
use swirl_servers::eventually;

const ORDERS: usize = 4;
const EVENTS: usize = 60;

/// Waits for one event after another and collects their contents.
fn collector() -> Value {
    json!({
        "id": "collector", "version": "1.0.0", "specVersion": "0.8", "name": "c", "start": "begin",
        "events": [{"name": "step", "type": "step", "source": "/test", "correlation": [
            {"contextAttributeName": "order", "contextAttributeValue": "${ .order }"}]}],
        "states": [
            {"name": "begin", "type": "inject", "data": {"all": []}, "transition": "take"},
            {"name": "take", "type": "event", "transition": "next",
                "onEvents": [{"eventRefs": ["step"], "actions": [],
                    "eventDataFilter": {"data": "${ .n }", "toStateData": "${ .last }"}}],
                "stateDataFilter": {"output": "${ . + {all: (.all + [.last])} }"}},
            {"name": "next", "type": "switch",
                "dataConditions": [
                    {"condition": format!("${{ (.all | length) < {EVENTS} }}"), "transition": "take"}],
                "defaultCondition": {"end": true}},
        ],
    })
}

/// Started by an event. When started through the API, it waits for one.
fn starter() -> Value {
    json!({
        "id": "starter", "version": "1.0.0", "specVersion": "0.8", "name": "s", "start": "take",
        "events": [{"name": "go", "type": "go", "source": "/test"}],
        "states": [{"name": "take", "type": "event", "end": true,
            "onEvents": [{"eventRefs": ["go"], "actions": [],
                "eventDataFilter": {"data": "${ .n }", "toStateData": "${ .n }"}}]}],
    })
}

struct Rig {
    cluster: Cluster,
    http: reqwest::Client,
    nats: async_nats::Client,
    ids: Vec<String>,
}

impl Rig {
    async fn new(coordinators: usize) -> Rig {
        let binary = Path::new(env!("CARGO_BIN_EXE_swirl"));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let lease = Duration::from_secs(3);
        let cluster = Cluster::start(binary, 2, coordinators, lease, false).unwrap();
        let mut rig = Rig {
            nats: async_nats::connect(cluster.nats.url()).await.unwrap(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            cluster,
            ids: Vec::new(),
        };
        rig.post("definitions", "deploy", collector()).await;
        for order in 0..ORDERS {
            let input = json!({"order": order.to_string()});
            let path = "workflows/collector/instances";
            let started = rig.post(path, &format!("order-{order}"), input).await;
            rig.ids.push(started["id"].as_str().unwrap().to_owned());
        }
        rig
    }

    /// Repeats the request with its key while the store is unavailable, as on a machine that is too busy.
    async fn post(&self, path: &str, key: &str, body: Value) -> Value {
        let server = self.server();
        eventually("a server that is available", async || {
            let request = self.http.post(format!("{server}/api/v1/{path}"));
            let request = request
                .header("content-type", "application/json")
                .header("idempotency-key", key);
            let answer = request.body(body.to_string()).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            if status == 503 {
                return None;
            }
            assert!(status.is_success(), "{path}: {status} {text}");
            Some(serde_json::from_str(&text).unwrap())
        })
        .await
    }

    /// The last coordinator is never disturbed.
    fn server(&self) -> String {
        self.cluster.apis().pop().unwrap()
    }

    /// With an attribute that nothing correlates by, which has a different value in each event.
    async fn publish(&self, numbers: std::ops::Range<usize>) {
        for n in numbers {
            for order in 0..ORDERS {
                let event = json!({
                    "specversion": "1.0", "id": format!("{order}-{n}"), "source": "/test", "type": "step",
                    "order": order.to_string(), "sequence": n.to_string(), "data": {"n": n},
                });
                self.store(event.to_string()).await;
            }
        }
    }

    /// Retries until the stream has stored it, because a killed server loses messages that it has only read. If it is
    /// stored twice, it is still one event.
    async fn store(&self, payload: String) {
        let stream = async_nats::jetstream::new(self.nats.clone());
        eventually("an acknowledgement", async || {
            let sent = stream.publish("swirl.events.step", payload.clone().into());
            sent.await.ok()?.await.ok()
        })
        .await;
    }

    /// Nothing while the store is unavailable.
    async fn instance(&self, id: &str) -> Option<Value> {
        let server = self.server();
        let answer = self.http.get(format!("{server}/api/v1/instances/{id}"));
        let answer = answer.send().await.unwrap().error_for_status().ok()?;
        Some(serde_json::from_str(&answer.text().await.unwrap()).unwrap())
    }

    async fn all_of(&self, workflow: &str) -> Vec<Value> {
        let server = self.server();
        let all = format!("{server}/api/v1/instances?workflow={workflow}&limit=1000");
        let answer = self.http.get(all).send().await.unwrap();
        let page: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        page["instances"].as_array().unwrap().clone()
    }

    /// Waits until this many instances of the starter have completed.
    async fn started(&self, count: usize) {
        eventually("so many instances", async || {
            let all = self.all_of("starter").await;
            let is_done = |one: &&Value| one["status"] == "completed";
            (all.iter().filter(is_done).count() >= count).then_some(())
        })
        .await;
    }

    /// Waits until all instances have received this many events.
    async fn taken(&self, count: usize) {
        for id in &self.ids {
            eventually("so many events", async || {
                let view = self.instance(id).await?;
                let taken = view["scopes"][0]["data"]["all"].as_array();
                let taken = taken.map_or(0, Vec::len);
                (taken >= count || view["status"] != "running").then_some(())
            })
            .await;
        }
    }

    async fn all_in_order(&self) {
        let expected: Vec<usize> = (0..EVENTS).collect();
        for id in &self.ids {
            let ended = eventually("its end", async || {
                let view = self.instance(id).await?;
                (view["status"] != "running").then_some(view)
            })
            .await;
            assert_eq!(ended["output"]["all"], json!(expected), "{ended:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_coordinator_keeps_the_order_of_each_key() {
    let rig = Rig::new(1).await;
    rig.publish(0..EVENTS).await;
    rig.all_in_order().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_coordinators_keep_the_order_of_each_key() {
    let rig = Rig::new(3).await;
    rig.publish(0..EVENTS).await;
    rig.all_in_order().await;
}

/// The coordinator that reads the events is killed with some under way, and then the next one. Later the first one is
/// restarted.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_survives_killed_coordinators() {
    let mut rig = Rig::new(3).await;
    rig.publish(0..20).await;
    rig.taken(3).await;
    let all = rig.cluster.of(Role::Coordinator);
    for (round, at) in all[..2].iter().enumerate() {
        rig.cluster.processes[*at].kill().unwrap();
        rig.publish(20 * (round + 1)..20 * (round + 1) + 10).await;
        rig.cluster.processes[*at].start().unwrap();
        rig.publish(20 * (round + 1) + 10..20 * (round + 2)).await;
    }
    rig.all_in_order().await;
}

/// A coordinator that is frozen for longer than its timeout continues with the events that it has.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_survives_frozen_coordinators() {
    let rig = Rig::new(3).await;
    rig.publish(0..20).await;
    rig.taken(3).await;
    let all = rig.cluster.of(Role::Coordinator);
    for at in &all[..2] {
        rig.cluster.processes[*at].signal(Signal::STOP).unwrap();
    }
    rig.publish(20..40).await;
    rig.taken(40).await;
    for at in &all[..2] {
        rig.cluster.processes[*at].signal(Signal::CONT).unwrap();
    }
    rig.publish(40..EVENTS).await;
    rig.all_in_order().await;
}

/// Coordinators are replaced one after another, as in a rolling deployment.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_survives_replaced_coordinators() {
    let mut rig = Rig::new(3).await;
    let all = rig.cluster.of(Role::Coordinator);
    for (round, at) in all[..2].iter().enumerate() {
        rig.publish(20 * round..20 * round + 20).await;
        let limit = Duration::from_secs(60);
        rig.cluster.processes[*at].stop(limit).unwrap();
        rig.cluster.processes[*at].start().unwrap();
    }
    rig.publish(40..EVENTS).await;
    rig.all_in_order().await;
}

/// While Redis is unavailable no event is accepted, and their order is kept when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_survives_outages_of_the_store_and_the_stream() {
    let mut rig = Rig::new(2).await;
    rig.publish(0..10).await;
    rig.taken(3).await;
    rig.cluster.redis.kill().unwrap();
    rig.publish(10..30).await;
    rig.cluster.redis.restart().unwrap();
    rig.publish(30..40).await;
    rig.cluster.nats.kill().unwrap();
    rig.cluster.nats.restart().unwrap();
    eventually("the stream", async || {
        let context = async_nats::jetstream::new(rig.nats.clone());
        context.get_stream("SWIRL_default_EVENTS").await.ok()
    })
    .await;
    rig.publish(40..EVENTS).await;
    rig.all_in_order().await;
}

/// Events of one source start instances concurrently. Those that an instance waits for are processed in order, so it
/// gets the first one.
#[tokio::test(flavor = "multi_thread")]
async fn starting_events_do_not_affect_the_order_of_others() {
    let rig = Rig::new(2).await;
    rig.post("definitions", "deploy", starter()).await;
    let go = |n: usize| json!({"specversion": "1.0", "id": format!("go-{n}"), "source": "/test", "type": "go", "data": {"n": n}});
    let (mut next, mut taken) = (0, 0);
    for _ in 0..3 {
        for n in next..next + EVENTS {
            rig.store(go(n).to_string()).await;
        }
        next += EVENTS;
        rig.started(next + taken).await;
        let mut waiting = Vec::new();
        for order in 0..ORDERS {
            let key = format!("starter-{next}-{order}");
            let started = rig.post("workflows/starter/instances", &key, json!({}));
            let started = started.await;
            waiting.push(started["id"].as_str().unwrap().to_owned());
        }
        for id in &waiting {
            eventually("it waits", async || {
                let view = rig.instance(id).await?;
                view["scopes"][0]["waitsFor"]
                    .as_array()
                    .filter(|waits| !waits.is_empty())?;
                Some(())
            })
            .await;
        }
        // Time has to pass: the index is updated after the record, and nothing shows when.
        tokio::time::sleep(Duration::from_millis(300)).await;
        taken += ORDERS;
        let first = next;
        for n in next..next + EVENTS {
            rig.store(go(n).to_string()).await;
        }
        next += EVENTS;
        rig.started(next + taken).await;
        for id in &waiting {
            let view = rig.instance(id).await.unwrap();
            assert_eq!(view["output"]["n"], json!(first), "{view:#}");
        }
    }
    let mut seen: Vec<usize> = Vec::new();
    for one in rig.all_of("starter").await {
        let view = rig.instance(one["id"].as_str().unwrap()).await.unwrap();
        seen.push(view["output"]["n"].as_u64().unwrap() as usize);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (0..next).collect::<Vec<_>>());
}
