//! Batches: one action on many instances, carried out at a bounded rate by any one coordinator at a time.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, stream};
use swirl_engine::Patch;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::{Batch, BatchOrder, BatchOutcome, BatchState, Batches};

use crate::{Action, Error, NotRemoved, Operator, Refusal, Service, Target, draw_name};

/// The default and the highest rate, in instances per second.
pub const RATE: u32 = 50;
pub const RATE_MAX: u32 = 1_000;

/// At most this many instances are kept in the records of ended batches, all batches together. The newest batch is kept
/// even if it alone has more.
const KEPT_INSTANCES_MAX: u64 = 500_000;
/// The interval between two searches for expired batches.
const DROP_MS: u64 = 60_000;

/// How many outcomes are recorded at once, and how many instances are acted on concurrently.
const PART: u32 = 25;
const CONCURRENT: usize = 8;
/// If a carrier is silent for this long, another one takes over its batch.
const LEASE_MS: u64 = 5_000;
/// After this time a carrier looks for other batches.
const TURN_MS: u64 = 2_000;
/// The pause between two searches for batches.
const PAUSE_MS: u64 = 500;

/// The operation that a batch performs on each instance.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    Act(Action),
    /// Move it to this version of its definition.
    Migrate(String),
    /// Remove it, with its history.
    Remove,
}

/// An operation and its options don't fit each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOperation {
    #[error(
        "there is no operation '{0}'; they are cancel, retry, skip, rerun, suspend, resume, migrate and \
         remove"
    )]
    Unknown(String),
    #[error("'skip' needs 'result': the JSON that is used as the result of the failed action")]
    NoResult,
    #[error("'rerun' needs 'state': the name of the state at which the instances continue")]
    NoState,
    #[error("'migrate' needs 'version': the version that the instances are moved to")]
    NoVersion,
    #[error("'{operation}' takes no '{option}', which is for {of}")]
    Surplus {
        operation: String,
        option: &'static str,
        /// The operations that take it.
        of: String,
    },
    #[error("'patch' is not a jq expression over the state data: {0}")]
    Patch(String),
}

impl Operation {
    /// Reads the operation from an order.
    ///
    /// # Errors
    /// The order has options of another operation, or lacks one that its operation needs.
    pub fn of(order: &BatchOrder) -> Result<Operation, BadOperation> {
        let (word, result, state) = (&*order.operation, &order.result, &order.state);
        let options: [(&str, bool, &[&str]); 4] = [
            ("result", result.is_some(), &["skip"]),
            ("state", state.is_some(), &["rerun"]),
            ("patch", order.patch.is_some(), &["retry", "rerun"]),
            ("version", order.version.is_some(), &["migrate"]),
        ];
        let surplus = options
            .into_iter()
            .find(|(_, given, of)| *given && !of.contains(&word));
        if let Some((option, _, of)) = surplus {
            return Err(BadOperation::Surplus {
                operation: word.chars().take(100).collect(),
                option,
                of: of
                    .iter()
                    .map(|one| format!("'{one}'"))
                    .collect::<Vec<_>>()
                    .join(" and "),
            });
        }
        if let Some(patch) = &order.patch {
            Patch::compile(patch).map_err(BadOperation::Patch)?;
            let state = match word {
                "rerun" => Some(state.clone().ok_or(BadOperation::NoState)?),
                _ => None,
            };
            let patch = patch.clone();
            return Ok(Operation::Act(Action::Patch { state, patch }));
        }
        Ok(Operation::Act(match word {
            "cancel" => Action::Cancel,
            "suspend" => Action::Suspend,
            "resume" => Action::Resume,
            "retry" => Action::Retry,
            "skip" => Action::Skip(result.clone().ok_or(BadOperation::NoResult)?),
            "rerun" => Action::Rerun(state.clone().ok_or(BadOperation::NoState)?),
            "migrate" => {
                let version = order.version.clone().filter(|version| !version.is_empty());
                return version
                    .map(Operation::Migrate)
                    .ok_or(BadOperation::NoVersion);
            }
            "remove" => return Ok(Operation::Remove),
            other => {
                let word = other.chars().take(100).collect();
                return Err(BadOperation::Unknown(word));
            }
        }))
    }
}

/// The limits of batches.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The maximum number of running batches. It must be below the number of marks that an instance keeps.
    pub active: usize,
    /// The maximum number of instances in one batch.
    pub instances: usize,
    /// The number of instances that are examined for matches.
    pub examined: usize,
    /// How long ended batches are kept, and how many of them at most.
    pub kept_for: Duration,
    pub kept: usize,
}

impl Default for BatchLimits {
    fn default() -> BatchLimits {
        BatchLimits {
            active: 10,
            instances: 50_000,
            examined: 200_000,
            kept_for: Duration::from_secs(30 * 24 * 3_600),
            kept: 100,
        }
    }
}

/// The batches with everything that their execution needs.
#[derive(Clone)]
pub struct Batching {
    pub service: Service,
    pub store: Arc<dyn Batches>,
    pub limits: BatchLimits,
}

