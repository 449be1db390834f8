//! What a coordinator listens on. It listens before it has connected to Redis and NATS.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use swirl_config::Coordinator;
use swirl_http_server::Acceptor;
use tokio::net::TcpListener;

use crate::server::Tls;

pub struct Listeners {
    pub api: TcpListener,
    /// Only for health and metrics.
    pub health: Option<TcpListener>,
    pub tls: Option<Arc<Tls>>,
}

impl Listeners {
    /// # Errors
    /// An address is taken, or the certificate cannot be used.
    pub async fn bind(settings: &Coordinator) -> Result<Listeners> {
        let tls = settings.tls.as_ref();
        let tls = tls.map(|(cert, key)| Tls::load(cert, key));
        Ok(Listeners {
            api: bind(settings.listen).await?,
            health: match settings.health_listen {
                Some(at) => Some(bind(at).await?),
                None => None,
            },
            tls: tls
                .transpose()
                .context("coordinator.tls_cert")?
                .map(Arc::new),
        })
    }

    /// Does `work`. Meanwhile the process is alive, and not ready.
    pub async fn starting<T>(&self, work: impl Future<Output = T>) -> T {
        let mut listeners = vec![(&self.api, self.tls.as_ref().map(acceptor))];
        listeners.extend(self.health.as_ref().map(|health| (health, None)));
        swirl_http_server::starting(&listeners, work).await
    }
}

fn acceptor(tls: &Arc<Tls>) -> Acceptor {
    let tls = tls.clone();
    Arc::new(move || tls.acceptor())
}

async fn bind(at: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(at).await;
    bound.with_context(|| format!("cannot listen on {at}"))
}
