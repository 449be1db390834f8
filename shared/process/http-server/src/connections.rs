//! Accepts connections and serves a router on them.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use futures::future::BoxFuture;
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

use crate::answers::{Answers, Taking, Untaken};
use crate::bodies::{Bodies, BodyLimits};
use crate::headers::{Prompt, UnderWay};
use crate::room::{Room, connections_max};
use crate::write_timeout::WriteTimeout;

const HEADERS_BYTES_MAX: usize = 64 << 10;
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// The pause if no connection can be accepted, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(500);

/// Returns an acceptor of TLS handshakes, with the current certificates.
pub type Acceptor = Arc<dyn Fn() -> TlsAcceptor + Send + Sync>;

/// The limits of clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of connections.
    pub connections: usize,
    /// The maximum number from one address; further ones are closed at once.
    pub of_address: usize,
    /// How long a new connection may send nothing at all.
    pub first_byte: Duration,
    /// How long a request's headers may take to arrive, from their first byte.
    pub headers: Duration,
    /// How long a connection may be idle between two requests. Longer than clients usually keep one (90 s): a client
    /// that sends a request just as the connection is closed doesn't know whether it was carried out.
    pub idle: Duration,
    /// A connection is closed if the client reads nothing of its answer for this long.
    pub write: Duration,
    pub bodies: BodyLimits,
    /// The bytes of all large answers that clients haven't taken yet.
    pub answers: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: connections_max(),
            of_address: 1_000,
            first_byte: Duration::from_secs(10),
            headers: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            write: Duration::from_secs(30),
            bodies: BodyLimits::default(),
            answers: 256 << 20,
        }
    }
}

/// The address that a request comes from, in the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// The open connections.
pub struct Connections {
    service: TowerToHyperService<Router>,
    tls: Option<Acceptor>,
    limits: Limits,
    room: Room,
    bodies: Bodies,
    answers: Answers,
    tasks: JoinSet<()>,
    ending: GracefulShutdown,
    /// No further requests are accepted: for connections that have sent nothing yet.
    over: watch::Sender<bool>,
}

impl Connections {
    /// Over plain HTTP, unless there is an acceptor.
    pub fn new(router: Router, limits: Limits, tls: Option<Acceptor>) -> Connections {
        Connections {
            service: TowerToHyperService::new(router),
            tls,
            limits,
            room: Room::new(limits.connections, limits.of_address),
            bodies: Bodies::new(limits.bodies),
            answers: Answers::new(limits.answers),
            tasks: JoinSet::new(),
            ending: GracefulShutdown::new(),
            over: watch::Sender::new(false),
        }
    }

    /// Accepts connections. Never returns.
    pub async fn accept(&mut self, listener: &TcpListener) {
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
                    tracing::warn!(%error, "no connection can be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Accepts the pending connections, because otherwise they would be reset.
    pub fn accept_rest(&mut self, listener: &TcpListener) {
        while let Some(permit) = self.room.now()
            && let Some(Ok((stream, peer))) = listener.accept().now_or_never()
        {
            self.take(stream, peer.ip(), permit);
        }
    }

    fn take(&mut self, stream: TcpStream, peer: IpAddr, permit: OwnedSemaphorePermit) {
        let Some(admitted) = self.room.admit(peer, permit) else {
            tracing::debug!(%peer, "an address has too many connections");
            return;
        };
        // Answers are small and should be sent at once.
        let _ = stream.set_nodelay(true);
        let limits = self.limits;
        let tls = self.tls.as_ref().map(|acceptor| acceptor());
        let service = OfPeer {
            inner: self.service.clone(),
            peer: Peer(peer),
            bodies: self.bodies.clone(),
            under_way: UnderWay::default(),
            untaken: self.answers.of_connection(),
        };
        let watcher = self.ending.watcher();
        let mut over = self.over.subscribe();
        self.tasks.spawn(async move {
            let _admitted = admitted;
            let mut byte = [0];
            let talks = timeout(limits.first_byte, stream.peek(&mut byte));
            let begun = tokio::select! {
                biased;
                talks = talks => matches!(talks, Ok(Ok(1))),
                _ = over.wait_for(|over| *over) => false,
            };
            if begun {
                serve(stream, limits, tls, service, watcher).await;
            }
        });
    }

    /// Accepts no more requests, and waits this long for those under way.
    pub async fn end(mut self, limit: Duration) {
        self.over.send_replace(true);
        if timeout(limit, self.ending.shutdown()).await.is_err() {
            let left = self.tasks.len();
            tracing::warn!(left, "connections whose requests took too long are closed");
        }
        self.tasks.shutdown().await;
    }
}

/// Gives the routes the address that a request comes from, and its body within the limits.
struct OfPeer {
    inner: TowerToHyperService<Router>,
    peer: Peer,
    bodies: Bodies,
    under_way: UnderWay,
    untaken: Untaken,
}

impl Service<Request<Incoming>> for OfPeer {
    type Response = axum::response::Response;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let under_way = self.under_way.begin();
        request.extensions_mut().insert(self.peer);
        let answer = self.inner.call(request.map(|body| self.bodies.paced(body)));
        let untaken = self.untaken.clone();
        Box::pin(async move {
            let answer = answer.await;
            drop(under_way);
            answer.map(|answer| untaken.counted(answer))
        })
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
    limits: Limits,
    tls: Option<TlsAcceptor>,
    service: OfPeer,
    watcher: Watcher,
) {
    let stream = WriteTimeout::new(stream, limits.write);
    let (under_way, untaken) = (service.under_way.clone(), service.untaken.clone());
    let done = match tls {
        None => {
            let stream = Prompt::new(stream, limits.headers, under_way);
            let stream = TokioIo::new(Taking::new(stream, untaken));
            let connection = http(limits.idle).serve_connection(stream, service);
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
            let stream = Prompt::new(stream, limits.headers, under_way);
            let stream = TokioIo::new(Taking::new(stream, untaken));
            let connection = http(limits.idle).serve_connection(stream, service);
            watcher.watch(connection).await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%error, "a connection broke");
    }
}

fn http(idle: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_header_size(HEADERS_BYTES_MAX)
        // What a connection holds of a body before anybody reads it.
        .max_buf_size(HEADERS_BYTES_MAX);
    http
}