impl Batching {
    /// Runs batches forever. All processes that do so share the work.
    pub async fn run(&self) {
        let carrier = draw_name();
        let mut drop_at = Timestamp(i64::MIN);
        loop {
            let carried = self.turn(&carrier).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "batches are late");
                false
            });
            let now = self.service.clock.now();
            if now >= drop_at {
                drop_at = now.plus_ms(DROP_MS);
                if let Err(error) = self.drop_old(now).await {
                    tracing::warn!(%error, "old batches are kept for longer");
                }
            }
            if !carried {
                self.service.clock.sleep_until(now.plus_ms(PAUSE_MS)).await;
            }
        }
    }

    /// Takes the batches that no other process is carrying out, and works on them for a while. Returns false if there
    /// were none.
    async fn turn(&self, carrier: &str) -> Result<bool, Error> {
        let mut active = self.store.active_batches().await?;
        active.retain(|batch| batch.state == BatchState::Running);
        let turns = active.into_iter().map(async |batch| {
            let id = batch.order.id.clone();
            self.carry(carrier, batch).await.unwrap_or_else(|error| {
                tracing::warn!(batch = id, %error, "a batch is late");
                false
            })
        });
        Ok(join_all(turns).await.contains(&true))
    }

    /// Carries out a batch until it has ended or the turn is over. Returns false if another process has the batch or if
    /// it cannot be carried out now.
    async fn carry(&self, carrier: &str, mut batch: Batch) -> Result<bool, Error> {
        let clock = &self.service.clock;
        let until = clock.now().plus_ms(TURN_MS);
        let order = batch.order.clone();
        while batch.state == BatchState::Running {
            let now = clock.now();
            let leased = self.store.lease_batch(&order.id, carrier, now, LEASE_MS);
            if !leased.await? {
                return Ok(false);
            }
            if now >= until {
                break;
            }
            let from = batch.counts.all();
            let size = (order.rate / 4).clamp(1, PART);
            let items = self.store.batch_items(&order.id, from, size).await?;
            let count = items.len() as u64;
            let outcomes: Vec<BatchOutcome> = stream::iter(items)
                .map(|item| self.act(&order, item.instance))
                .buffered(CONCURRENT)
                .try_collect()
                .await?;
            let recorded = self
                .store
                .record_outcomes(&order.id, from, &outcomes, clock.now());
            let Some(after) = recorded.await? else {
                break;
            };
            if after.counts.all() <= from {
                // Another process has recorded other outcomes meanwhile: start over.
                return Ok(false);
            }
            batch = after;
            if batch.state == BatchState::Running {
                let pause = count * 1_000 / u64::from(order.rate.max(1));
                clock.sleep_until(now.plus_ms(pause)).await;
            }
        }
        if batch.state == BatchState::Completed {
            let counts = &batch.counts;
            tracing::info!(
                batch = order.id,
                done = counts.done,
                refused = counts.refused,
                failed = counts.failed,
                "a batch has ended"
            );
        }
        Ok(true)
    }

    /// Acts on one instance. A retryable error is returned; it is not an outcome.
    async fn act(&self, order: &BatchOrder, id: InstanceId) -> Result<BatchOutcome, Error> {
        let operator = Operator {
            name: order.by.clone(),
            reason: order.reason.clone(),
            batch: Some(order.id.clone()),
        };
        let done = match Operation::of(order) {
            Ok(Operation::Act(action)) => {
                let done = self
                    .service
                    .operate_once(&id, &order.id, &action, &operator);
                done.await.map(|done| match done {
                    Ok(()) => BatchOutcome::Done,
                    Err(unfit) => refused(unfit.into()),
                })
            }
            Ok(Operation::Migrate(version)) => {
                let target = Target {
                    version: &version,
                    state: None,
                    mark: Some(&order.id),
                };
                let done = self.service.migrate(&id, target, &operator);
                done.await.map(|done| match done {
                    Ok(_) => BatchOutcome::Done,
                    Err(unfit) => refused(unfit.into()),
                })
            }
            Ok(Operation::Remove) => self.remove(&id, &operator).await,
            Err(bad) => Ok(BatchOutcome::Failed {
                detail: bad.to_string(),
            }),
        };
        match done {
            Err(Error::Store(error)) if error.is_retryable() => Err(error.into()),
            Err(error) => Ok(BatchOutcome::Failed {
                detail: error.to_string(),
            }),
            Ok(outcome) => Ok(outcome),
        }
    }

    /// An instance that no longer exists counts as removed: perhaps this batch removed it and its carrier died before
    /// it recorded that.
    async fn remove(&self, id: &InstanceId, operator: &Operator) -> Result<BatchOutcome, Error> {
        let Some(instance) = self.service.store.instance(id).await? else {
            return Ok(BatchOutcome::Done);
        };
        let removed = self.service.remove(&instance, operator).await?;
        Ok(match removed {
            Ok(()) | Err(NotRemoved::Unknown) => BatchOutcome::Done,
            Err(reason) => refused(reason.refusal(id)),
        })
    }

    /// Drops expired batches, and the oldest ones beyond the limits.
    async fn drop_old(&self, now: Timestamp) -> Result<(), Error> {
        let (mut kept, mut instances) = (0, 0);
        let kept_ms = i64::try_from(self.limits.kept_for.as_millis()).unwrap_or(i64::MAX);
        for batch in self.store.batches().await? {
            let Some(ended_at) = batch.ended_at else {
                continue;
            };
            kept += 1;
            instances += u64::from(batch.order.matched);
            let is_old = now.0.saturating_sub(ended_at.0) > kept_ms;
            if is_old || kept > self.limits.kept || kept > 1 && instances > KEPT_INSTANCES_MAX {
                self.store.drop_batch(&batch.order.id).await?;
            }
        }
        Ok(())
    }
}

fn refused(refusal: Refusal) -> BatchOutcome {
    BatchOutcome::Refused {
        code: refusal.code.to_owned(),
        detail: refusal.reason,
    }
}
