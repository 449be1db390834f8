//! Takes connections and serves the API on them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::tls::Tls;
use crate::api::{Api, router};

/// How many connections there may be at once; further ones wait to be taken.
const CONNECTIONS_MAX: usize = 10_000;
/// How long a request's headers may take to come, and so how long a connection may be idle.
const HEADERS_MAX: Duration = Duration::from_secs(75);
const HEADERS_BYTES_MAX: usize = 64 << 10;
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be taken, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(500);
/// If nothing else is said: how long requests under way may take when the server is to stop.
const STOP_MAX: Duration = Duration::from_secs(3);

/// The API behind a port.
pub struct Server {
    api: Api,
    tls: Option<Tls>,
    stop_max: Duration,
}

impl Server {
    /// Over plain HTTP, unless [`Server::tls`] is called.
    pub fn new(api: Api) -> Server {
        Server {
            api,
            tls: None,
            stop_max: STOP_MAX,
        }
    }

    #[must_use]
    pub fn tls(mut self, tls: Option<Tls>) -> Server {
        self.tls = tls;
        self
    }

    /// How long requests under way may take when the server is to stop.
    #[must_use]
    pub fn stop_max(mut self, stop_max: Duration) -> Server {
        self.stop_max = stop_max;
        self
    }

    /// Serves until `stop` is done: from then on no connection is taken, those that are idle are
    /// closed, and requests under way are finished within the limit.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        listener.local_addr()?;
        let (api, access) = (self.api.clone(), self.api.access.clone());
        let service = TowerToHyperService::new(router(self.api));
        let ending = GracefulShutdown::new();
        let mut tasks = JoinSet::new();
        let tls = self.tls.map(Arc::new);
        let mut kept = JoinSet::new();
        kept.spawn(async move { access.keep().await });
        if let Some(tls) = tls.clone() {
            kept.spawn(tls.keep());
        }
        {
            let accept = accept(&listener, &mut tasks, &ending, tls.as_deref(), &service);
            tokio::select! {
                () = stop => {}
                () = accept => {}
            }
        }
        api.stop();
        drop(listener);
        // Tokens are checked to the last request, with what is known of them.
        drop(kept);
        if timeout(self.stop_max, ending.shutdown()).await.is_err() {
            let left = tasks.len();
            tracing::warn!(left, "connections whose requests took too long are closed");
        }
        tasks.shutdown().await;
        Ok(())
    }
}

type Service = TowerToHyperService<Router>;

/// Takes connections for ever.
async fn accept(
    listener: &TcpListener,
    tasks: &mut JoinSet<()>,
    ending: &GracefulShutdown,
    tls: Option<&Tls>,
    service: &Service,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Never closed, so that there is always an answer.
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        // Those that have ended are forgotten.
        while tasks.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let tls = tls.map(Tls::acceptor);
                let (service, watcher) = (service.clone(), ending.watcher());
                tasks.spawn(serve(stream, tls, service, watcher, permit));
            }
            Err(error) if of_one(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Whether the error is that of the connection, and not of the listener.
fn of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    service: Service,
    watcher: Watcher,
    _permit: OwnedSemaphorePermit,
) {
    // Answers are small, and go out at once.
    let _ = stream.set_nodelay(true);
    let done = match tls {
        None => {
            let connection = http().serve_connection(TokioIo::new(stream), service);
            watcher.watch(connection).await
        }
        Some(tls) => {
            let stream = match timeout(HANDSHAKE_MAX, tls.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    return;
                }
                Err(_) => {
                    tracing::debug!("a TLS handshake took too long");
                    return;
                }
            };
            let connection = http().serve_connection(TokioIo::new(stream), service);
            watcher.watch(connection).await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%error, "a connection broke");
    }
}

fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_MAX)
        .max_header_size(HEADERS_BYTES_MAX);
    http
}
