//! Definitions in the store that all processes share.

use async_trait::async_trait;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_ports::{Changes, DefinitionRecord, Definitions, Result};

use super::SharedStore;
use crate::wait::block_on;

#[async_trait]
impl Definitions for SharedStore {
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>> {
        self.call(|inner| block_on(inner.put(record))).await
    }

    async fn replace(&self, record: DefinitionRecord) -> Result<()> {
        self.call(|inner| block_on(inner.replace(record))).await
    }

    async fn replace_if(&self, old: &DefinitionRecord, new: DefinitionRecord) -> Result<bool> {
        self.call(|inner| block_on(inner.replace_if(old, new)))
            .await
    }

    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>> {
        self.call(|inner| block_on(inner.get(id))).await
    }

    async fn changes(&self, since: u64) -> Result<Changes> {
        self.call(|inner| block_on(inner.changes(since))).await
    }

    async fn mark(&self, name: &str) -> Result<Option<Timestamp>> {
        self.call(|inner| block_on(inner.mark(name))).await
    }

    async fn set_mark(&self, name: &str, at: Timestamp) -> Result<()> {
        self.call(|inner| block_on(inner.set_mark(name, at))).await
    }

    async fn advance_mark(&self, name: &str, at: Timestamp) -> Result<()> {
        self.call(|inner| block_on(inner.advance_mark(name, at)))
            .await
    }
}
