//! What has become of an instance that a batch acted on.

use futures::future::BoxFuture;
use swirl_api::batches::BatchAfterwards;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_model::scope::{ActionStep, Scope, Work};
use swirl_model::time::Timestamp;
use swirl_ports::Counts;
use swirl_presentation::place::is_waiting;

use super::problem::Problem;
use super::{Api, counts};

/// An instance that waits only for a time this near is still at work: it probably retries.
const SOON_MS: u64 = 5_000;
/// How many levels of sub-workflows are looked at.
const DEPTH_MAX: usize = 20;

/// The instances that a batch acted on, by what they are now.
#[derive(Debug, Default)]
pub struct Aftermath {
    counts: Counts,
    others: BatchAfterwards,
}

impl Aftermath {
    pub async fn add(
        &mut self,
        api: &Api,
        operation: &str,
        id: &InstanceId,
        status: Option<Status>,
    ) -> Result<(), Problem> {
        self.others.counted += 1;
        let Some(status) = status else {
            self.others.gone += 1;
            return Ok(());
        };
        *self.counts.of(status) += 1;
        let continues = ["retry", "skip", "rerun", "resume"].contains(&operation);
        match status {
            Status::Faulted if continues => match api.service.is_ordered(id).await? {
                true => self.others.pending += 1,
                false => self.others.failed_again += 1,
            },
            Status::Running if operation == "cancel" => self.others.pending += 1,
            Status::Running => match rests(api, id.clone(), 0).await? {
                true => self.others.waiting += 1,
                // Other operations take effect at once, and the instance goes its way.
                false => self.others.pending += u32::from(continues),
            },
            _ => {}
        }
        Ok(())
    }

    /// `complete`: all instances of the batch were counted. `ended`: the batch has ended.
    pub fn shown(self, complete: bool, ended: bool) -> BatchAfterwards {
        BatchAfterwards {
            counts: counts::shown(self.counts),
            complete,
            settled: ended && self.others.pending == 0,
            ..self.others
        }
    }
}

/// Whether an instance does nothing by itself: it has ended, is suspended, or waits for something outside.
fn rests(api: &Api, id: InstanceId, depth: usize) -> BoxFuture<'_, Result<bool, Problem>> {
    Box::pin(async move {
        let Some((instance, scopes)) = api.queries.view(&id).await? else {
            return Ok(true);
        };
        if instance.state.status.ended() || instance.state.suspended {
            return Ok(true);
        }
        let children = api.service.awaited_by(&instance).await?;
        let mut waits = scopes.len() > 1 || !children.is_empty();
        let soon = api.service.clock.now().plus_ms(SOON_MS);
        for scope in &scopes {
            if !awaits_others(scope, !children.is_empty()) {
                if !scope.ended() && !is_at_rest(scope, soon) {
                    return Ok(false);
                }
                waits = true;
            }
        }
        if depth < DEPTH_MAX {
            for child in children {
                if !rests(api, child, depth + 1).await? {
                    return Ok(false);
                }
            }
        }
        Ok(waits)
    })
}

/// Whether a scope waits for its branches or for a sub-workflow, which are looked at themselves.
fn awaits_others(scope: &Scope, has_children: bool) -> bool {
    let is_subflow = |scope: &Scope| {
        let step = scope.list().map(|run| &run.step);
        matches!(step, Some(ActionStep::Subflow { .. }))
    };
    let work = scope.position().map(|position| &position.work);
    scope.fault.is_none()
        && (matches!(work, Some(Work::Fork(_))) || has_children && is_subflow(scope))
}

fn is_at_rest(scope: &Scope, soon: Timestamp) -> bool {
    scope.fault.is_some() || is_waiting(scope) && scope.timers.iter().all(|timer| timer.due > soon)
}
