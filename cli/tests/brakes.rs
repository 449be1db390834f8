//! Definitions that start instances endlessly are slowed down, and others aren't affected.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swirl_chaos::Cluster;
use swirl_servers::eventually;

struct Rig {
    cluster: Cluster,
    http: reqwest::Client,
    api: String,
}

impl Rig {
    fn new(flags: &[&str]) -> Rig {
        let binary = Path::new(env!("CARGO_BIN_EXE_swirl"));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        let lease = Duration::from_secs(3);
        let cluster = Cluster::start_with(binary, 1, 1, lease, false, &flags).unwrap();
        Rig {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            api: format!("{}/api/v1", cluster.apis()[0]),
            cluster,
        }
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Value {
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}/{path}", self.api));
        let request = request.header("content-type", "application/json");
        self.answer(request.body(body.to_string())).await
    }

    async fn deploy(&self, definition: Value) {
        self.post("definitions", &definition).await;
    }

    /// The instances of a workflow, newest first, at most 500.
    async fn instances(&self, workflow: &str) -> Vec<Value> {
        let address = format!("{}/instances?workflow={workflow}&limit=500", self.api);
        let list = self.answer(self.http.get(address)).await;
        list["instances"].as_array().unwrap().clone()
    }

    /// Checks that the worker still carries out another workflow.
    async fn another_workflow_completes(&self) {
        self.deploy(json!({
            "id": "honest", "version": "1", "specVersion": "0.8", "states": [
                {"name": "A", "type": "sleep", "duration": "PT0.01S", "end": true}]}))
            .await;
        let path = "workflows/honest/instances?wait=PT60S";
        let ended = self.post(path, &json!({})).await;
        assert_eq!(ended["status"], "completed");
    }
}

