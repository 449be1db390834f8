//! A bounded cache of compiled definitions.

use std::collections::HashMap;
use std::sync::Arc;

use swirl_engine::Definition;
use swirl_model::ids::DefinitionId;

/// The limits of each of the two generations: the number of definitions, and the bytes of their documents and compiled
/// regular expressions.
const COUNT_MAX: usize = 1000;
const BYTES_MAX: usize = 64 << 20;

/// Compiled definitions in two generations: the recently used ones, and older ones. When the younger generation is
/// full, the older one is dropped.
#[derive(Default)]
pub(crate) struct Compiled {
    young: HashMap<DefinitionId, CachedDefinition>,
    old: HashMap<DefinitionId, CachedDefinition>,
    /// The size of the younger generation.
    bytes: usize,
}

#[derive(Clone)]
struct CachedDefinition {
    /// The digest of the source.
    digest: String,
    bytes: usize,
    definition: Arc<Definition>,
}

impl Compiled {
    pub fn get(&mut self, id: &DefinitionId) -> Option<Arc<Definition>> {
        if let Some(found) = self.young.get(id) {
            return Some(found.definition.clone());
        }
        let found = self.old.remove(id)?;
        let definition = found.definition.clone();
        self.keep(id.clone(), found);
        Some(definition)
    }

    /// `bytes`: the size of the document with all documents that it refers to.
    pub fn insert(&mut self, definition: Arc<Definition>, digest: &str, bytes: usize) {
        let id = definition.id.clone();
        let bytes = bytes.saturating_add(definition.pattern_bytes);
        self.remove(&id);
        let digest = digest.to_owned();
        self.keep(
            id,
            CachedDefinition {
                digest,
                bytes,
                definition,
            },
        );
    }

    /// Removes the definition if its digest differs, because different content was deployed under this id.
    pub fn forget_others(&mut self, id: &DefinitionId, digest: &str) {
        let known = self.young.get(id).or_else(|| self.old.get(id));
        if known.is_some_and(|known| known.digest != digest) {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: &DefinitionId) {
        if let Some(gone) = self.young.remove(id) {
            self.bytes -= gone.bytes;
        }
        self.old.remove(id);
    }

    fn keep(&mut self, id: DefinitionId, entry: CachedDefinition) {
        if self.young.len() >= COUNT_MAX || self.bytes + entry.bytes > BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += entry.bytes;
        self.young.insert(id, entry);
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::Data;
    use swirl_model::workflow::{End, Flow, Next, State, StateId, StateKind, Version, Workflow};

    use super::*;

    fn definition(version: usize) -> Arc<Definition> {
        let workflow = Workflow {
            id: "w".to_owned(),
            version: Version::Literal(version.to_string()),
            flows: vec![Flow {
                start: StateId(0),
                states: vec![StateId(0)],
                ..Flow::default()
            }],
            states: vec![State {
                name: "S".into(),
                kind: StateKind::Inject(Data::object()),
                next: Some(Next::End(End::default())),
                ..State::default()
            }],
            ..Workflow::default()
        };
        Definition::compile(workflow).unwrap()
    }

    fn held(compiled: &Compiled) -> usize {
        compiled.young.len() + compiled.old.len()
    }

    #[test]
    fn recently_used_definitions_stay() {
        let mut compiled = Compiled::default();
        let first = definition(0);
        compiled.insert(first.clone(), "0", 1);
        for version in 1..=3 * COUNT_MAX {
            compiled.insert(definition(version), "d", 1);
            assert!(compiled.get(&first.id).is_some());
            assert!(held(&compiled) <= 2 * COUNT_MAX);
        }
        assert!(compiled.get(&definition(1).id).is_none());
        compiled.forget_others(&first.id, "0");
        assert!(compiled.get(&first.id).is_some());
        compiled.forget_others(&first.id, "1");
        assert!(compiled.get(&first.id).is_none());
    }

    #[test]
    fn regular_expressions_take_up_room_in_the_cache() {
        let mut compiled = Compiled::default();
        for version in 0..100 {
            let mut heavy = definition(version);
            Arc::get_mut(&mut heavy).unwrap().pattern_bytes = BYTES_MAX / 4;
            compiled.insert(heavy, "d", 1);
            assert!(held(&compiled) <= 8);
        }
    }

    #[test]
    fn large_documents_take_up_more_of_the_cache() {
        let mut compiled = Compiled::default();
        for version in 0..100 {
            compiled.insert(definition(version), "d", BYTES_MAX / 4);
            assert!(held(&compiled) <= 8);
        }
        // A definition that exceeds the limit by itself is kept while it is the newest.
        compiled.insert(definition(100), "d", 2 * BYTES_MAX);
        assert!(compiled.get(&definition(100).id).is_some());
        compiled.insert(definition(101), "d", 1);
        compiled.insert(definition(102), "d", BYTES_MAX);
        assert!(compiled.get(&definition(100).id).is_none());
    }
}
