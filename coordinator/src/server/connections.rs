//! Takes connections and serves the API on them.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::patience::Patience;
use super::room::{Room, connections_max};
use super::tls::Tls;
use crate::api::{Api, health_router, router};

/// If nothing else is said: how many connections an address may have.
const ADDRESS_MAX: usize = 1_000;
/// Connections for health and metrics on a listener of their own, and those of one address.
const HEALTH_MAX: usize = 64;
const HEALTH_ADDRESS_MAX: usize = 16;
/// How long a new connection may say nothing at all.
const FIRST_BYTE_MAX: Duration = Duration::from_secs(10);
/// How long a request's headers may take to come, and so how long a connection may be idle.
const HEADERS_MAX: Duration = Duration::from_secs(75);
const HEADERS_BYTES_MAX: usize = 64 << 10;
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// If nothing else is said: how long a client may take nothing of its answer.
const WRITE_MAX: Duration = Duration::from_secs(30);
/// How long to wait when no connection can be taken, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(500);
/// For how long connections stay open that nothing has come on, once none is taken.
const LAST: Duration = Duration::from_millis(50);
/// If nothing else is said: how long requests under way may take when the server is to stop.
const STOP_MAX: Duration = Duration::from_secs(3);

/// The API behind a port.
pub struct Server {
    api: Api,
    tls: Option<Tls>,
    drain: Duration,
    stop_max: Duration,
    write_max: Duration,
    first_byte_max: Duration,
    address_max: usize,
    health: Option<TcpListener>,
}

/// Where a request comes from; in its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl Server {
    /// Over plain HTTP, unless [`Server::tls`] is called.
    pub fn new(api: Api) -> Server {
        Server {
            api,
            tls: None,
            drain: Duration::ZERO,
            stop_max: STOP_MAX,
            write_max: WRITE_MAX,
            first_byte_max: FIRST_BYTE_MAX,
            address_max: ADDRESS_MAX,
            health: None,
        }
    }

    /// Health and metrics are served here too: whoever takes all connections of the API takes none of these.
    #[must_use]
    pub fn health(mut self, listener: Option<TcpListener>) -> Server {
        self.health = listener;
        self
    }

    /// How many connections an address may have; further ones are closed at once.
    #[must_use]
    pub fn address_max(mut self, address_max: usize) -> Server {
        self.address_max = address_max;
        self
    }

    /// How long a new connection may say nothing at all.
    #[must_use]
    pub fn first_byte_max(mut self, first_byte_max: Duration) -> Server {
        self.first_byte_max = first_byte_max;
        self
    }

    #[must_use]
    pub fn tls(mut self, tls: Option<Tls>) -> Server {
        self.tls = tls;
        self
    }

    /// For how long requests are taken when the server is to stop and says that it isn't ready.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Server {
        self.drain = drain;
        self
    }

    /// How long requests under way may take when the server is to stop.
    #[must_use]
    pub fn stop_max(mut self, stop_max: Duration) -> Server {
        self.stop_max = stop_max;
        self
    }

    /// A client that takes nothing of its answer for so long loses its connection.
    #[must_use]
    pub fn write_max(mut self, write_max: Duration) -> Server {
        self.write_max = write_max;
        self
    }

    /// Serves until `stop` is done. From then on it isn't ready, and each answer is the last of its
    /// connection. When it has drained, no connection is taken, those that are idle are closed, and
    /// requests under way are finished within the limit.
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
        let tls = self.tls.map(Arc::new);
        let mut kept = JoinSet::new();
        kept.spawn(async move { access.keep().await });
        if let Some(tls) = tls.clone() {
            kept.spawn(tls.keep());
        }
        if let Some(listener) = self.health {
            let mut open = Open {
                service: TowerToHyperService::new(health_router(self.api.clone())),
                tls: None,
                write_max: self.write_max,
                first_byte_max: self.first_byte_max,
                room: Room::new(HEALTH_MAX, HEALTH_ADDRESS_MAX),
                tasks: JoinSet::new(),
                ending: GracefulShutdown::new(),
                over: watch::Sender::new(false),
            };
            // To the last moment: that it isn't ready is to be seen.
            kept.spawn(async move { open.accept(&listener).await });
        }
        let mut open = Open {
            service: TowerToHyperService::new(router(self.api)),
            tls,
            write_max: self.write_max,
            first_byte_max: self.first_byte_max,
            room: Room::new(connections_max(), self.address_max),
            tasks: JoinSet::new(),
            ending: GracefulShutdown::new(),
            over: watch::Sender::new(false),
        };
        tokio::select! {
            () = stop => {}
            () = open.accept(&listener) => {}
        }
        api.stop();
        // Done only when the time is over.
        let _ = timeout(self.drain, open.accept(&listener)).await;
        open.accept_rest(&listener);
        drop(listener);
        // What a client has just sent is on its way.
        tokio::time::sleep(LAST).await;
        // Tokens are checked to the last request, with what is known of them.
        drop(kept);
        open.end(self.stop_max).await;
        Ok(())
    }
}

