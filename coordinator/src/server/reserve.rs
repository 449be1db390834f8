//! A thread in reserve. While all threads of the process are occupied, it takes the connections, so that a supervisor
//! learns that the process is alive and whether it is ready. Usually it does nothing: handing each request from one thread
//! to another and back would cost a fifth of the requests that a coordinator answers in a second.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::api::{Api, Problem, is_health};

const BEAT: Duration = Duration::from_millis(100);
/// The process is occupied if it hasn't beaten for this long. Supervisors wait for a second.
const OCCUPIED: Duration = Duration::from_millis(300);

pub(super) struct Reserve {
    handle: Handle,
    /// There until it is dropped.
    runtime: Option<Runtime>,
}

impl Reserve {
    pub fn start() -> io::Result<Reserve> {
        let mut threads = Builder::new_multi_thread();
        let threads = threads.worker_threads(1).thread_name("reserve");
        let runtime = threads.enable_all().build()?;
        Ok(Reserve {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Running<()> {
        Running(self.handle.spawn(work))
    }
}

impl Drop for Reserve {
    /// Doesn't wait for the connections: an async context must not block.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Work on other threads that ends when nobody waits for it any more.
pub(super) struct Running<T>(JoinHandle<T>);

impl<T> Running<T> {
    /// Returns `None` if the other threads have ended. A panic goes on here.
    async fn done(&mut self) -> Option<T> {
        match (&mut self.0).await {
            Ok(done) => Some(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => None,
            },
        }
    }

    /// Waits until the work has ended.
    pub async fn ended(mut self) {
        self.done().await;
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Shows whether the threads of the process still get to their work.
pub(super) struct Pulse {
    begun: Instant,
    /// The last beat, in milliseconds since `begun`.
    last: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse {
            begun: Instant::now(),
            last: AtomicU64::new(0),
        }
    }
}

impl Pulse {
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Beats forever, on the threads in question.
    pub async fn beat(&self) {
        loop {
            self.last.store(self.now(), Ordering::Relaxed);
            tokio::time::sleep(BEAT).await;
        }
    }

    fn has_stopped(&self) -> bool {
        let silent = self.now().saturating_sub(self.last.load(Ordering::Relaxed));
        Duration::from_millis(silent) > OCCUPIED
    }

    /// Returns when it has stopped.
    pub async fn stops(&self) {
        while !self.has_stopped() {
            tokio::time::sleep(BEAT).await;
        }
    }

    /// Returns when it beats again.
    pub async fn returns(&self) {
        while self.has_stopped() {
            tokio::time::sleep(BEAT).await;
        }
    }
}

/// Has requests answered on the threads of `process`, apart from those for its health.
pub(super) fn elsewhere(router: Router, api: Api, process: Handle) -> Router {
    router.layer(from_fn_with_state((api, process), answer))
}

async fn answer(
    State((api, process)): State<(Api, Handle)>,
    request: Request,
    next: Next,
) -> Response {
    if is_health(&api, request.uri().path()) {
        return next.run(request).await;
    }
    let mut running = Running(process.spawn(next.run(request)));
    let answer = running.done().await;
    answer.unwrap_or_else(|| Problem::stopping().into_response())
}
