//! Schedules: instances that are created by themselves.
//!
//! What has been carried out is kept as one mark for each workflow. A schedule that missed its time
//! while nothing ran fires once on return, not once for each miss (decision 43).

use std::sync::Arc;

use swirl_engine::{Definition, NewInstance};
use swirl_model::Data;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{StateKind, Workflow};

use crate::{Error, Service};

const NEVER: Timestamp = Timestamp(0);

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
            self.registry
                .store()
                .set_mark(&mark_name(&id.workflow), now)
                .await?;
            fired += 1;
        }
        Ok(fired)
    }

    /// The schedule that is due next, of the latest versions.
    async fn next_due(&self) -> Result<Option<Due>, Error> {
        let catalog = self.registry.catalog().await?;
        let mut next: Option<Due> = None;
        for (definition, deployed_at) in &catalog.latest {
            if definition.schedule().is_none() {
                continue;
            }
            // Events start the instances of a workflow that begins with an event state (decision 90).
            let workflow = &definition.workflow;
            let start = workflow[Workflow::ROOT].start;
            if matches!(workflow[start].kind, StateKind::Event(_)) {
                continue;
            }
            if self.is_paused(&definition.id.workflow).await? {
                continue;
            }
            let Some(at) = self.next_of(definition, *deployed_at).await? else {
                continue;
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

    /// Whether the schedule of a workflow is paused.
    ///
    /// # Errors
    /// The store failed.
    pub async fn is_paused(&self, workflow: &str) -> Result<bool, Error> {
        let mark = self.registry.store().mark(&pause_name(workflow)).await?;
        Ok(mark.is_some_and(|since| since != NEVER))
    }

    /// Pauses the schedule of a workflow, in all its versions, or lets it go on: then what it missed
    /// meanwhile isn't made up for.
    ///
    /// # Errors
    /// The store failed.
    pub async fn pause_schedule(&self, workflow: &str, on: bool) -> Result<(), Error> {
        let store = self.registry.store();
        let now = self.clock.now();
        if !on && self.is_paused(workflow).await? {
            store.set_mark(&mark_name(workflow), now).await?;
        }
        let mark = if on { now } else { NEVER };
        store.set_mark(&pause_name(workflow), mark).await?;
        Ok(())
    }

    /// When the schedule of this definition creates its next instance, paused or not.
    ///
    /// # Errors
    /// The store failed.
    pub async fn next_of(
        &self,
        definition: &Definition,
        deployed_at: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        let Some(schedule) = definition.schedule() else {
            return Ok(None);
        };
        let name = mark_name(&definition.id.workflow);
        let mark = self.registry.store().mark(&name).await?;
        let after = match mark {
            Some(mark) => mark,
            None if schedule.begins_at_deployment() => Timestamp(deployed_at.0 - 1),
            None => deployed_at,
        };
        let next = schedule.next_after(after, deployed_at);
        // However short its interval is: instances that would start sooner are missed (decision 43).
        let least = self.registry.rates().limits().schedule_ms;
        Ok(next.map(|at| match mark {
            Some(mark) => at.max(Timestamp(mark.0.saturating_add(least))),
            None => at,
        }))
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
pub(crate) fn mark_name(workflow: &str) -> String {
    format!("schedule/{workflow}")
}

/// The mark that says since when the schedule is paused; the beginning of time: it isn't.
fn pause_name(workflow: &str) -> String {
    format!("schedule-paused/{workflow}")
}
