//! What the store tells the event log of: see [`crate::store`].

use std::collections::BTreeMap;
use std::sync::Arc;

use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Header;
use swirl_model::scope::StartEvent;
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

    /// Looks after instances that a crash left dirty.
    pub(crate) async fn settle_dirty(
        &self,
        _limit: usize,
        _woken: &mut Vec<ScopeRef>,
    ) -> Result<()> {
        Ok(())
    }

    /// What an instance correlates by that is started by these events.
    pub(crate) async fn begun(
        &self,
        _header: &Header,
        _events: &[StartEvent],
    ) -> Result<BTreeMap<Arc<str>, String>> {
        Ok(BTreeMap::new())
    }

    /// An instance was started by these events: it has had them.
    pub(crate) async fn started(&self, _id: &InstanceId, _events: &[StartEvent]) -> Result<()> {
        Ok(())
    }
}
