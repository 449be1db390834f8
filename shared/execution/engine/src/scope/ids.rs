//! Derived ids.

use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::Header;
use swirl_model::scope::{ActionStep, Scope, Work};

/// A short id derived from these parts. The same parts always give the same id.
pub fn derive(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..24].to_owned()
}

/// The id of an effect that a scope causes at one of its sequence numbers.
pub fn child_id(header: &Header, scope: &ScopeId, seq: u32) -> String {
    derive(&[&header.seed(), scope.as_str(), &seq.to_string()])
}

/// The id of the instance that continues this one after `continueAs`.
pub fn continuation_id(header: &Header) -> InstanceId {
    if header.parent.is_none() && header.continued_from.is_none() {
        return InstanceId::new(derive(&[&header.seed(), "continue"]));
    }
    chained_id(&header.id)
}

/// The instance that a scope waits for: its sub-workflow, or the one that continues it after `continueAs`.
pub fn awaited(header: &Header, scope: &Scope) -> Option<InstanceId> {
    if scope.fault.is_some() {
        return None;
    }
    if let Some(ActionStep::Subflow { call }) = scope.list().map(|run| &run.step) {
        return Some(InstanceId::new(child_id(header, &scope.id, *call)));
    }
    let work = scope.position().map(|position| &position.work);
    matches!(work, Some(Work::Continue { .. })).then(|| continuation_id(header))
}

/// The id of the continuation of a sub-workflow or of another continuation. It is never used again.
pub fn chained_id(instance: &InstanceId) -> InstanceId {
    InstanceId::new(derive(&[instance.as_str(), "continue"]))
}

/// A number in 0.0..1.0 derived from these parts. The same parts always give the same number.
pub fn fraction(parts: &[&str]) -> f64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
}
