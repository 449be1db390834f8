//! Effects of commits that were not carried out yet.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use redis::Cmd;
use swirl_model::ids::InstanceId;
use swirl_ports::{OutboxEntry, Result};

use crate::Redis;
use crate::keys::Span;
use crate::reply::{Reply, json};
use crate::script::{Lazy, Script};

static OUTBOX: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/outbox.lua")));

/// The number of instances whose effects are read at once.
const AT_ONCE: usize = 64;
/// A search ends when its effects have this size.
const BYTES_MAX: usize = 32 << 20;

impl Redis {
    pub(crate) async fn take_from_outbox(&self, entries: &[OutboxEntry]) -> Result<()> {
        let mut instances: BTreeMap<&InstanceId, Vec<u64>> = BTreeMap::new();
        for entry in entries {
            instances.entry(&entry.instance).or_default().push(entry.id);
        }
        let calls = instances.into_iter().map(async |(id, numbers)| {
            let mut call = self.call_outbox(id);
            call.arg(numbers);
            self.run::<()>(&OUTBOX, call).await
        });
        try_join_all(calls).await?;
        Ok(())
    }

    /// Overdue effects. A search postpones all that it finds. Instances with effects that are not returned come first
    /// in the next search.
    pub(crate) async fn outbox(&self, limit: usize) -> Result<Vec<OutboxEntry>> {
        let mut entries: Vec<OutboxEntry> = Vec::new();
        let mut bytes = 0;
        for (shard, instances) in self.overdue("outbox", limit).await? {
            let mut beyond = Vec::new();
            for some in instances.chunks(AT_ONCE) {
                if entries.len() >= limit || bytes >= BYTES_MAX {
                    beyond.extend_from_slice(some);
                    continue;
                }
                let effects = some.iter().map(|id| self.effects_of(id));
                for (id, (effects, size)) in some.iter().zip(try_join_all(effects).await?) {
                    bytes += size;
                    let room = limit - entries.len();
                    if effects.len() > room {
                        beyond.push(id.clone());
                    }
                    entries.extend(effects.into_iter().take(room));
                }
            }
            self.first_again(shard, "outbox", &beyond).await?;
        }
        Ok(entries)
    }

    /// The effects of an instance, and their size.
    async fn effects_of(&self, id: &str) -> Result<(Vec<OutboxEntry>, usize)> {
        let id = InstanceId::new(id);
        let what = format!("the outbox of {id}");
        let mut parts = Reply::new(self.run(&OUTBOX, self.call_outbox(&id)).await?)?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while !parts.is_empty() {
            let number = parts.number()?;
            let command = parts.bytes()?;
            bytes += command.len();
            entries.push(OutboxEntry {
                instance: id.clone(),
                id: number,
                command: json(&command, &what)?,
            });
        }
        Ok((entries, bytes))
    }

    fn call_outbox(&self, id: &InstanceId) -> Cmd {
        let keys = self.keys().of(id, Span::All);
        let mut call = OUTBOX.call(&[keys[0].clone(), keys[6].clone()]);
        call.arg(id.as_str());
        call
    }
}
