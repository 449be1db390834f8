//! Joins forks with many or large results, as workers request by messages.
//!
//! A join is one turn of the scope that forked. Its results are read page by page and merged in the order of the
//! definition, the rest of the fork is closed, and a worker continues. Any number of coordinators may join forks; if
//! two join the same fork, only one commits. A lost message is recovered like a lost task.

use std::sync::Arc;
use std::time::Duration;

use swirl_connections::{report_failure, with_progress};
use swirl_ports::{Task, Tasks};
use swirl_runtime::{Driver, Suspects};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How many forks are joined at once. All results of each are in memory: at most `limits.fork_bytes` as JSON.
pub const AT_ONCE: usize = 4;
/// How long running joins may take when the coordinator stops. Other coordinators join the unfinished ones.
const FINISH_MAX: Duration = Duration::from_secs(3);

/// Joins forks until `stop` is done. `progress`: how often to report to the queue that a message is still being
/// processed.
pub async fn join_forks(
    driver: Arc<Driver>,
    joins: Arc<dyn Tasks>,
    progress: Duration,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let suspects = Suspects::default();
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let next = async {
            let place = places.clone().acquire_owned().await.ok()?;
            Some((joins.pull().await, place))
        };
        let pulled = tokio::select! {
            biased;
            () = &mut stop => None,
            pulled = next => pulled,
        };
        let Some((task, place)) = pulled else {
            break;
        };
        let (driver, suspects) = (driver.clone(), suspects.clone());
        running.spawn(async move {
            let _place = place;
            join(&driver, task, suspects, progress).await;
        });
    }
    let finish = async { while running.join_next().await.is_some() {} };
    let (_, finished) = tokio::join!(
        timeout(FINISH_MAX, joins.close()),
        timeout(FINISH_MAX, finish)
    );
    if finished.is_err() {
        tracing::debug!("unfinished joins are left to other coordinators");
    }
    running.shutdown().await;
}

async fn join(driver: &Driver, task: Task, suspects: Suspects, progress: Duration) {
    let Task {
        scope,
        is_late,
        receipt,
        ..
    } = task;
    let receipt = receipt.as_deref();
    let joining = driver.join(&scope, is_late.then_some(suspects));
    match with_progress(receipt, progress, joining).await {
        Ok(_) => {
            if let Some(receipt) = receipt {
                receipt.done().await;
            }
        }
        Err(error) => {
            tracing::warn!(%scope, %error, "a join failed and is retried");
            report_failure(driver, &scope, receipt, &error).await;
        }
    }
}
