//! The reconciler: an incremental sweep that finds scopes which should be running and are not, after a lost message, a
//! dead worker or a crash between a commit and its effects.

use std::time::Duration;

use futures::future::join;
use swirl_model::time::Timestamp;
use swirl_runtime::{Effects, flush};

use crate::{Error, Service};

/// The number of scopes that a sweep takes at a time.
const SWEEP_MAX: usize = 10_000;
/// The number of pending effects that a sweep takes at a time: they are carried out one after another.
const EFFECTS_MAX: usize = 4_000;
/// While the queue is behind, one sweep in this many still puts some scopes into it: their tasks may have been lost.
const PATIENCE: usize = 30;
const SOME: usize = 500;
/// Every sweep looks at so many then, and puts so many of each workflow into the queue: most have a task that waits, and
/// a workflow that has few is not behind by itself.
const LOOKED_AT: usize = 10_000;
const FEW: usize = 100;

impl Service {
    /// Scopes that should be running are put into the queue, pending effects are carried out, and everything older than
    /// its retention is dropped.
    pub async fn sweep(&self, effects: &dyn Effects) -> Result<(), Error> {
        self.sweep_effects(effects).await?;
        self.sweep_scopes(0).await
    }

    async fn sweep_effects(&self, effects: &dyn Effects) -> Result<(), Error> {
        let outbox = self.store.unflushed(EFFECTS_MAX).await?;
        flush(&*self.store, effects, outbox).await;
        Ok(())
    }

    /// At least this many scopes, if there are as many, regardless of the length of the queue.
    async fn sweep_scopes(&self, least: usize) -> Result<(), Error> {
        let room = self.queue.room().await.min(SWEEP_MAX).max(least);
        let late = if room < SOME {
            self.store.runnable_of_each(LOOKED_AT, FEW).await?
        } else {
            self.store.runnable(room).await?
        };
        self.queue.push_late(late).await;
        Ok(self.events.expire(self.clock.now()).await?)
    }

    /// Sweeps for ever. The first sweep recovers work that a crash left behind. Effects may wait for other systems, or
    /// for the rates of starts: they hold up no scopes.
    pub async fn run_reconciler(&self, effects: &dyn Effects, every: Duration) {
        let effects = async {
            loop {
                self.note_swept(self.sweep_effects(effects).await, every)
                    .await;
            }
        };
        let scopes = async {
            for turn in 0_usize.. {
                let least = if turn.is_multiple_of(PATIENCE) {
                    SOME
                } else {
                    0
                };
                self.note_swept(self.sweep_scopes(least).await, every).await;
            }
        };
        join(effects, scopes).await;
    }

    async fn note_swept(&self, swept: Result<(), Error>, every: Duration) {
        if let Err(error) = swept {
            tracing::warn!(%error, "the reconciler is late");
        }
        let next = self.clock.now().0.saturating_add(every.as_millis() as i64);
        self.clock.sleep_until(Timestamp(next)).await;
    }
}
