//! Sets of errors, as handlers and retries name them.

use swirl_documents::source::Node;
use swirl_model::workflow::{ErrorId, ErrorSet};

use super::ctx::Ctx;

impl Ctx<'_> {
    /// `*` means all errors that no other handler names, whether they are defined or not.
    pub fn error_set(&mut self, nodes: &[Node]) -> Option<ErrorSet> {
        let mut all = false;
        let mut ids = Vec::with_capacity(nodes.len());
        let mut whole = true;
        self.once(nodes, "error");
        for node in nodes {
            match node.as_str() {
                Some("*") => all = true,
                _ => match self.error_ref(node, "an error's name") {
                    Some(id) => {
                        all |= self.matches_all(id);
                        ids.push(id);
                    }
                    None => whole = false,
                },
            }
        }
        whole.then_some(if all {
            ErrorSet::Any
        } else {
            ErrorSet::These(ids)
        })
    }

    pub fn matches_all(&self, id: ErrorId) -> bool {
        let error = &self.workflow[id];
        error.code.as_deref().unwrap_or(&error.name) == "*"
    }

    /// `retryableErrors` or `nonRetryableErrors` of an action.
    pub fn error_list(&mut self, node: &Node, name: &str) -> ErrorSet {
        let items = self.list(node, &format!("'{name}'")).unwrap_or_default();
        self.error_set(items).unwrap_or(ErrorSet::These(Vec::new()))
    }
}
