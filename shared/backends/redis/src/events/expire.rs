//! Forgets events that are too old or too many, some of each shard at a time.

use futures::StreamExt;
use futures::stream;
use swirl_model::time::Timestamp;
use swirl_ports::Result;

use super::names::{EventKeys, SHARDS};
use super::shard::{part, read_body};
use crate::Redis;
use crate::script::{Lazy, Script};

static EXPIRE: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/expire.lua")]));
/// It also runs when a server has no memory left.
static FORGET: Lazy = Lazy::new(|| {
    let sizes = include_str!("../lua/events/sizes.lua");
    let forget = include_str!("../lua/events/forget.lua");
    Script::freeing_small(&[sizes, forget].join("\n"))
});

/// The number of events of a shard at a time.
const PAGE: usize = 100;
/// The maximum number of rounds, so that a call ends.
const PAGES: usize = 20;

impl Redis {
    pub(super) async fn expire_events(&self, now: Timestamp) -> Result<()> {
        let shards = (0..SHARDS).map(|shard| self.expire_events_of(shard, now));
        let mut shards = stream::iter(shards.collect::<Vec<_>>()).buffer_unordered(8);
        while let Some(done) = shards.next().await {
            done?;
        }
        Ok(())
    }

    async fn expire_events_of(&self, shard: u16, now: Timestamp) -> Result<()> {
        let options = self.options();
        let keys = EventKeys::shard(self.keys(), shard);
        let before = |ms: u64| now.0.saturating_sub_unsigned(ms).to_string();
        let args = [
            before(options.dedup_ms),
            before(options.retain_ms),
            part(options.retain_max).to_string(),
            PAGE.to_string(),
        ];
        let EventKeys {
            known,
            open,
            kept,
            bodies,
            ..
        } = &keys;
        let all = [known, open, kept, bodies].map(String::clone);
        for _ in 0..PAGES {
            let (forgotten, records): (usize, Vec<String>) =
                self.eval(&EXPIRE, &all, &args).await?;
            for record in records.chunks_exact(2) {
                self.forget(&keys, &record[0], &record[1]).await?;
            }
            if forgotten < PAGE && records.len() < 2 * PAGE {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Removes the event from its buckets first, so that after a crash its record still names them. Returns whether the
    /// record was still the same.
    pub(super) async fn forget(
        &self,
        keys: &EventKeys,
        digest: &str,
        record: &str,
    ) -> Result<bool> {
        if !record.is_empty() {
            let (_, kept) = read_body(record)?;
            let (mut buckets, values) = kept.buckets();
            buckets.extend(values);
            self.remove_from_buckets(digest, &buckets).await?;
        }
        let all = [
            keys.kept.clone(),
            keys.bodies.clone(),
            keys.consumers(digest),
            keys.sizes.clone(),
        ];
        let forgotten: i64 = self.eval(&FORGET, &all, &[digest, record]).await?;
        Ok(forgotten == 1)
    }
}
