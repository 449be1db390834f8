//! Schedules: instances that are created by themselves.
//!
//! What has been carried out is kept as one mark for each workflow. A schedule that missed its time
//! while nothing ran fires once on return, not once for each miss (decision 43).

use std::sync::Arc;

use swirl_engine::{Definition, NewInstance};
use swirl_model::Data;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{StateKind, Workflow};

use crate::{Error, Service};

struct Due {
    definition: Arc<Definition>,
    at: Timestamp,
}

impl Service {
    /// When the next instance is to be created by a schedule.
    pub async fn next_schedule(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.next_due().await?.map(|due| due.at))
    }

    /// Creates what is due; returns how many instances that were.
    pub async fn fire_schedules(&self) -> Result<usize, Error> {
        let mut fired = 0;
        while let Some(due) = self.next_due().await? {
            let now = self.clock.now();
            if due.at > now {
                break;
            }
            let id = &due.definition.id;
            let parts = ["schedule", &id.workflow, &id.version, &due.at.0.to_string()];
            let instance = self.derive(&parts);
            let new = NewInstance {
                input: Data::object(),
                ..NewInstance::default()
            };
            if let Err(error) = self.create(&due.definition, instance, new, false).await? {
                tracing::error!(workflow = %id, %error, "a schedule starts nothing");
            }
            self.registry.store().set_mark(&mark_name(id), now).await?;
            fired += 1;
        }
        Ok(fired)
    }

    /// The schedule that is due next, of the latest versions.
    async fn next_due(&self) -> Result<Option<Due>, Error> {
        let catalog = self.registry.catalog().await?;
        let mut next: Option<Due> = None;
        for (definition, deployed_at) in &catalog.latest {
            let Some(schedule) = definition.schedule() else {
                continue;
            };
            // Events start the instances of a workflow that begins with an event state (decision 90).
            let workflow = &definition.workflow;
            let start = workflow[Workflow::ROOT].start;
            if matches!(workflow[start].kind, StateKind::Event(_)) {
                continue;
            }
            let mark = self
                .registry
                .store()
                .mark(&mark_name(&definition.id))
                .await?;
            let after = match mark {
                Some(mark) => mark,
                None if schedule.begins_at_deployment() => Timestamp(deployed_at.0 - 1),
                None => *deployed_at,
            };
            let Some(at) = schedule.next_after(after, *deployed_at) else {
                continue;
            };
            // However often it says: what lies between is missed (decision 43).
            let least = self.registry.rates().limits().schedule_ms;
            let at = match mark {
                Some(mark) => at.max(Timestamp(mark.0.saturating_add(least))),
                None => at,
            };
            if next.as_ref().is_none_or(|found| at < found.at) {
                next = Some(Due {
                    definition: definition.clone(),
                    at,
                });
            }
        }
        Ok(next)
    }

    /// Carries schedules out for ever.
    pub async fn run_schedules(&self) {
        loop {
            if let Err(error) = self.fire_schedules().await {
                tracing::warn!(%error, "schedules are late");
            }
            // Definitions may be deployed at any moment: look again soon.
            let soon = Timestamp(self.clock.now().0 + 500);
            let next = self.next_schedule().await.ok().flatten().unwrap_or(soon);
            self.clock.sleep_until(next.min(soon)).await;
        }
    }
}

/// The mark of a workflow's schedule: one for all its versions.
fn mark_name(id: &DefinitionId) -> String {
    format!("schedule/{}", id.workflow)
}
