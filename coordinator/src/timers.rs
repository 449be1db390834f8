//! Timers that are due become inputs of their scopes.

use swirl_model::event::Input;
use swirl_model::time::Timestamp;
use swirl_ports::InboxItem;

use crate::{Error, Service};

/// How many timers are looked at at once.
const BATCH: usize = 1000;

impl Service {
    /// Fires what is due; returns how many timers that were.
    pub async fn fire_timers(&self) -> Result<usize, Error> {
        self.fire_timers_at_most(BATCH).await
    }

    pub async fn fire_timers_at_most(&self, limit: usize) -> Result<usize, Error> {
        let due = self.store.due_timers(self.clock.now(), limit).await?;
        let count = due.len();
        for timer in due {
            let item = InboxItem::new(Input::Timer {
                seq: timer.timer.seq,
            });
            self.store.add_input(&timer.scope, item).await?;
            self.queue.push(vec![timer.scope]).await;
        }
        Ok(count)
    }

    /// Fires timers for ever: never early, and late only by what the store takes.
    pub async fn run_timers(&self) {
        loop {
            match self.fire_timers().await {
                Ok(BATCH) => continue,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "timers are late");
                    self.clock
                        .sleep_until(Timestamp(self.clock.now().0 + 500))
                        .await;
                    continue;
                }
            }
            let changed = self.store.timers_changed();
            let next = self.store.next_timer().await.ok().flatten();
            match next {
                Some(next) => {
                    let sleep = self.clock.sleep_until(next);
                    futures::future::select(changed, sleep).await;
                }
                None => changed.await,
            }
        }
    }
}
