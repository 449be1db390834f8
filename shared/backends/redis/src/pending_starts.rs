//! Starts that wait in outboxes because their workflows are started too fast. They are counted outside the shards, in
//! sorted sets by the time at which each was last recorded.

use futures::future::try_join_all;
use redis::cmd;
use swirl_model::time::Timestamp;
use swirl_ports::{PENDING_START_KEPT_MS, PendingStart, PendingStartsMax, Result};

use crate::Redis;
use crate::script::{Lazy, Script};

static ADD: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/pending_starts.lua")]));

impl Redis {
    pub(crate) async fn count_pending_start(
        &self,
        start: PendingStart<'_>,
        max: PendingStartsMax,
        now: Timestamp,
    ) -> Result<bool> {
        let args = [
            start.id.as_str().to_owned(),
            max.workflow.to_string(),
            max.all.to_string(),
            now.0.to_string(),
            PENDING_START_KEPT_MS.to_string(),
        ];
        let added: i64 = self.eval(&ADD, &self.pending_keys(start), &args).await?;
        Ok(added == 1)
    }

    pub(crate) async fn uncount_pending_start(&self, start: PendingStart<'_>) -> Result<()> {
        let removals = self.pending_keys(start).map(|key| {
            let mut removal = cmd("ZREM");
            removal.arg(key).arg(start.id.as_str());
            self.query::<i64>(removal)
        });
        try_join_all(removals).await?;
        Ok(())
    }

    /// The keys for the workflow, and for all workflows. A workflow's name may be long, so its key has a digest.
    fn pending_keys(&self, start: PendingStart<'_>) -> [String; 2] {
        let hash = blake3::hash(start.workflow.as_bytes()).to_hex();
        let tag = format!("{{{}:s}}", self.keys().namespace());
        [
            format!("{tag}:pending:{}", &hash[..32]),
            format!("{tag}:pending"),
        ]
    }
}
