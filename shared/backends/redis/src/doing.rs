//! The activity of running instances, for operators of a cluster.

use futures::future::try_join_all;
use redis::Cmd;
use swirl_model::ids::InstanceId;
use swirl_ports::Result;

use crate::Redis;
use crate::keys::Span;
use crate::script::{Lazy, Script};

static DOING: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/doing.lua")));

/// How many entries of a shard's index are assigned to their instances; the rest is counted by entry.
const ENTRIES_MAX: usize = 1_000;
/// How many suspended instances of a shard are examined each time, to see whether they still are.
const TIDIED: usize = 50;

/// The running instances, each counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Doing {
    /// Have a step to be made, or a call under way. Where a shard has more than a thousand scopes to be driven, the
    /// others are counted by scope.
    pub ready: u64,
    pub suspended: u64,
    /// For an event, a time or a sub-workflow.
    pub waiting: u64,
}

impl Redis {
    /// The activity of the running instances in the shards of this process.
    ///
    /// # Errors
    /// Redis doesn't answer.
    pub async fn count_doing(&self) -> Result<Doing> {
        let shards = self.shards();
        let counts = shards.iter().map(|shard| self.doing_in(*shard));
        let counts = try_join_all(counts).await?;
        let add = |all: Doing, one: Doing| Doing {
            ready: all.ready + one.ready,
            suspended: all.suspended + one.suspended,
            waiting: all.waiting + one.waiting,
        };
        Ok(counts.into_iter().fold(Doing::default(), add))
    }

    async fn doing_in(&self, shard: u16) -> Result<Doing> {
        let index = |name| self.keys().index(shard, name);
        let mut keys = vec![index("lt:r"), index("ready"), index("suspended")];
        let mut some = Cmd::new();
        some.arg("SRANDMEMBER").arg(&keys[2]).arg(TIDIED);
        let some: Vec<String> = self.query(some).await?;
        for id in &some {
            let id = InstanceId::new(id.as_str());
            keys.extend(self.keys().of(&id, Span::Ready).into_iter().next());
        }
        let mut call = DOING.call(&keys);
        call.arg(ENTRIES_MAX).arg(some);
        let (running, ready, suspended): (u64, u64, u64) = self.run(&DOING, call).await?;
        // They are counted by other indexes, which a crash may leave behind for a while.
        let ready = ready.min(running.saturating_sub(suspended));
        Ok(Doing {
            ready,
            suspended,
            waiting: running.saturating_sub(suspended + ready),
        })
    }
}
