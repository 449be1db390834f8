//! Starts that wait for the rate of their workflow.

use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::{PENDING_START_KEPT_MS, PendingStart, PendingStartsMax};

use crate::Backend;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn max(workflow: u32, all: u32) -> PendingStartsMax {
    PendingStartsMax { workflow, all }
}

async fn add(b: &Backend, workflow: &str, id: &str, max: PendingStartsMax, at: Timestamp) -> bool {
    let id = &InstanceId::new(id);
    let start = PendingStart { workflow, id };
    b.store.add_pending_start(start, max, at).await.unwrap()
}

async fn remove(b: &Backend, workflow: &str, id: &str) {
    let id = &InstanceId::new(id);
    let start = PendingStart { workflow, id };
    b.store.remove_pending_start(start).await.unwrap();
}

pub async fn pending_starts_are_bounded_by_workflow(b: Backend) {
    for id in ["1", "2"] {
        assert!(add(&b, "w", id, max(2, 0), NOW).await);
    }
    assert!(!add(&b, "w", "3", max(2, 0), NOW).await);
    assert!(add(&b, "other", "3", max(2, 0), NOW).await);
    remove(&b, "w", "1").await;
    assert!(add(&b, "w", "4", max(2, 0), NOW).await);
    assert!(!add(&b, "w", "1", max(2, 0), NOW).await);
    assert!(add(&b, "w", "1", max(0, 0), NOW).await, "without a limit");
}

pub async fn pending_starts_are_bounded_together(b: Backend) {
    assert!(add(&b, "a", "1", max(2, 3), NOW).await);
    assert!(add(&b, "a", "2", max(2, 3), NOW).await);
    assert!(add(&b, "b", "3", max(2, 3), NOW).await);
    assert!(!add(&b, "b", "4", max(2, 3), NOW).await);
    remove(&b, "a", "2").await;
    assert!(add(&b, "b", "4", max(2, 3), NOW).await);
}

pub async fn a_pending_start_counts_once(b: Backend) {
    for _ in 0..3 {
        assert!(add(&b, "w", "1", max(1, 1), NOW).await);
    }
    assert!(!add(&b, "w", "2", max(1, 1), NOW).await);
    remove(&b, "w", "never").await;
    remove(&b, "w", "1").await;
    assert!(add(&b, "w", "2", max(1, 1), NOW).await);
}

/// Nothing counts it again, because its instance may have been removed.
pub async fn a_forgotten_start_is_uncounted(b: Backend) {
    let later = |ms: i64| Timestamp(NOW.0 + ms);
    assert!(add(&b, "w", "1", max(2, 2), NOW).await);
    assert!(add(&b, "w", "2", max(2, 2), NOW).await);
    let halfway = later(PENDING_START_KEPT_MS / 2);
    assert!(add(&b, "w", "2", max(2, 2), halfway).await);
    assert!(!add(&b, "w", "3", max(2, 2), halfway).await);
    let over = later(PENDING_START_KEPT_MS + 1);
    assert!(add(&b, "w", "3", max(2, 2), over).await);
    assert!(!add(&b, "w", "4", max(2, 2), over).await);
}
