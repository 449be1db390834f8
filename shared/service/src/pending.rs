//! Starts by other instances that wait for the rates of their workflow ([`swirl_runtime::StartLimits`]). They stay in the
//! outboxes of their instances, so their number has a limit; beyond it they are refused.

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::event::{Event, HistoryEntry, StartInstance};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::time::Timestamp;
use swirl_ports::{PendingStart, PendingStartsMax};

use crate::start::RUNAWAY;
use crate::{Error, Service};

/// A start that is younger was not put off by another process: every start is tried once when its commit is done, and
/// again by the reconciler, seconds later.
const PUT_OFF_MS: i64 = 250;

/// Whether the start counts if it has to wait. An action that waits for it is a bound of its own, unless it belongs to a
/// tree of instances that is deep.
pub(crate) fn is_counted(start: &StartInstance) -> bool {
    let is_awaited = start.parent.as_ref().is_some_and(|link| !link.detached);
    !is_awaited || start.hops >= RUNAWAY || u32::from(start.depth) >= RUNAWAY
}

impl Service {
    /// Counts a start that has to wait.
    ///
    /// # Errors
    /// Inside: too many wait, and it is to be refused. Outside: those of the store.
    pub(crate) async fn wait_for_rate(
        &self,
        start: PendingStart<'_>,
    ) -> Result<Result<(), WorkflowError>, Error> {
        let rates = self.registry.rates();
        let (max, now) = (rates.limits().pending, self.clock.now());
        if max == PendingStartsMax::default() || rates.put_off().is_recorded(start.id, now) {
            return Ok(Ok(()));
        }
        if self.store.add_pending_start(start, max, now).await? {
            rates.put_off().record(start.id, now);
            return Ok(Ok(()));
        }
        rates.put_off().refuse();
        let message = format!(
            "too many instances of '{}' wait to be started by other instances",
            start.workflow
        );
        Ok(Err(WorkflowError::new(names::LIMIT_EXCEEDED, message)))
    }

    /// A start that was made at `since` has been carried out, or is not needed any more.
    pub(crate) async fn waits_no_longer(
        &self,
        start: PendingStart<'_>,
        since: Timestamp,
    ) -> Result<(), Error> {
        let rates = self.registry.rates();
        if rates.limits().pending == PendingStartsMax::default() {
            return Ok(());
        }
        let age = self.clock.now().0.saturating_sub(since.0);
        if rates.put_off().forget(start.id) || age >= PUT_OFF_MS {
            self.store.remove_pending_start(start).await?;
        }
        Ok(())
    }

    /// The history of the instance that would have started another one says why there is none.
    pub(crate) async fn note_refused(
        &self,
        instance: &InstanceId,
        workflow: &str,
        error: &WorkflowError,
    ) {
        let entry = HistoryEntry {
            at: self.clock.now(),
            scope: ScopeId::root(),
            event: Event::StartRefused {
                workflow: workflow.into(),
                error: error.clone(),
            },
            data: None,
            data_until: None,
        };
        if let Err(error) = self.store.note(instance, entry).await {
            tracing::warn!(%instance, %error, "that nothing was started is missing in the history");
        }
    }
}
