//! Roots as they were when this process delivered an event to them. If it also continues them, it needn't read them.
//!
//! The guards of the commit detect whether another process was faster.

use quick_cache::sync::Cache;
use swirl_model::ids::ScopeRef;

/// A displaced entry costs two reads. `lua/events/deliver.lua` limits the size of each.
const SCOPES_MAX: usize = 1_024;

/// The values of fields; `None` if a field doesn't exist.
pub(crate) type Values = Vec<Option<Vec<u8>>>;

pub(crate) struct Deliveries(Cache<ScopeRef, Values>);

impl Deliveries {
    pub fn new() -> Deliveries {
        Deliveries(Cache::new(SCOPES_MAX))
    }

    /// Without values, those of an earlier delivery are forgotten.
    pub fn put(&self, scope: ScopeRef, values: Values) {
        match values.is_empty() {
            true => _ = self.0.remove(&scope),
            false => self.0.insert(scope, values),
        }
    }

    /// Each is used once, since the scope changes with its turn.
    pub fn take(&self, scope: &ScopeRef) -> Option<Values> {
        self.0.remove(scope).map(|(_, values)| values)
    }
}
