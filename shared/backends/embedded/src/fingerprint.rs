//! What a move to another version is compared with.

use std::sync::Arc;

use swirl_model::ids::ScopeId;
use swirl_model::instance::InstanceState;

/// A fingerprint of an instance, to detect any change since it was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Fingerprint {
    pub version: Arc<str>,
    pub state: InstanceState,
    /// The revision, and the positions of waiting inputs.
    pub scopes: Vec<(ScopeId, Option<u64>, Vec<u64>)>,
    /// Open, needed, results, notified, closed.
    pub forks: Vec<(ScopeId, u32, u32, u32, usize, bool, bool)>,
}
