//! Parts of 0.6 that later editions read with a warning.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;

impl Ctx<'_> {
    /// Whether a part of 0.6 is read here. `own`: the edition has it too. Otherwise there is a warning.
    pub fn earlier_part(&mut self, own: bool, holder: &Node, name: &str, hint: &str) -> bool {
        let Some(node) = holder.get(name) else {
            return own;
        };
        if own || !self.dialect.parts.earlier_parts {
            return own;
        }
        let message = format!("'{name}' here is of edition 0.6; it works as it does there");
        self.warn(node, codes::OTHER_EDITIONS_NAME, message, hint.to_owned());
        true
    }
}
