//! The expressions of a document, each once.

use std::collections::HashMap;
use std::sync::Arc;

use swirl_model::workflow::{ExprId, Language, PathId};

use super::check::Checked;

/// A text, in a language, with the parameters in sight.
pub(super) type Key = (Language, String, Vec<Arc<str>>);

/// The expressions met so far, with the errors of each.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(super) expressions: HashMap<Key, ExprId>,
    pub(super) paths: HashMap<Key, PathId>,
    /// With `$args` or not, as a path or not.
    pub(super) checked: HashMap<(Key, bool, bool), Arc<Checked>>,
}
