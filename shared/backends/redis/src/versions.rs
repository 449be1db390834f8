//! How many instances of each version of a workflow there are. The listings by workflow name the version of each, so no
//! instance is read.

use futures::future::try_join_all;
use swirl_ports::{Result, VersionCounts};

use crate::Redis;
use crate::keys::STATUSES;
use crate::reply::Reply;
use crate::script::{Lazy, Script};

static VERSIONS: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/versions.lua")]));

/// How many instances of a shard are counted, of those that run and of those that failed. The server is blocked
/// meanwhile.
const COUNTED_MAX: usize = 200;

impl Redis {
    pub(crate) async fn count_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        let calls = (0..self.keys().shards()).map(async |shard| {
            let by_workflow = self.keys().listings(shard).split_off(STATUSES.len());
            let keys = ["r", "f"].map(|letter| {
                let place = STATUSES.iter().position(|status| *status == letter);
                by_workflow[place.unwrap_or_default()].clone()
            });
            let mut call = VERSIONS.call(&keys);
            call.arg(workflow).arg(COUNTED_MAX);
            Reply::new(self.run(&VERSIONS, call).await?)
        });
        let mut all = VersionCounts {
            is_complete: true,
            ..VersionCounts::default()
        };
        for mut parts in try_join_all(calls).await? {
            let more: u8 = parts.number()?;
            all.is_complete &= more == 0;
            while !parts.is_empty() {
                let version = parts.text()?;
                let counts = all.versions.entry(version.into()).or_default();
                counts.running += parts.number::<u64>()?;
                counts.faulted += parts.number::<u64>()?;
            }
        }
        Ok(all)
    }
}