/// Each instance starts two more and waits for neither.
fn doubling() -> Value {
    let twice = json!({"subFlowRef": {"workflowId": "w", "invoke": "async", "onParentComplete": "continue"}});
    json!({
        "id": "w", "version": "1", "specVersion": "0.8",
        "states": [{"name": "A", "type": "operation", "actions": [twice, twice], "end": true}],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn doubling_sub_workflows_end_at_the_maximum_chain_length() {
    let rig = Rig::new(&["--limits-chain", "6"]);
    rig.deploy(doubling()).await;
    rig.post("workflows/w/instances", &json!({})).await;
    let all = eventually("the end of all", async || {
        let all = rig.instances("w").await;
        let over = all.iter().all(|instance| instance["status"] != "running");
        (all.len() >= 127 && over).then_some(all)
    })
    .await;
    rig.another_workflow_completes().await;
    // 1 + 2 + 4 + ... + 64: the last generation starts no more instances.
    assert_eq!(rig.instances("w").await.len(), 127);
    assert_eq!(all.len(), 127);
}

#[tokio::test(flavor = "multi_thread")]
async fn doubling_sub_workflows_start_at_the_allowed_rate() {
    doubles_slowly("--limits-chained-starts", 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn doubling_sub_workflows_start_slowly_from_the_fifth_generation_on() {
    doubles_slowly("--limits-runaway-starts", 15.0).await;
}

/// Two starts per second in each process, after this many free ones.
async fn doubles_slowly(limit: &str, free: f64) {
    let rig = Rig::new(&[limit, "2"]);
    let begun = Instant::now();
    rig.deploy(doubling()).await;
    rig.post("workflows/w/instances", &json!({})).await;
    eventually("the burst", async || {
        (rig.instances("w").await.len() >= 20).then_some(())
    })
    .await;
    rig.another_workflow_completes().await;
    // Time has to pass: without a limit there would be thousands by then.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let started = rig.instances("w").await.len();
    // Two processes start instances, and each may start ten seconds' worth at once.
    let most = free + 2.0 * (20.0 + 2.0 * begun.elapsed().as_secs_f64());
    assert!(started as f64 <= most, "{started} of {most}");
}

/// A busy machine may be slow to answer.
const REDIS_ANSWER_MAX: Duration = Duration::from_secs(30);

/// The number of effects that wait in Redis, and of keys in the database.
async fn stored(redis: &mut redis::aio::MultiplexedConnection) -> (u64, u64) {
    let mut count = redis::pipe();
    for shard in 0..swirl_redis::Options::default().shards {
        count
            .cmd("ZCARD")
            .arg(format!("{{default:{shard}}}:outbox"));
    }
    let counts: Vec<u64> = count.query_async(redis).await.unwrap();
    let keys = redis::cmd("DBSIZE").query_async(redis).await.unwrap();
    (counts.iter().sum(), keys)
}

/// Each process keeps starting some of them, and each of those starts two more, so Redis would grow without end.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_starts_and_redis_are_bounded() {
    let rig = Rig::new(&[
        "--limits-runaway-starts=5",
        "--limits-pending-starts=40",
        "--redis-keep-ended=3s",
    ]);
    let client = redis::Client::open(rig.cluster.redis_url()).unwrap();
    let patient = redis::AsyncConnectionConfig::new().set_response_timeout(Some(REDIS_ANSWER_MAX));
    let mut redis = client
        .get_multiplexed_async_connection_with_config(&patient)
        .await
        .unwrap();
    rig.deploy(doubling()).await;
    rig.post("workflows/w/instances", &json!({})).await;
    let refused = async || {
        let mut sum = 0.0;
        for listener in rig.cluster.listeners() {
            let answer = rig.http.get(format!("{listener}/metrics")).send().await;
            let text = answer.unwrap().text().await.unwrap();
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with("swirl_starts_refused_total"));
            let value = line.unwrap().rsplit(' ').next().unwrap();
            sum += value.parse::<f64>().unwrap();
        }
        sum
    };
    eventually("the limit", async || (refused().await > 0.0).then_some(())).await;
    // Time has to pass: without a limit, ten more would wait after each second, with two keys each.
    let mut seen = Vec::new();
    for _ in 0..3 {
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            seen.push(stored(&mut redis).await);
        }
        rig.another_workflow_completes().await;
    }
    // Some starts are under way at that moment.
    let waiting_max = seen.iter().map(|(waiting, _)| *waiting).max().unwrap();
    assert!((20..=80).contains(&waiting_max), "{seen:?}");
    let keys_max = |part: &[(u64, u64)]| part.iter().map(|(_, keys)| *keys).max().unwrap();
    let (early, late) = seen.split_at(seen.len() / 3);
    assert!(keys_max(late) <= keys_max(early) + 100, "{seen:?}");
}

/// Each instance produces the event that starts the next one, or continues as the next one. None waits for anything.
#[tokio::test(flavor = "multi_thread")]
async fn self_starting_workflows_end_at_the_maximum_chain_length() {
    let rig = Rig::new(&["--limits-chain", "6"]);
    rig.deploy(json!({
        "id": "echo", "version": "1", "specVersion": "0.8", "start": "A",
        "events": [{"name": "again", "type": "test.again", "source": "/test"},
            {"name": "said", "type": "test.again", "source": "/test", "kind": "produced"}],
        "states": [{"name": "A", "type": "event", "onEvents": [{"eventRefs": ["again"], "actions": []}],
            "end": {"produceEvents": [{"eventRef": "said"}]}}],
    }))
    .await;
    rig.deploy(json!({
        "id": "circle", "version": "1", "specVersion": "0.8",
        "states": [{"name": "A", "type": "inject", "data": {}, "end": {"continueAs": "circle"}}],
    }))
    .await;
    rig.post("workflows/circle/instances", &json!({})).await;
    let event =
        json!({"specversion": "1.0", "id": "first", "source": "/test", "type": "test.again"});
    let request = rig.http.post(format!("{}/events", rig.api));
    let request = request.header("content-type", "application/cloudevents+json");
    rig.answer(request.body(event.to_string())).await;
    for workflow in ["echo", "circle"] {
        // The first instance, and those that follow within six hops.
        eventually("the end of the chain", async || {
            let all = rig.instances(workflow).await;
            let over = all.iter().all(|instance| instance["status"] != "running");
            (all.len() >= 7 && over).then_some(())
        })
        .await;
        rig.another_workflow_completes().await;
        assert_eq!(rig.instances(workflow).await.len(), 7, "{workflow}");
    }
    let last = &rig.instances("circle").await[0];
    assert_eq!(last["error"]["name"], "LimitExceeded", "{last:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_has_a_minimum_interval() {
    let rig = Rig::new(&["--limits-schedule-interval", "2s"]);
    let begun = Instant::now();
    rig.deploy(json!({
        "id": "tick", "version": "1", "specVersion": "0.8",
        "start": {"stateName": "A", "schedule": "R/PT0.001S"},
        "states": [{"name": "A", "type": "inject", "data": {}, "end": true}],
    }))
    .await;
    eventually("the third", async || {
        (rig.instances("tick").await.len() >= 3).then_some(())
    })
    .await;
    // The first one comes immediately, the others two seconds apart.
    let (started, passed) = (rig.instances("tick").await.len(), begun.elapsed());
    assert!(passed >= Duration::from_secs(4), "{started} in {passed:?}");
    let most = 2.0 + passed.as_secs_f64() / 2.0;
    assert!(started as f64 <= most, "{started} in {passed:?}");
    rig.another_workflow_completes().await;
}
