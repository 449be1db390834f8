//! The activity of running instances, for a cluster's operators.

use futures::future::try_join_all;
use redis::Cmd;
use swirl_model::ids::InstanceId;
use swirl_ports::Result;

use crate::Redis;
use crate::keys::Span;
use crate::script::{Lazy, Script};

static ACTIVITY: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/activity.lua")));

/// The number of entries of a shard's index that are assigned to their instances. The rest is counted by entry.
const ENTRIES_MAX: usize = 1_000;
/// The number of suspended instances of a shard that are examined each time, to remove those that no longer are.
const TIDIED: usize = 50;

/// The running instances, each counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Instances with a step to make or a call in flight. If a shard has more than a thousand scopes to drive, the rest
    /// is counted by scope.
    pub ready: u64,
    pub suspended: u64,
    /// Instances that wait for an event, a time or a sub-workflow.
    pub waiting: u64,
}

impl Redis {
    /// Counts the running instances by activity, in the shards of this process.
    ///
    /// # Errors
    /// Redis doesn't respond.
    pub async fn count_activity(&self) -> Result<Activity> {
        let shards = self.shards();
        let counts = shards.iter().map(|shard| self.activity_in(*shard));
        let counts = try_join_all(counts).await?;
        let add = |all: Activity, one: Activity| Activity {
            ready: all.ready + one.ready,
            suspended: all.suspended + one.suspended,
            waiting: all.waiting + one.waiting,
        };
        Ok(counts.into_iter().fold(Activity::default(), add))
    }

    async fn activity_in(&self, shard: u16) -> Result<Activity> {
        let index = |name| self.keys().index(shard, name);
        let mut keys = vec![index("lt:r"), index("ready"), index("suspended")];
        let mut some = Cmd::new();
        some.arg("SRANDMEMBER").arg(&keys[2]).arg(TIDIED);
        let some: Vec<String> = self.query(some).await?;
        for id in &some {
            let id = InstanceId::new(id.as_str());
            keys.extend(self.keys().of(&id, Span::Ready).into_iter().next());
        }
        let mut call = ACTIVITY.call(&keys);
        call.arg(ENTRIES_MAX).arg(some);
        let (running, ready, suspended): (u64, u64, u64) = self.run(&ACTIVITY, call).await?;
        // These are counted from other indexes, which may be out of date for a while after a crash.
        let ready = ready.min(running.saturating_sub(suspended));
        Ok(Activity {
            ready,
            suspended,
            waiting: running.saturating_sub(suspended + ready),
        })
    }
}
