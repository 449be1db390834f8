//! Serves the API until it is stopped.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use swirl_http_server::{Acceptor, Connections, Limits};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::reserve::{Pulse, Reserve, elsewhere};
use super::tls::Tls;
use crate::api::{Api, health_router, router};

/// The limit on connections to the listener for health and metrics, in total and per address.
const HEALTH_MAX: usize = 64;
const HEALTH_ADDRESS_MAX: usize = 16;
/// How long idle connections stay open after the last one was accepted.
const LAST: Duration = Duration::from_millis(50);
/// The default time that running requests may take when the server stops.
const STOP_MAX: Duration = Duration::from_secs(3);

/// The API behind a port.
pub struct Server {
    api: Api,
    tls: Option<Arc<Tls>>,
    drain: Duration,
    stop_max: Duration,
    limits: Limits,
    health: Option<TcpListener>,
}

impl Server {
    /// Serves plain HTTP, unless [`Server::tls`] is called.
    pub fn new(api: Api) -> Server {
        Server {
            api,
            tls: None,
            drain: Duration::ZERO,
            stop_max: STOP_MAX,
            limits: Limits::default(),
            health: None,
        }
    }

    /// Serves health and metrics on this listener too, so that exhausting the API's connections doesn't block them.
    #[must_use]
    pub fn health(mut self, listener: Option<TcpListener>) -> Server {
        self.health = listener;
        self
    }

    /// Limits the number of connections from an address; further ones are closed at once.
    #[must_use]
    pub fn address_max(mut self, address_max: usize) -> Server {
        self.limits.of_address = address_max;
        self
    }

    /// Limits the time for which a new connection may send nothing at all.
    #[must_use]
    pub fn first_byte_max(mut self, first_byte_max: Duration) -> Server {
        self.limits.first_byte = first_byte_max;
        self
    }

    /// Limits the bytes of all bodies that are incomplete.
    #[must_use]
    pub fn incomplete_bodies(mut self, bytes_max: usize) -> Server {
        self.limits.bodies.total = bytes_max;
        self
    }

    #[must_use]
    pub fn tls(mut self, tls: Option<Arc<Tls>>) -> Server {
        self.tls = tls;
        self
    }

    /// Sets how long requests are still accepted while the server is stopping and reports that it isn't ready.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Server {
        self.drain = drain;
        self
    }

    /// Limits the time that running requests may take when the server stops.
    #[must_use]
    pub fn stop_max(mut self, stop_max: Duration) -> Server {
        self.stop_max = stop_max;
        self
    }

    /// Limits the time for which a client may read nothing of its response before the connection is closed.
    #[must_use]
    pub fn write_max(mut self, write_max: Duration) -> Server {
        self.limits.write = write_max;
        self
    }

    /// Serves until `stop` is done. From then on the server isn't ready, and each response is the last of its
    /// connection. After the drain time no connection is accepted, idle ones are closed, and running requests may
    /// finish within the limit. While the caller's threads are all occupied, a thread in reserve takes the connections, and
    /// answers requests for health and metrics.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn serve(
        mut self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let process = Handle::current();
        self.api.looked_at_from(process.clone());
        let mut kept = JoinSet::new();
        let access = self.api.access.clone();
        // Tokens are checked until the last request.
        kept.spawn(async move { access.keep().await });
        if let Some(tls) = self.tls.clone() {
            kept.spawn(tls.keep());
        }
        let pulse = Arc::new(Pulse::default());
        let beating = pulse.clone();
        kept.spawn(async move { beating.beat().await });
        // Listeners are woken by the threads that they belong to.
        let health = self.health.take().map(TcpListener::into_std).transpose()?;
        let listener = listener.into_std()?;
        let same = listener.try_clone()?;
        let listener = TcpListener::from_std(listener)?;
        let api = self.api.clone();
        let acceptor = self.tls.take();
        let acceptor = acceptor.map(|tls| Arc::new(move || tls.acceptor()) as Acceptor);
        let router = router(self.api, acceptor.is_some());
        let limits = Limits {
            connections: HEALTH_MAX,
            of_address: HEALTH_ADDRESS_MAX,
            ..self.limits
        };
        let reserve = Reserve::start()?;
        // This listener stays open until the last moment, so that probes see that the server isn't ready.
        let apart = health.map(|listener| {
            let mut open = Connections::new(health_router(api.clone()), limits, None);
            reserve.spawn(async move {
                if let Ok(listener) = TcpListener::from_std(listener) {
                    open.accept(&listener).await;
                }
            })
        });
        let elsewhere = elsewhere(router.clone(), api.clone(), process);
        let mut instead = Connections::new(elsewhere, self.limits, acceptor.clone());
        let (stopping, mut stopped) = oneshot::channel::<()>();
        let (open_there, closed_there) = oneshot::channel::<()>();
        let stop_max = self.stop_max;
        let in_reserve = reserve.spawn(async move {
            if let Ok(listener) = TcpListener::from_std(same) {
                loop {
                    tokio::select! {
                        _ = &mut stopped => break,
                        () = pulse.stops() => {}
                    }
                    tokio::select! {
                        _ = &mut stopped => break,
                        () = pulse.returns() => {}
                        () = instead.accept(&listener) => {}
                    }
                }
            }
            drop(open_there);
            instead.end(stop_max).await;
        });
        let mut open = Connections::new(router, self.limits, acceptor);
        tokio::select! {
            () = stop => {}
            () = open.accept(&listener) => {}
        }
        api.stop();
        // Completes only when the drain time is over.
        let _ = timeout(self.drain, open.accept(&listener)).await;
        drop(stopping);
        // It is dropped when the listener is closed there.
        let _ = closed_there.await;
        open.accept_rest(&listener);
        drop(listener);
        // A request that a client has just sent may still be on its way.
        tokio::time::sleep(LAST).await;
        drop(apart);
        tokio::join!(open.end(stop_max), in_reserve.ended());
        Ok(())
    }
}
