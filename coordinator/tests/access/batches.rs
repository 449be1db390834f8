//! Batches: their limits, and the names of their operators.

use serde_json::{Value, json};
use swirl_model::data;
use swirl_model::ids::{DefinitionId, InstanceId, ScopeId};
use swirl_model::instance::Header;
use swirl_model::scope::{Role, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::{ExecutionStore, InstanceQueries, NewInstance};
use swirl_service::BatchLimits;

use crate::running::{Running, Setup, client, guarded};

fn instance(id: &str) -> NewInstance {
    NewInstance {
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
            key: None,
            instance_key: None,
            timeout: None,
            depth: 0,
            hops: 0,
            trace: Default::default(),
        },
        root: Scope::new(ScopeId::root(), Role::Root, data!({})),
        ends_with_parent: false,
        watched: false,
        whole: None,
    }
}

async fn create(running: &Running, body: Value) -> (u16, Value) {
    let request = client().post(running.url("/api/v1/batches"));
    let request = request.bearer_auth("operator-token").json(&body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// A request that would leave some of the matching instances out does nothing, and says so.
#[tokio::test]
async fn nothing_is_silently_cut() {
    let setup = Setup {
        limits: BatchLimits {
            active: 2,
            instances: 3,
            examined: 5,
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
    // As many as are allowed.
    let (status, batch) = create(&running, cancel("id != i0")).await;
    assert_eq!((status, &batch["matched"]), (201, &json!(3)), "{batch}");
    assert_eq!(batch["by"], "operator");

    for n in 4..8 {
        store.create(instance(&format!("i{n}"))).await.unwrap();
    }
    // It may match one that was not examined.
    let (status, answer) = create(&running, cancel("parent = nobody")).await;
    assert_eq!((status, &answer["code"]), (422, &json!("query-too-broad")));
    let first = &store.history(&InstanceId::new("i0")).await.unwrap();
    assert!(first.is_empty(), "nothing was done");
}

#[tokio::test]
async fn so_many_are_under_way() {
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
        // Nobody carries them out here.
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
