//! Deployed definitions.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_ports::{Changes, DefinitionRecord, Definitions, Result};

use crate::Embedded;
use crate::key::Key;
use crate::state::State;

fn replace(state: &mut State, record: DefinitionRecord) {
    let mut known = state.definitions.iter();
    let old = known.find(|(_, found)| found.id == record.id);
    if let Some(place) = old.map(|(place, _)| *place) {
        state.definitions.remove(&place);
        state.touch(Key::Definition(place));
    }
    let place = state.next();
    state.definitions.insert(place, record);
    state.touch(Key::Definition(place));
}

#[async_trait]
impl Definitions for Embedded {
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>> {
        self.write(|state| {
            if let Some(found) = state
                .definitions
                .values()
                .find(|found| found.id == record.id)
            {
                return Some(found.clone());
            }
            let place = state.next();
            state.definitions.insert(place, record);
            state.touch(Key::Definition(place));
            None
        })
        .await
    }

    async fn replace(&self, record: DefinitionRecord) -> Result<()> {
        self.write(|state| replace(state, record)).await
    }

    async fn replace_if(&self, old: &DefinitionRecord, new: DefinitionRecord) -> Result<bool> {
        self.write(|state| {
            let is_known = state.definitions.values().any(|found| found == old);
            if is_known {
                replace(state, new);
            }
            is_known
        })
        .await
    }

    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>> {
        self.read(|state| {
            state
                .definitions
                .values()
                .find(|found| found.id == *id)
                .cloned()
        })
    }

    /// A definition's position is the revision of its last change.
    async fn changes(&self, since: u64) -> Result<Changes> {
        self.read(|state| {
            let changed = state.definitions.range(since.saturating_add(1)..);
            let last = changed.clone().next_back();
            Changes {
                revision: last.map_or(since, |(place, _)| *place),
                heads: changed.map(|(_, record)| record.head()).collect(),
            }
        })
    }

    async fn mark(&self, workflow: &str) -> Result<Option<Timestamp>> {
        self.read(|state| state.marks.get(workflow).copied())
    }

    async fn advance_mark(&self, workflow: &str, at: Timestamp) -> Result<()> {
        self.write(|state| {
            let name: Arc<str> = workflow.into();
            let mark = state.marks.entry(name.clone()).or_insert(at);
            *mark = (*mark).max(at);
            state.touch(Key::Mark(name));
        })
        .await
    }

    async fn set_mark(&self, workflow: &str, at: Timestamp) -> Result<()> {
        self.write(|state| {
            state.marks.insert(workflow.into(), at);
            state.touch(Key::Mark(workflow.into()));
        })
        .await
    }
}
