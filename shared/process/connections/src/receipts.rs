//! Reports to the queue about a task while its scope is processed, and when that has failed.

use std::convert::Infallible;
use std::time::Duration;

use swirl_model::ids::ScopeRef;
use swirl_ports::Receipt;
use swirl_runtime::{Driver, Error};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The first delay before a failed task is tried again. It grows with each attempt.
const RETRY_DELAY_MS: u64 = 1_000;

/// Does the work of a task, and reports at this interval that it is still being done.
pub async fn with_progress<T>(
    receipt: Option<&dyn Receipt>,
    every: Duration,
    work: impl Future<Output = T>,
) -> T {
    let Some(receipt) = receipt else {
        return work.await;
    };
    tokio::select! {
        done = work => done,
        never = report_progress(receipt, every) => match never {},
    }
}

async fn report_progress(receipt: &dyn Receipt, every: Duration) -> Infallible {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        receipt.progress().await;
    }
}

/// Has the queue deliver a failed task again, or suspends the instance if that cannot help.
pub async fn report_failure(
    driver: &Driver,
    scope: &ScopeRef,
    receipt: Option<&dyn Receipt>,
    error: &Error,
) {
    if let Error::Attempts { .. } = error {
        driver.quarantine(scope, error).await;
    }
    let Some(receipt) = receipt else {
        return;
    };
    let reason = error.to_string();
    match error {
        Error::Attempts { .. } => receipt.give_up(&reason).await,
        error if error.is_retryable() => receipt.postpone(RETRY_DELAY_MS).await,
        error => {
            if receipt.failed(RETRY_DELAY_MS, &reason).await {
                driver.quarantine(scope, error).await;
            }
        }
    }
}
