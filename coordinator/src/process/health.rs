//! Tells the API how Redis and NATS are.

use futures::FutureExt;
use futures::future::BoxFuture;
use swirl_connections::Servers;
use swirl_ports::{Error, Result};

use super::watch::Backlogs;
use crate::api::Health;

pub struct ClusterHealth {
    pub servers: Servers,
    pub backlogs: Backlogs,
}

impl Health for ClusterHealth {
    fn limited(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        async {
            if let Some(reason) = self.servers.look().await.redis {
                return Err(Error::Unavailable(reason));
            }
            let mut limited = self.servers.limited().await;
            limited.append(&mut self.backlogs.stalled());
            Ok(limited)
        }
        .boxed()
    }

    fn beyond_recovery(&self) -> Option<String> {
        self.servers.beyond_recovery()
    }
}
