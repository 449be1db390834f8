//! Many deployments at once, whose documents are slow to fetch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use swirl_api::Finding;
use swirl_coordinator::access::Access;
use swirl_coordinator::api::{ReadDocument, Reader, Source};
use tokio::time::timeout;

use crate::running::{Reads, Setup, client, tokens};

const LONG: Duration = Duration::from_secs(120);
const GOOD: &str = r#"{"id": "w", "version": "1", "specVersion": "0.8", "states": [
    {"name": "A", "type": "inject", "data": {"a": 1}, "end": true}]}"#;

/// The documents that a slow definition refers to never arrive.
#[derive(Default)]
struct Slow {
    begun: AtomicUsize,
    gone: AtomicUsize,
}

impl Reader for Slow {
    fn read(&self, source: &Source) -> Result<ReadDocument, Vec<Finding>> {
        if source.document == GOOD {
            return Reads.read(source);
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        futures::executor::block_on(source.wanted.over());
        self.gone.fetch_add(1, Ordering::SeqCst);
        Err(vec![Finding::error("gone", "nobody waits for it")])
    }
}

async fn reaches(count: &AtomicUsize, wanted: usize) {
    let reached = timeout(LONG, async {
        while count.load(Ordering::SeqCst) < wanted {
            tokio::task::yield_now().await;
        }
    });
    reached.await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_deployments_block_no_other_caller_and_end_with_their_clients() {
    let reader = Arc::new(Slow::default());
    let access = Access::guarded(
        "shop",
        tokens(&[("a", "deployer"), ("b", "deployer")]),
        None,
    );
    let setup = Setup {
        reader: reader.clone(),
        ..Setup::new(access)
    };
    let running = setup.start().await;
    let deploy = |by: &str, document: &'static str| {
        let request = client().post(running.url("/api/v1/definitions"));
        request
            .bearer_auth(format!("{by}-token"))
            .body(document)
            .send()
    };
    let slow: Vec<_> = (0..8).map(|_| tokio::spawn(deploy("a", "slow"))).collect();
    reaches(&reader.begun, 8).await;
    let refused = deploy("a", GOOD).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "too-many-deployments", "{problem}");
    assert_eq!(deploy("b", GOOD).await.unwrap().status(), 201);

    assert_eq!(reader.gone.load(Ordering::SeqCst), 0);
    for request in &slow {
        request.abort();
    }
    reaches(&reader.gone, 8).await;
    let answered = timeout(LONG, async {
        loop {
            let status = deploy("a", GOOD).await.unwrap().status();
            if status != 429 {
                return status;
            }
        }
    });
    assert_eq!(answered.await.unwrap(), 200, "it is deployed already");
}
