//! The audit log.

use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use async_trait::async_trait;
use swirl_ports::{AuditEntry, AuditLog, Result};

use crate::Embedded;
use crate::key::Key;
use crate::state::State;

impl State {
    fn add_audit(&mut self, entry: &AuditEntry, keep_max: usize) {
        let id: Arc<str> = entry.id.as_str().into();
        if self.audit.contains_key(&id) {
            return;
        }
        self.audit.insert(id.clone(), entry.clone());
        self.touch(Key::Audit(id));
        while self.audit.len() > keep_max {
            let Some((oldest, _)) = self.audit.pop_first() else {
                break;
            };
            self.touch(Key::Audit(oldest));
        }
    }
}

#[async_trait]
impl AuditLog for Embedded {
    async fn add_audit(&self, entry: &AuditEntry, keep_max: usize) -> Result<()> {
        self.write(|state| state.add_audit(entry, keep_max)).await
    }

    async fn audit(&self, before: Option<&str>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.read(|state| {
            let end = before.map_or(Unbounded, Excluded);
            let found = state.audit.range::<str, _>((Unbounded, end));
            let found = found.rev().take(limit);
            found.map(|(_, entry)| entry.clone()).collect()
        })
    }
}
