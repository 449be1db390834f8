//! The reconciler: an incremental sweep that finds scopes which should be running but aren't, after a lost message, a
//! dead worker or a crash between a commit and its effects.

use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join;
use futures::stream;
use swirl_model::event::Command;
use swirl_model::time::Timestamp;
use swirl_ports::{KeptDropped, KeptGroup, OutboxEntry};
use swirl_runtime::{Effects, flush};

use crate::pending::is_counted;
use crate::{Error, Service};

/// The number of scopes that a sweep takes at a time.
const SWEEP_MAX: usize = 10_000;
/// The number of pending effects that a sweep takes at a time.
const EFFECTS_MAX: usize = 4_000;
/// The number of instances whose effects are carried out at once, those of each one after another.
const INSTANCES_AT_ONCE: usize = 32;
/// While the queue is full, one sweep in this many still puts some scopes into it, because their tasks may have been
/// lost.
const PATIENCE: usize = 30;
const SOME: usize = 500;
/// With a full queue, each sweep examines this many scopes and puts up to this many of each workflow into the queue.
/// Most scopes have a task that waits already, and a workflow with few scopes shouldn't suffer from the others.
const LOOKED_AT: usize = 10_000;
const FEW: usize = 100;

/// Thousands of these may wait for the start rate of their workflow, and the other effects shouldn't wait for them.
fn is_unawaited_start(entry: &OutboxEntry) -> bool {
    matches!(&entry.command, Command::Start(start) if is_counted(start))
}

impl Service {
    /// Puts scopes that should be running into the queue, carries out pending effects, and drops everything older than
    /// its retention.
    pub async fn sweep(&self, effects: &dyn Effects) -> Result<(), Error> {
        self.sweep_effects(effects).await?;
        self.sweep_scopes(0).await
    }

    async fn sweep_effects(&self, effects: &dyn Effects) -> Result<(), Error> {
        let outbox = self.store.unflushed(EFFECTS_MAX).await?;
        let of_instances = outbox.chunk_by(|one, next| one.instance == next.instance);
        let mut of_instances: Vec<_> = of_instances.map(<[_]>::to_vec).collect();
        of_instances.sort_by_key(|outbox| outbox.iter().all(is_unawaited_start));
        stream::iter(of_instances)
            .for_each_concurrent(INSTANCES_AT_ONCE, |outbox| {
                flush(&*self.store, effects, outbox)
            })
            .await;
        Ok(())
    }

    /// Takes at least this many scopes, if there are as many, regardless of the length of the queue.
    async fn sweep_scopes(&self, least: usize) -> Result<(), Error> {
        let room = self.queue.room().await.min(SWEEP_MAX).max(least);
        if room < SOME {
            let late = self.store.runnable_of_each(LOOKED_AT, FEW).await?;
            tracing::debug!(late = late.len(), "scopes are late beside a backlog");
            self.queue.push_late_of(late).await;
        } else {
            let late = self.store.runnable(room).await?;
            tracing::debug!(late = late.len(), room, "scopes are late");
            self.queue.push_late(late).await;
        }
        for dropped in self.events.expire(self.clock.now()).await? {
            let KeptDropped {
                group,
                events,
                bytes,
                in_sets,
            } = dropped;
            if in_sets {
                let (limit, of) = match &group {
                    Some(KeptGroup::Workflow(workflow)) => ("sets_workflow_bytes", &**workflow),
                    _ => ("sets_bytes or sets_max", ""),
                };
                tracing::warn!(
                    events,
                    bytes,
                    limit,
                    of,
                    "events that waited for others to start an instance were dropped to make room: oldest sets first"
                );
                continue;
            }
            let (limit, of) = match &group {
                None => ("retain_bytes", ""),
                Some(KeptGroup::Workflow(workflow)) => ("retain_workflow_bytes", &**workflow),
                Some(KeptGroup::Kind(kind)) => ("retain_type_bytes", &**kind),
            };
            tracing::warn!(
                events,
                bytes,
                limit,
                of,
                "kept events that nobody had waited for were dropped to make room: oldest first"
            );
        }
        Ok(())
    }

    /// Sweeps forever. The first sweep recovers the work that a crash left behind. Effects may have to wait for other
    /// systems or for start rates; scopes don't wait for them.
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