/// The connections that there are.
struct Open {
    service: TowerToHyperService<Router>,
    tls: Option<Arc<Tls>>,
    write_max: Duration,
    first_byte_max: Duration,
    room: Room,
    tasks: JoinSet<()>,
    ending: GracefulShutdown,
    /// No further request is taken: for connections that have said nothing yet.
    over: watch::Sender<bool>,
}

impl Open {
    /// Takes connections for ever.
    async fn accept(&mut self, listener: &TcpListener) {
        loop {
            // Never closed, so that there is always an answer.
            let Some(permit) = self.room.any().await else {
                return;
            };
            // Those that have ended are forgotten.
            while self.tasks.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, peer)) => self.take(stream, peer.ip(), permit),
                Err(error) if of_one(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Takes those that wait to be taken: they would be reset.
    fn accept_rest(&mut self, listener: &TcpListener) {
        while let Some(permit) = self.room.now()
            && let Some(Ok((stream, peer))) = listener.accept().now_or_never()
        {
            self.take(stream, peer.ip(), permit);
        }
    }

    fn take(&mut self, stream: TcpStream, peer: IpAddr, permit: OwnedSemaphorePermit) {
        let Some(place) = self.room.place(peer, permit) else {
            tracing::debug!(%peer, "an address has too many connections");
            return;
        };
        // Answers are small, and go out at once.
        let _ = stream.set_nodelay(true);
        let (first_byte_max, write_max) = (self.first_byte_max, self.write_max);
        let tls = self.tls.as_deref().map(Tls::acceptor);
        let service = OfPeer {
            inner: self.service.clone(),
            peer: Peer(peer),
        };
        let watcher = self.ending.watcher();
        let mut over = self.over.subscribe();
        self.tasks.spawn(async move {
            let _place = place;
            let mut byte = [0];
            let talks = timeout(first_byte_max, stream.peek(&mut byte));
            let begun = tokio::select! {
                biased;
                talks = talks => matches!(talks, Ok(Ok(1))),
                _ = over.wait_for(|over| *over) => false,
            };
            if begun {
                serve(Patience::new(stream, write_max), tls, service, watcher).await;
            }
        });
    }

    async fn end(mut self, limit: Duration) {
        self.over.send_replace(true);
        if timeout(limit, self.ending.shutdown()).await.is_err() {
            let left = self.tasks.len();
            tracing::warn!(left, "connections whose requests took too long are closed");
        }
        self.tasks.shutdown().await;
    }
}

/// Tells the routes where a request comes from.
struct OfPeer {
    inner: TowerToHyperService<Router>,
    peer: Peer,
}

impl Service<Request<Incoming>> for OfPeer {
    type Response = axum::response::Response;
    type Error = std::convert::Infallible;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.inner.call(request)
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
    stream: Patience<TcpStream>,
    tls: Option<TlsAcceptor>,
    service: OfPeer,
    watcher: Watcher,
) {
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
