//! Workflows whose schedule allows starts only at certain times: start requests outside of them are refused
//! (docs/language.md#decision-42 and #decision-46). The module `schedules` carries out the schedules themselves.

use std::collections::HashSet;

use swirl_engine::Definition;
use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_ports::Trigger;
use swirl_runtime::Catalog;

use crate::{Error, Service};

impl Service {
    /// Returns the reason why this instance cannot be started now. If the instance already exists, it was requested in
    /// time.
    pub(crate) async fn closed(
        &self,
        definition: &Definition,
        id: &InstanceId,
    ) -> Result<Option<WorkflowError>, Error> {
        let Some(schedule) = definition.schedule() else {
            return Ok(None);
        };
        let now = self.clock.now();
        let catalog = self.registry.catalog().await?;
        let deployed = catalog.one(&definition.id);
        let deployed_at = deployed.map_or(now, |deployed| deployed.deployed_at());
        if schedule.allows(now, deployed_at) || self.store.instance(id).await?.is_some() {
            return Ok(None);
        }
        let message = format!(
            "the schedule of '{}' allows no instance to be started now",
            definition.id
        );
        Ok(Some(WorkflowError::new(names::START_REFUSED, message)))
    }

    /// The triggers that may start an instance now, or `None` if all may.
    pub(crate) fn open_triggers(&self, catalog: &Catalog) -> Option<Vec<Trigger>> {
        let now = self.clock.now();
        let closed: HashSet<&DefinitionId> = catalog
            .latest
            .iter()
            .filter(|deployed| {
                let calendar = deployed.calendar.as_ref();
                let since = deployed.deployed_at();
                calendar.is_some_and(|calendar| !calendar.allows_events(now, since))
            })
            .map(|deployed| deployed.id())
            .collect();
        if closed.is_empty() {
            return None;
        }
        let triggers = catalog.triggers.iter();
        let open = triggers.filter(|trigger| !closed.contains(&trigger.definition));
        Some(open.cloned().collect())
    }
}
