//! Schedules as people see and control them: their next starts, a start out of turn, and the starts
//! of a past period.

use std::sync::Arc;

use swirl_engine::Definition;
use swirl_model::WorkflowError;
use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_model::time::Timestamp;
use swirl_ports::Created;

use crate::schedules::{schedule_id, scheduled, without_data};
use crate::{Error, Service};

/// The maximum number of instances that one request starts for a past period.
pub const BACKFILL_MAX: usize = 1000;

/// The schedule of a workflow's latest version.
#[derive(Debug, Clone)]
pub struct Planned {
    pub definition: DefinitionId,
    /// As the definition has it.
    pub schedule: swirl_model::workflow::Schedule,
    /// The next starts, soonest first, whether it is paused or not. There are none if events start the
    /// instances, or if the schedule only says when a client may start one.
    pub next: Vec<Timestamp>,
    pub paused: bool,
    /// The workflow begins with events, so its schedule starts nothing (docs/language.md#decision-90).
    pub by_events: bool,
}

/// The outcome of one start.
#[derive(Debug, Clone)]
pub struct Filled {
    /// The instant in the schedule.
    pub at: Timestamp,
    pub instance: InstanceId,
    /// No instance had been started for this instant before.
    pub new: bool,
}

/// The reason why a schedule isn't carried out for a past period.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotFilled {
    #[error("'from' must be before 'to'")]
    Empty,
    #[error(
        "'to' is in the future: the schedule itself starts the instances that are still to come"
    )]
    Future,
    #[error("the schedule has more than {BACKFILL_MAX} starts in this time: ask for a shorter one")]
    TooMany,
    /// The definition requires input data.
    #[error("{0}")]
    Refused(WorkflowError),
}

impl Service {
    /// Returns the schedules of the latest versions, each with up to `count` starts. The result has up to `limit`
    /// workflows in the order of their ids, beginning after the given id.
    ///
    /// # Errors
    /// The store failed.
    pub async fn planned(
        &self,
        count: usize,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Planned>, Error> {
        let catalog = self.registry.catalog().await?;
        let scheduled = catalog.latest.iter().filter_map(|deployed| {
            let calendar = deployed.calendar.as_ref()?;
            let schedule = deployed.head.interests.schedule.as_ref()?;
            let is_behind = after.is_none_or(|after| *deployed.id().workflow > *after);
            is_behind.then_some((deployed, calendar, schedule))
        });
        let mut scheduled: Vec<_> = scheduled.collect();
        scheduled.sort_by_key(|(deployed, ..)| deployed.id().workflow.clone());
        scheduled.truncate(limit);
        let mut all = Vec::new();
        for (deployed, calendar, schedule) in scheduled {
            let by_events = !deployed.starts_by_schedule();
            let mut next = Vec::new();
            let mut at = match by_events {
                true => None,
                false => self.next_of(deployed).await?,
            };
            while let Some(found) = at.filter(|_| next.len() < count) {
                next.push(found);
                at = calendar.next_after(found, deployed.deployed_at());
            }
            all.push(Planned {
                definition: deployed.id().clone(),
                schedule: schedule.clone(),
                next,
                paused: self.is_paused(&deployed.id().workflow).await?,
                by_events,
            });
        }
        Ok(all)
    }

    /// Starts the schedule's instances now, in addition to its times. Repeating the request starts nothing.
    ///
    /// # Errors
    /// The store failed.
    pub async fn fire_now(
        &self,
        definition: &Arc<Definition>,
        request: &str,
    ) -> Result<Result<(InstanceId, bool), WorkflowError>, Error> {
        let id = self.derive(&["fired", &definition.id.workflow, request]);
        let created = self
            .create(definition, id.clone(), without_data(), false)
            .await?;
        Ok(created.map(|created| (id, created == Created::New)))
    }

    /// Starts the instances that the schedule had from `from` until before `to`. It skips starts that already have an
    /// instance, as long as those instances are kept. With `dry_run` no instance is started.
    ///
    /// # Errors
    /// The store failed, or starts exceed their rate: a repeated request continues.
    pub async fn backfill(
        &self,
        definition: &Arc<Definition>,
        (from, to): (Timestamp, Timestamp),
        dry_run: bool,
    ) -> Result<Result<Vec<Filled>, NotFilled>, Error> {
        if from >= to {
            return Ok(Err(NotFilled::Empty));
        }
        if to > self.clock.now() {
            return Ok(Err(NotFilled::Future));
        }
        let id = &definition.id;
        let record = self.registry.store().get(id).await?;
        let deployed_at = record.map_or(from, |record| record.deployed_at);
        let mut times = Vec::new();
        let mut after = Timestamp(from.0.saturating_sub(1));
        while let Some(calendar) = definition.schedule()
            && let Some(at) = calendar.next_after(after, deployed_at)
            && at < to
        {
            if times.len() == BACKFILL_MAX {
                return Ok(Err(NotFilled::TooMany));
            }
            times.push(at);
            after = at;
        }
        let mut filled = Vec::with_capacity(times.len());
        for at in times {
            let instance = schedule_id(self, id, at);
            let new = if dry_run {
                self.store.instance(&instance).await?.is_none()
            } else {
                let created = self.create(definition, instance.clone(), scheduled(at), false);
                match created.await? {
                    Ok(created) => created == Created::New,
                    Err(refused) => return Ok(Err(NotFilled::Refused(refused))),
                }
            };
            filled.push(Filled { at, instance, new });
        }
        Ok(Ok(filled))
    }
}
