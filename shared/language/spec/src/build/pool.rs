//! The expressions of a document, without duplicates.

use std::collections::HashMap;
use std::sync::Arc;

use swirl_model::workflow::{ExprId, Language, PathId};

use super::check::Checked;

/// A text, its language, and the parameters in scope.
pub(super) type Key = (Language, String, Vec<Arc<str>>);

/// The expressions found so far, with their errors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pool {
    pub(super) expressions: HashMap<Key, ExprId>,
    pub(super) paths: HashMap<Key, PathId>,
    /// With or without `$args`, as a path or not, with these variables.
    pub(super) checked: HashMap<(Key, bool, bool, &'static [&'static str]), Arc<Checked>>,
}
