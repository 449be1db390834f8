//! The instances that have business keys. Each business key has its own Redis key outside the shards, because it is
//! known before its instance.

use redis::Cmd;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::{InstanceKey, KeyHolder, Result};

use crate::Redis;
use crate::connect::damaged;
use crate::script::{Lazy, Script};

static TAKE: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/business_keys.lua")]));

impl Redis {
    /// The key's name is short, however long workflow and key are. The length distinguishes pairs that would otherwise
    /// give the same text.
    pub(crate) fn named_key(&self, key: &InstanceKey) -> String {
        let InstanceKey { workflow, key } = key;
        let text = format!("{}/{workflow}/{key}", workflow.len());
        let hash = blake3::hash(text.as_bytes()).to_hex();
        self.keys().global(&format!("named:{}", &hash[..32]))
    }

    pub(crate) async fn holder_of(&self, key: &InstanceKey) -> Result<Option<KeyHolder>> {
        let mut read = Cmd::new();
        read.arg("GET").arg(self.named_key(key));
        let found: Option<String> = self.query(read).await?;
        let Some(text) = found else {
            return Ok(None);
        };
        let broken = || damaged(format!("key '{}'", key.key), "it names no instance");
        let (since, instance) = text.split_once(' ').ok_or_else(broken)?;
        Ok(Some(KeyHolder {
            instance: InstanceId::new(instance),
            since: Timestamp(since.parse().map_err(|_| broken())?),
        }))
    }

    pub(crate) async fn hand_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool> {
        let args = [from.map(text).unwrap_or_default(), text(to)];
        let taken: i64 = self.eval(&TAKE, &[self.named_key(key)], &args).await?;
        Ok(taken == 1)
    }

    /// Does nothing if another instance has taken the key since.
    pub(crate) async fn give_up_key(&self, key: &str, id: &InstanceId) -> Result<()> {
        let args = ["", "", id.as_str()];
        self.eval::<i64>(&TAKE, &[key.to_owned()], &args).await?;
        Ok(())
    }
}

fn text(holder: &KeyHolder) -> String {
    format!("{} {}", holder.since.0, holder.instance)
}
