//! What the store tells the event log of: see [`crate::store`].

use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_ports::Result;

use crate::Redis;

impl Redis {
    /// Brings the index of who waits for which events in line with an instance that a script
    /// marked as dirty.
    pub(crate) async fn reindex(
        &self,
        _instance: &InstanceId,
        _woken: &mut Vec<ScopeRef>,
    ) -> Result<()> {
        Ok(())
    }
}
