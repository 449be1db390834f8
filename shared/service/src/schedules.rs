//! Schedules, which create instances at certain times.
//!
//! For each workflow, one mark records the starts that have been carried out. If a schedule missed several times while
//! no process ran, it starts one instance afterwards, not one for each time (docs/language.md#decision-43).

use std::sync::Arc;

use swirl_engine::NewInstance;
use swirl_model::Data;
use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_model::time::Timestamp;
use swirl_runtime::Deployed;

use crate::{Error, Service};

const NEVER: Timestamp = Timestamp(0);

struct Due {
    deployed: Arc<Deployed>,
    at: Timestamp,
}

impl Service {
    /// The time at which a schedule creates the next instance.
    pub async fn next_schedule(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.due_schedules().await?.first().map(|due| due.at))
    }

    /// Creates the instances that are due; returns their number.
    pub async fn fire_schedules(&self) -> Result<usize, Error> {
        let mut fired = 0;
        loop {
            let now = self.clock.now();
            let mut due = self.due_schedules().await?;
            due.retain(|due| due.at <= now);
            if due.is_empty() {
                return Ok(fired);
            }
            for due in due {
                self.start_due(&due).await?;
                fired += 1;
            }
        }
    }

    async fn start_due(&self, due: &Due) -> Result<(), Error> {
        let id = due.deployed.id();
        let instance = schedule_id(self, id, due.at);
        match self.registry.get(id).await {
            Ok(definition) => {
                if let Err(error) = self
                    .create(&definition, instance, without_data(), false)
                    .await?
                {
                    tracing::error!(workflow = %id, %error, "a schedule could not start an instance");
                }
            }
            // The other schedules continue.
            Err(error @ Error::Definition { .. }) => {
                tracing::error!(workflow = %id, %error, "a schedule could not start an instance");
            }
            Err(error) => return Err(error),
        }
        let mark = mark_name(&id.workflow);
        let store = self.registry.store();
        Ok(store.set_mark(&mark, self.clock.now()).await?)
    }

    /// The next instant of each schedule of the latest versions, earliest first.
    async fn due_schedules(&self) -> Result<Vec<Due>, Error> {
        let catalog = self.registry.catalog().await?;
        let latest = catalog.latest.iter();
        let all: Vec<&Arc<Deployed>> = latest.filter(|one| one.starts_by_schedule()).collect();
        let names = all.iter().map(|one| &*one.id().workflow);
        let names = names.flat_map(|name| [pause_name(name), mark_name(name)]);
        let names: Vec<String> = names.collect();
        let marks = self.registry.store().marks(&names).await?;
        let (marks, _) = marks.as_chunks::<2>();
        let mut planned = Vec::new();
        for (deployed, [paused, mark]) in all.into_iter().zip(marks) {
            let at = match is_pause(*paused) {
                true => None,
                false => self.next_after(deployed, *mark),
            };
            planned.extend(at.map(|at| Due {
                deployed: deployed.clone(),
                at,
            }));
        }
        planned.sort_by_key(|due| due.at);
        Ok(planned)
    }

    /// Whether the schedule of a workflow is paused.
    ///
    /// # Errors
    /// The store failed.
    pub async fn is_paused(&self, workflow: &str) -> Result<bool, Error> {
        let mark = self.registry.store().mark(&pause_name(workflow)).await?;
        Ok(is_pause(mark))
    }

    /// Pauses the schedule of a workflow in all its versions, or resumes it. Starts that were missed meanwhile are not
    /// made up for.
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

    /// Returns the time of the next instance of this definition's schedule, whether it is paused or
    /// not.
    ///
    /// # Errors
    /// The store failed.
    pub async fn next_of(&self, deployed: &Deployed) -> Result<Option<Timestamp>, Error> {
        let name = mark_name(&deployed.id().workflow);
        let mark = self.registry.store().mark(&name).await?;
        Ok(self.next_after(deployed, mark))
    }

    fn next_after(&self, deployed: &Deployed, mark: Option<Timestamp>) -> Option<Timestamp> {
        let (calendar, deployed_at) = (deployed.calendar.as_ref()?, deployed.deployed_at());
        let after = match mark {
            Some(mark) => mark,
            None if calendar.begins_at_deployment() => Timestamp(deployed_at.0 - 1),
            None => deployed_at,
        };
        let next = calendar.next_after(after, deployed_at)?;
        // Even a short interval is limited: starts that would come sooner are skipped (docs/language.md#decision-43).
        let least = self.registry.rates().limits().schedule_ms;
        Some(match mark {
            Some(mark) => next.max(Timestamp(mark.0.saturating_add(least))),
            None => next,
        })
    }

    /// Runs schedules forever.
    pub async fn run_schedules(&self) {
        loop {
            if let Err(error) = self.fire_schedules().await {
                tracing::warn!(%error, "schedules are late");
            }
            // Definitions may be deployed at any moment: check again soon.
            let soon = Timestamp(self.clock.now().0 + 500);
            let next = self.next_schedule().await.ok().flatten().unwrap_or(soon);
            self.clock.sleep_until(next.min(soon)).await;
        }
    }
}

/// The id of the instance that a schedule starts for an instant. It is derived, so repeated starts give the same
/// instance.
pub(crate) fn schedule_id(service: &Service, id: &DefinitionId, at: Timestamp) -> InstanceId {
    service.derive(&["schedule", &id.workflow, &id.version, &at.0.to_string()])
}

pub(crate) fn without_data() -> NewInstance {
    NewInstance {
        input: Data::object(),
        ..NewInstance::default()
    }
}

/// The mark of a workflow's schedule: one for all its versions.
pub(crate) fn mark_name(workflow: &str) -> String {
    format!("schedule/{workflow}")
}

fn is_pause(mark: Option<Timestamp>) -> bool {
    mark.is_some_and(|since| since != NEVER)
}

/// The mark with the time since when the schedule is paused. The beginning of time means that it isn't paused.
fn pause_name(workflow: &str) -> String {
    format!("schedule-paused/{workflow}")
}
