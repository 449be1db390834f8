//! The shards that this process is responsible for: their timers, their reconciliation, their retention.
//!
//! If two processes are responsible for a shard for a moment, that costs time, never correctness.

use std::sync::PoisonError;

use swirl_ports::Result;

use crate::Redis;
use crate::script::{Lazy, Script};

static SHARDS: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/shards.lua")));

impl Redis {
    /// Leases this process's fair share of the shards for `ttl_ms`, and returns them. Call this at least three times in
    /// that time, and pass the result to [`Redis::set_shards`]. Shards of processes that no longer call this are
    /// divided among the others.
    pub async fn lease_shards(&self, process: &str, ttl_ms: u64) -> Result<Vec<u16>> {
        let keys = ["{shards}:processes", "{shards}:owners"];
        let keys = keys.map(|name| self.keys().global(name));
        let args = [
            process.to_owned(),
            ttl_ms.to_string(),
            self.keys().shards().to_string(),
        ];
        self.eval(&SHARDS, &keys, &args).await
    }

    /// Releases all shards, so that others can take them at once.
    pub async fn release_shards(&self, process: &str) -> Result<()> {
        self.lease_shards(process, 0).await.map(drop)
    }

    /// Sets the shards that this handle and its clones are responsible for. By default these are all shards.
    pub fn set_shards(&self, shards: Vec<u16>) {
        let mut mine = self
            .inner
            .shards
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *mine = shards
            .into_iter()
            .filter(|shard| *shard < self.keys().shards())
            .collect();
    }

    pub fn shards(&self) -> Vec<u16> {
        let mine = self.inner.shards.read();
        mine.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
