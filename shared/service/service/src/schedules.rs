//! Schedules, which create instances at certain times.
//!
//! For each workflow, one mark records the starts that have been carried out: it is the instant of the last one, as the
//! schedule has it, whenever it was carried out. So the times don't drift. If a schedule missed several times while no
//! process ran, it starts one instance afterwards, not one for each time (docs/language.md#decision-43).
//!
//! The mark is for all versions of the workflow, but a version has only those times that came after it was deployed, and
//! while it is the latest one.

use std::sync::Arc;

use swirl_engine::NewInstance;
use swirl_model::Data;
use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_model::time::Timestamp;
use swirl_runtime::Deployed;

use crate::{Error, Service};

const NEVER: Timestamp = Timestamp(0);

/// The maximum number of missed times that are counted one by one.
const MISSED_MAX: usize = 10_000;

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
        let store = self.registry.store();
        let mark = mark_name(&id.workflow);
        // If this process stood still, others may have carried out this start and later ones. The instance has the same
        // id, but it may have been removed meanwhile.
        if store.mark(&mark).await?.is_some_and(|done| done >= due.at) {
            return Ok(());
        }
        let instance = schedule_id(self, id, due.at);
        let new = scheduled(due.at);
        let failure = match self.registry.get(id).await {
            Ok(definition) => {
                let created = self.create(&definition, instance, new, false).await?;
                created.err().map(|error| error.to_string())
            }
            // The other schedules continue.
            Err(error @ Error::Definition { .. }) => Some(error.to_string()),
            Err(error) => return Err(error),
        };
        if let Some(error) = failure {
            tracing::error!(workflow = %id, error, "a schedule could not start an instance");
            // There is no instance whose end the next one could follow.
            let calendar = due.deployed.calendar.as_ref();
            if let Some(delay) = calendar.and_then(|calendar| calendar.after_end()) {
                let at = delay.add_to(self.clock.now());
                self.follow_end(id, at.max(Timestamp(due.at.0 + 1))).await?;
            }
        }
        let done = last_passed(&due.deployed, due.at, self.clock.now());
        Ok(store.advance_mark(&mark, done).await?)
    }

    /// The next instant of each schedule of the latest versions, earliest first.
    async fn due_schedules(&self) -> Result<Vec<Due>, Error> {
        let catalog = self.registry.catalog().await?;
        let latest = catalog.latest.iter();
        let all: Vec<&Arc<Deployed>> = latest.filter(|one| one.starts_by_schedule()).collect();
        let names = all.iter().map(|one| &*one.id().workflow);
        let names = names.zip(&all).flat_map(|(name, one)| {
            let end = end_name(one.id());
            [pause_name(name), mark_name(name), end]
        });
        let names: Vec<String> = names.collect();
        let marks = self.registry.store().marks(&names).await?;
        let (marks, _) = marks.as_chunks::<3>();
        let mut planned = Vec::new();
        for (deployed, [paused, mark, end]) in all.into_iter().zip(marks) {
            let since = catalog.latest_since(deployed);
            let at = match is_pause(*paused) {
                true => None,
                false => self.next_after(deployed, since, (*mark, *end)),
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
        // The end of an instance meanwhile is no start that was missed.
        let catalog = self.registry.catalog().await?;
        let mut latest = catalog.latest.iter();
        let latest = latest.find(|one| *one.id().workflow == *workflow);
        let follows = latest.is_some_and(|one| follows_ends(one));
        if !on && !follows && self.is_paused(workflow).await? {
            store.advance_mark(&mark_name(workflow), now).await?;
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
        let id = deployed.id();
        let names = [mark_name(&id.workflow), end_name(id)];
        let marks = self.registry.store().marks(&names).await?;
        let marks = (
            marks.first().copied().flatten(),
            marks.get(1).copied().flatten(),
        );
        let catalog = self.registry.catalog().await?;
        Ok(self.next_after(deployed, catalog.latest_since(deployed), marks))
    }

    /// Records that an instance of the schedule has ended, whose next one begins at this instant. If that is repeated, it
    /// changes nothing.
    pub(crate) async fn follow_end(&self, id: &DefinitionId, at: Timestamp) -> Result<(), Error> {
        let store = self.registry.store();
        Ok(store.advance_mark(&end_name(id), at).await?)
    }

    /// `since`: a newer version was the latest one until then. `end`: the start that follows the last end of an instance.
    fn next_after(
        &self,
        deployed: &Deployed,
        since: Option<Timestamp>,
        (mark, end): (Option<Timestamp>, Option<Timestamp>),
    ) -> Option<Timestamp> {
        let (calendar, deployed_at) = (deployed.calendar.as_ref()?, deployed.deployed_at());
        if calendar.after_end().is_some() {
            let first = since.map_or(deployed_at, |since| since.max(deployed_at));
            let least = self.registry.rates().limits().schedule_ms.max(1);
            return match mark.filter(|mark| *mark >= first) {
                Some(mark) => {
                    let end = end.filter(|end| *end > mark)?;
                    Some(end.max(Timestamp(mark.0.saturating_add(least))))
                }
                None => Some(first),
            };
        }
        let begin = match calendar.begins_at_deployment() {
            true => Timestamp(deployed_at.0 - 1),
            false => deployed_at,
        };
        // Even a short interval is limited: starts that would come sooner are skipped (docs/language.md#decision-43).
        let least = self.registry.rates().limits().schedule_ms.max(1);
        let free = mark.map(|mark| Timestamp(mark.0.saturating_add(least - 1)));
        let after = [Some(begin), since, free].into_iter().flatten().max()?;
        calendar.next_after(after, deployed_at)
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

/// The last time of a schedule that has come, beginning with one that has.
fn last_passed(deployed: &Deployed, first: Timestamp, now: Timestamp) -> Timestamp {
    if follows_ends(deployed) {
        return first;
    }
    let next = |at: &Timestamp| {
        let calendar = deployed.calendar.as_ref()?;
        calendar.next_after(*at, deployed.deployed_at())
    };
    let mut passed = std::iter::successors(Some(first), next).take_while(|at| *at <= now);
    let last = passed.by_ref().take(MISSED_MAX).last().unwrap_or(first);
    match passed.next() {
        Some(_) => now,
        None => last,
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

/// An instance for an instant of its schedule.
pub(crate) fn scheduled(at: Timestamp) -> NewInstance {
    NewInstance {
        scheduled_at: Some(at),
        ..without_data()
    }
}

/// The mark of a workflow's schedule: one for all its versions.
pub(crate) fn mark_name(workflow: &str) -> String {
    format!("schedule/{workflow}")
}

/// The mark with the instant of the start that follows the last end of an instance of this definition.
fn end_name(id: &DefinitionId) -> String {
    format!("schedule-end/{}/{}", id.workflow, id.version)
}

/// Whether each start follows the end of the instance before.
fn follows_ends(deployed: &Deployed) -> bool {
    let calendar = deployed.calendar.as_ref();
    calendar.is_some_and(|calendar| calendar.after_end().is_some())
}

fn is_pause(mark: Option<Timestamp>) -> bool {
    mark.is_some_and(|since| since != NEVER)
}

/// The mark with the time since when the schedule is paused. The beginning of time means that it isn't paused.
fn pause_name(workflow: &str) -> String {
    format!("schedule-paused/{workflow}")
}
