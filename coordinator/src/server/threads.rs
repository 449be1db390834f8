//! The threads that read requests and write answers. They also answer whether the process is alive and ready. Everything
//! else that a request needs is done on the threads of the process: however busy those are, a supervisor gets its
//! answer.

use std::io;
use std::panic::resume_unwind;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::api::{Api, Problem, is_health};

/// Two, so that one long answer or handshake doesn't delay the others.
const THREADS: usize = 2;

pub(super) struct Threads(Option<Runtime>);

impl Threads {
    pub fn start() -> io::Result<Threads> {
        let mut threads = Builder::new_multi_thread();
        let threads = threads.worker_threads(THREADS).thread_name("serve");
        Ok(Threads(Some(threads.enable_all().build()?)))
    }

    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<Running<T>> {
        let runtime = self.0.as_ref();
        let runtime = runtime.ok_or_else(|| io::Error::other("the threads have ended"))?;
        Ok(Running(runtime.spawn(work)))
    }
}

impl Drop for Threads {
    /// Doesn't wait for the connections: an async context must not block.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Work on other threads that ends when nobody waits for it any more.
pub(super) struct Running<T>(JoinHandle<T>);

impl<T> Running<T> {
    /// Returns `None` if the other threads have ended. A panic goes on here.
    pub async fn end(&mut self) -> Option<T> {
        match (&mut self.0).await {
            Ok(done) => Some(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => None,
            },
        }
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
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
    let answer = running.end().await;
    answer.unwrap_or_else(|| Problem::stopping().into_response())
}
