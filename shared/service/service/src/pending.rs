//! Starts by other instances that wait for the rate limits of their workflow ([`swirl_runtime::StartLimits`]). They
//! stay in the outboxes of those instances. Their number is limited; further starts are refused.

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::event::{Event, HistoryEntry, StartInstance};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::time::Timestamp;
use swirl_ports::{PendingStart, PendingStartsMax};

use crate::start::RUNAWAY;
use crate::{Error, Service};

/// No other process has deferred a start that is younger than this: each start is tried once when its commit is done,
/// and again by the reconciler seconds later.
const PUT_OFF_MS: i64 = 250;

/// Whether a start counts towards the limit while it waits. If an action waits for it, that bounds their number, unless
/// the start belongs to a deep tree of instances.
pub(crate) fn is_counted(start: &StartInstance) -> bool {
    let is_awaited = start.parent.as_ref().is_some_and(|link| !link.detached);
    !is_awaited || start.hops >= RUNAWAY || u32::from(start.depth) >= RUNAWAY
}

impl Service {
    /// Counts a start that has to wait.
    ///
    /// # Errors
    /// The inner error: too many starts are waiting, so this one is refused. The outer error: the store failed.
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

    /// Uncounts a start that was requested at `since`, because it has been carried out or is no longer needed.
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

    /// Records in the history of the requesting instance why no instance was started.
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
            tracing::warn!(%instance, %error, "the history doesn't record that no instance was started");
        }
    }
}
