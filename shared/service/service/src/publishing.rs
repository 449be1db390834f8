//! Effects in a cluster: produced events also leave the system.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_ports::{Error as StoreError, EventBus};
use swirl_runtime::Effects;

use crate::{Error, Service};

/// A produced event first reaches the waiting scopes of this system, through the store; then it is published for
/// everybody. So instances lose nothing if the event bus loses events.
pub struct PublishingEffects {
    service: Service,
    bus: Arc<dyn EventBus>,
}

impl PublishingEffects {
    pub fn new(service: Service, bus: Arc<dyn EventBus>) -> PublishingEffects {
        PublishingEffects { service, bus }
    }
}

#[async_trait]
impl Effects for PublishingEffects {
    async fn carry_out(&self, instance: &InstanceId, command: &Command) -> Result<(), Error> {
        self.service.carry_out(instance, command).await?;
        let Command::Publish(event) = command else {
            return Ok(());
        };
        match self.bus.publish(event).await {
            Err(error @ StoreError::TooLarge { .. }) => {
                // Retrying would never help, and would go on forever. The engine produces no event that is too large,
                // but the server's limit may have been lowered since.
                tracing::error!(%instance, %error, "a produced event cannot be published");
                Ok(self.bus.bury(event, &error.to_string()).await?)
            }
            published => Ok(published?),
        }
    }
}
