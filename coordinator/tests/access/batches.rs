//! Batches: their limits, and the names of their operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use swirl_embedded::Embedded;
use swirl_model::data;
use swirl_model::event::Event;
use swirl_model::ids::{DefinitionId, InstanceId, ScopeId};
use swirl_model::instance::Header;
use swirl_model::scope::{Role, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::{
    Batch, BatchCreation, BatchItem, BatchOrder, BatchOutcome, BatchState, Batches, Error,
    ExecutionStore, InstanceQueries, NewRecords, Result,
};
use swirl_servers::eventually;
use swirl_service::{BatchLimits, Batching};

use crate::running::{Running, Setup, client, guarded};

/// An instance of version 1 of the workflow `flow`.
pub fn instance(id: &str) -> NewRecords {
    NewRecords {
        header: Header {
            id: InstanceId::new(id),
            definition: DefinitionId {
                workflow: "flow".into(),
                version: "1".into(),
            },
            version: "1".to_owned(),
            input: data!({}),
            started_at: Timestamp(0),
            parent: None,
            continued_from: None,
            scheduled_at: None,
            key: None,
            instance_key: None,
            timeout: None,
            depth: 0,
            hops: 0,
            trace: Default::default(),
            retention: Default::default(),
        },
        root: Scope::new(ScopeId::root(), Role::Root, data!({})),
        ends_with_parent: false,
        watched: false,
        first_turn: None,
    }
}

async fn create(running: &Running, body: Value) -> (u16, Value) {
    let request = client().post(running.url("/api/v1/batches"));
    let request = request.bearer_auth("operator-token").json(&body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// A request that would omit some of the matching instances does nothing, and says so.
#[tokio::test]
async fn a_batch_is_never_cut_silently() {
    let setup = Setup {
        limits: BatchLimits {
            active: 2,
            instances: 3,
            examined: 5,
            ..BatchLimits::default()
        },
        ..Setup::new(guarded(None))
    };
    let store = setup.store.clone();
    for n in 0..4 {
        store.create(instance(&format!("i{n}"))).await.unwrap();
    }
    let running = setup.start().await;
    let cancel = |query: &str| json!({"operation": "cancel", "query": query, "reason": "a test"});
    for dry_run in [true, false] {
        let mut body = cancel("status = running");
        body["dryRun"] = dry_run.into();
        let (status, answer) = create(&running, body).await;
        assert_eq!(
            (status, &answer["code"]),
            (422, &json!("too-many-instances"))
        );
        assert!(answer["detail"].as_str().unwrap().contains("more than 3"));
    }
    // As many as allowed.
    let (status, batch) = create(&running, cancel("id != i0")).await;
    assert_eq!((status, &batch["matched"]), (201, &json!(3)), "{batch}");
    assert_eq!(batch["by"], "operator");

    for n in 4..8 {
        store.create(instance(&format!("i{n}"))).await.unwrap();
    }
    // This may match an instance that was not examined.
    let (status, answer) = create(&running, cancel("parent = nobody")).await;
    assert_eq!((status, &answer["code"]), (422, &json!("query-too-broad")));
    let first = &store.history(&InstanceId::new("i0")).await.unwrap();
    assert!(first.is_empty(), "nothing was done");
}

#[tokio::test]
async fn the_number_of_active_batches_is_limited() {
    let setup = Setup {
        limits: BatchLimits {
            active: 2,
            ..BatchLimits::default()
        },
        ..Setup::new(guarded(None))
    };
    setup.store.create(instance("i")).await.unwrap();
    let running = setup.start().await;
    let body = json!({"operation": "suspend", "query": "status = running"});
    for expected in [201, 201, 409] {
        // No carrier runs here.
        let (status, answer) = create(&running, body.clone()).await;
        assert_eq!(status, expected, "{answer}");
    }
    let (status, _) = create(
        &running,
        json!({"operation": "suspend", "query": "status = faulted"}),
    )
    .await;
    assert_eq!(status, 409);
}

/// A carrier that crashes this many times before it records what it has done.
struct Forgetful {
    store: Arc<Embedded>,
    deaths: AtomicUsize,
}

#[async_trait]
impl Batches for Forgetful {
    async fn create_batch(
        &self,
        order: &BatchOrder,
        instances: &[InstanceId],
        active_max: usize,
    ) -> Result<BatchCreation> {
        self.store.create_batch(order, instances, active_max).await
    }

    async fn batch(&self, id: &str) -> Result<Option<Batch>> {
        self.store.batch(id).await
    }

    async fn batches(&self) -> Result<Vec<Batch>> {
        self.store.batches().await
    }

    async fn active_batches(&self) -> Result<Vec<Batch>> {
        self.store.active_batches().await
    }

    async fn batch_items(&self, id: &str, from: u32, limit: u32) -> Result<Vec<BatchItem>> {
        self.store.batch_items(id, from, limit).await
    }

    async fn change_batch(&self, id: &str, to: BatchState, at: Timestamp) -> Result<Option<Batch>> {
        self.store.change_batch(id, to, at).await
    }

    async fn lease_batch(&self, id: &str, carrier: &str, now: Timestamp, ms: u64) -> Result<bool> {
        self.store.lease_batch(id, carrier, now, ms).await
    }

    async fn record_outcomes(
        &self,
        id: &str,
        from: u32,
        outcomes: &[BatchOutcome],
        at: Timestamp,
    ) -> Result<Option<Batch>> {
        let left = self.deaths.load(Ordering::Relaxed);
        if left > 0 {
            self.deaths.store(left - 1, Ordering::Relaxed);
            return Err(Error::Unavailable("it died".to_owned()));
        }
        self.store.record_outcomes(id, from, outcomes, at).await
    }

    async fn drop_batch(&self, id: &str) -> Result<()> {
        self.store.drop_batch(id).await
    }
}

#[tokio::test]
async fn unrecorded_actions_are_not_repeated() {
    let setup = Setup::new(guarded(None));
    let store = setup.store.clone();
    for n in 0..3 {
        store.create(instance(&format!("i{n}"))).await.unwrap();
    }
    let running = setup.start().await;
    for (deaths, operation) in [(2, "cancel"), (2, "suspend")] {
        let carrier = Batching {
            store: Arc::new(Forgetful {
                store: store.clone(),
                deaths: AtomicUsize::new(deaths),
            }),
            ..running.batching.clone()
        };
        let carried = tokio::spawn(async move { carrier.run().await });
        let body = json!({"operation": operation, "query": "status = running", "reason": "a test"});
        let (status, batch) = create(&running, body).await;
        assert_eq!(status, 201, "{batch}");
        let id = batch["id"].as_str().unwrap();
        let ended = eventually("its end", async || {
            let batch = store.batch(id).await.unwrap().unwrap();
            (batch.state == BatchState::Completed).then_some(batch)
        });
        assert_eq!(ended.await.counts.done, 3);
        for n in 0..3 {
            let history = store.history(&InstanceId::new(format!("i{n}"))).await;
            let operated = history.unwrap().into_iter().filter(|entry| {
                matches!(&entry.event, Event::Operated { action, .. } if **action == *operation)
            });
            assert_eq!(operated.count(), 1, "{operation}");
        }
        carried.abort();
    }
}

#[tokio::test]
async fn old_batches_are_dropped() {
    dropped(BatchLimits::default()).await;
    dropped(BatchLimits {
        kept: 7,
        ..BatchLimits::default()
    })
    .await;
}

#[tokio::test]
async fn batches_are_kept_for_a_time() {
    let setup = Setup {
        limits: BatchLimits {
            kept_for: Duration::from_secs(3_600),
            ..BatchLimits::default()
        },
        ..Setup::new(guarded(None))
    };
    let store = setup.store.clone();
    let running = setup.start().await;
    let now = running.batching.service.clock.now();
    for (id, minutes) in [("old", 70), ("recent", 50)] {
        let order = order(id.to_owned(), Timestamp(now.0 - minutes * 60_000), 0);
        made(&store, &order, &[]).await;
    }
    let carrier = running.batching.clone();
    let carried = tokio::spawn(async move { carrier.run().await });
    eventually("that the old one is dropped", async || {
        let old = store.batch("old").await.unwrap();
        old.is_none().then_some(())
    })
    .await;
    assert!(store.batch("recent").await.unwrap().is_some());
    carried.abort();
}

async fn made(store: &Embedded, order: &BatchOrder, instances: &[InstanceId]) {
    let created = store.create_batch(order, instances, usize::MAX);
    assert_eq!(created.await.unwrap(), BatchCreation::New);
}

fn order(id: String, created_at: Timestamp, matched: usize) -> BatchOrder {
    BatchOrder {
        id,
        operation: "cancel".to_owned(),
        result: None,
        patch: None,
        state: None,
        version: None,
        query: "id = a".to_owned(),
        by: None,
        reason: None,
        rate: 1,
        created_at,
        matched: matched as u32,
    }
}

async fn dropped(limits: BatchLimits) {
    let setup = Setup {
        limits,
        ..Setup::new(guarded(None))
    };
    let store = setup.store.clone();
    let running = setup.start().await;
    let now = running.batching.service.clock.now();
    // One ended long ago, one is paused since then, and two more than are kept have just ended.
    let old = order("old".to_owned(), Timestamp(0), 0);
    made(&store, &old, &[]).await;
    let paused = order("paused".to_owned(), Timestamp(0), 1);
    let instances = [InstanceId::new("a")];
    made(&store, &paused, &instances).await;
    let pause = store.change_batch("paused", BatchState::Paused, now);
    pause.await.unwrap();
    for n in 0..limits.kept + 2 {
        let order = order(format!("b{n}"), now.plus_ms(n as u64), 0);
        made(&store, &order, &[]).await;
    }
    let carrier = running.batching.clone();
    let carried = tokio::spawn(async move { carrier.run().await });
    let kept = eventually("that old ones are dropped", async || {
        let all = store.batches().await.unwrap();
        (all.len() <= limits.kept + 1).then_some(all)
    });
    let kept = kept.await;
    let ids: Vec<&str> = kept.iter().map(|batch| &*batch.order.id).collect();
    assert_eq!(ids.len(), limits.kept + 1);
    assert!(ids.contains(&"paused") && !ids.contains(&"old"));
    assert!(!ids.contains(&"b0") && !ids.contains(&"b1") && ids.contains(&"b2"));
    carried.abort();
}
