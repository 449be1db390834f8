//! The deadlock because of which commands of a cluster are routed here (ADR 28), made of its parts: one task polls all
//! requests, and while it refreshes the map of slots it polls only the refresh. A request that is out of budget is
//! pending, and holds the lock all the same.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use swirl_servers::PATIENCE;
use tokio::sync::RwLock;
use tokio::time::timeout;

/// More than a task may do before it has to yield.
const REQUESTS: usize = 400;

type Requests = Vec<Pin<Box<dyn Future<Output = ()>>>>;

/// Returns how many are left.
fn poll_all(requests: &mut Requests, cx: &mut Context<'_>) -> usize {
    requests.retain_mut(|request| request.as_mut().poll(cx).is_pending());
    requests.len()
}

/// Fails once a pending request holds nothing any more: then the library's own connection to a cluster can be tried
/// again.
#[tokio::test]
async fn a_request_without_budget_holds_what_a_refresh_waits_for() {
    let slots = Arc::new(RwLock::new(()));
    let request = |slots: Arc<RwLock<()>>| async move { drop(slots.read().await) };
    let mut requests = Requests::new();
    for _ in 0..REQUESTS {
        requests.push(Box::pin(request(slots.clone())));
    }
    let left = poll_fn(|cx| Poll::Ready(poll_all(&mut requests, cx))).await;
    assert!(left > 0, "all requests were made at once");
    let refreshed = timeout(Duration::from_secs(1), slots.write()).await;
    assert!(refreshed.is_err(), "a refresh that is polled alone ends");
    // Somebody only has to poll the requests.
    let all = poll_fn(|cx| match poll_all(&mut requests, cx) {
        0 => Poll::Ready(()),
        _ => Poll::Pending,
    });
    timeout(PATIENCE, all).await.unwrap();
    drop(timeout(PATIENCE, slots.write()).await.unwrap());
}
