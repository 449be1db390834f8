//! The audit log: a sorted set whose members are entries with their ids before them, all with the same score, so that
//! they are ordered by id.

use async_trait::async_trait;
use redis::Cmd;
use serde_json::from_str;
use swirl_ports::{AuditEntry, AuditLog, Result};

use crate::Redis;
use crate::connect::damaged;
use crate::record::encode_text;
use crate::script::{Lazy, Script};

/// An operator may also act when a server has no memory left, such as cancel instances.
static ADD: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/audit/add.lua")));

impl Redis {
    fn audit_key(&self) -> String {
        format!("{{{}:o}}:audit", self.keys().namespace())
    }
}

#[async_trait]
impl AuditLog for Redis {
    async fn add_audit(&self, entry: &AuditEntry, keep_max: usize) -> Result<()> {
        let what = || format!("entry {} of the audit log", entry.id);
        let text = encode_text(entry, what, self.options().record_max)?;
        let member = format!("{} {text}", entry.id);
        let keys = [self.audit_key()];
        let args = [member, keep_max.to_string()];
        self.eval::<i64>(&ADD, &keys, &args).await?;
        Ok(())
    }

    async fn audit(&self, before: Option<&str>, limit: usize) -> Result<Vec<AuditEntry>> {
        let mut read = Cmd::new();
        read.arg("ZRANGE").arg(self.audit_key());
        match before {
            // An entry's member begins with its id, so it comes after the id alone.
            Some(id) => read.arg(format!("({id}")),
            None => read.arg("+"),
        };
        read.arg("-").arg("BYLEX").arg("REV");
        read.arg("LIMIT").arg(0).arg(limit);
        let members: Vec<String> = self.query(read).await?;
        let entries = members.iter().map(|member| {
            let broken = |reason: &str| damaged("an entry of the audit log", reason);
            let (_, text) = member
                .split_once(' ')
                .ok_or_else(|| broken("it has no id"))?;
            from_str(text).map_err(|error| broken(&error.to_string()))
        });
        entries.collect()
    }
}
