//! The last results of the checks. Clients never wait long for them, and many clients don't make them run more often.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use swirl_model::time::Timestamp;
use swirl_ports::Clock;
use tokio::sync::watch;
use tokio::time::timeout;

use super::insight::Insight;
use crate::doctor::Report;

/// Results are reused for this long.
const FRESH: Duration = Duration::from_secs(60);
/// How long a run may take. Each check has a shorter limit of its own.
const RUN_MAX: Duration = Duration::from_secs(120);
/// How long a client waits for a run.
const WAIT_MAX: Duration = Duration::from_secs(3);

#[derive(Clone)]
pub struct Checks {
    insight: Arc<dyn Insight>,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    last: Option<Checked>,
    /// A run that is under way, which drops its sender at its end.
    run: Option<watch::Receiver<()>>,
}

/// The results of a run.
#[derive(Clone)]
pub struct Checked {
    pub at: Timestamp,
    since: Instant,
    pub report: Arc<Report>,
}

impl Checks {
    pub fn new(insight: Arc<dyn Insight>, clock: Arc<dyn Clock>) -> Checks {
        Checks {
            insight,
            clock,
            state: Arc::default(),
        }
    }

    /// The last results, and whether a run is under way. Starts one if there are no fresh results.
    pub async fn look(&self) -> (Option<Checked>, bool) {
        let Some(mut run) = self.run() else {
            return (self.last(), false);
        };
        // It sends nothing: the end of the sender is the end of the run.
        let _ = timeout(WAIT_MAX, run.changed()).await;
        let is_running = run.has_changed().is_ok();
        (self.last(), is_running)
    }

    fn last(&self) -> Option<Checked> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last.clone()
    }

    /// The run to wait for; `None`: the results are fresh.
    fn run(&self) -> Option<watch::Receiver<()>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = state.run.as_ref().filter(|run| run.has_changed().is_ok()) {
            return Some(run.clone());
        }
        let last = state.last.as_ref();
        if last.is_some_and(|last| last.since.elapsed() < FRESH) {
            return None;
        }
        let (running, run) = watch::channel(());
        state.run = Some(run.clone());
        let checks = self.clone();
        tokio::spawn(async move {
            checks.renew().await;
            drop(running);
        });
        Some(run)
    }

    async fn renew(&self) {
        let report = match timeout(RUN_MAX, self.insight.check()).await {
            Ok(report) => report,
            Err(_) => {
                let mut report = Report::default();
                let message = format!("the checks took longer than {} s", RUN_MAX.as_secs());
                let hint =
                    "run 'swirl doctor' on this machine: it prints each result as it arrives";
                report.error("checks", message, hint);
                report
            }
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = Some(Checked {
            at: self.clock.now(),
            since: Instant::now(),
            report: Arc::new(report),
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use futures::future::join_all;
    use swirl_embedded::SystemClock;
    use swirl_ports::{Result, SeenProcess, UnreadCount};
    use tokio::sync::Semaphore;

    use super::super::insight::QueueFigures;
    use super::*;

    struct Counted {
        runs: AtomicUsize,
        gate: Semaphore,
    }

    #[async_trait]
    impl Insight for Counted {
        async fn processes(&self) -> Result<Vec<SeenProcess>> {
            Ok(Vec::new())
        }

        async fn queues(&self) -> Option<Vec<QueueFigures>> {
            None
        }

        async fn next_timer(&self) -> Result<Option<Timestamp>> {
            Ok(None)
        }

        async fn lifecycle(&self) -> Result<Option<UnreadCount>> {
            Ok(None)
        }

        async fn check(&self) -> Report {
            self.runs.fetch_add(1, Ordering::Relaxed);
            self.gate.acquire().await.unwrap().forget();
            let mut report = Report::default();
            report.ok("a", "is well");
            report
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_clients_share_a_run_and_its_results() {
        let insight = Arc::new(Counted {
            runs: AtomicUsize::new(0),
            gate: Semaphore::new(0),
        });
        let checks = Checks::new(insight.clone(), Arc::new(SystemClock));
        let all = join_all((0..9).map(|_| checks.look())).await;
        assert!(all.iter().all(|(last, running)| last.is_none() && *running));
        insight.gate.add_permits(1);
        let (last, running) = checks.look().await;
        assert_eq!((last.unwrap().report.checks.len(), running), (1, false));
        assert!(checks.look().await.0.is_some());
        assert_eq!(insight.runs.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_has_a_limit() {
        let insight = Arc::new(Counted {
            runs: AtomicUsize::new(0),
            gate: Semaphore::new(0),
        });
        let checks = Checks::new(insight, Arc::new(SystemClock));
        checks.look().await;
        tokio::time::sleep(RUN_MAX).await;
        let (last, running) = checks.look().await;
        assert!(!last.unwrap().report.healthy() && !running);
    }
}
