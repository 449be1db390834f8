//! `use.extensions` (DSL 1.0, "Extension").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::Extension;

use super::Reader;
use super::value::DEFINITION;
use crate::build::ctx::Obj;

const PROPERTIES: &[&str] = &["extend", "when", "before", "after"];

/// What an extension can extend, and the property that tasks of this kind have.
const KINDS: [(&str, &str); 12] = [
    ("all", ""),
    ("call", "call"),
    ("composite", "do"),
    ("emit", "emit"),
    ("for", "for"),
    ("listen", "listen"),
    ("raise", "raise"),
    ("run", "run"),
    ("set", "set"),
    ("switch", "switch"),
    ("try", "try"),
    ("wait", "wait"),
];

impl Reader<'_, '_> {
    /// Reads what the extensions extend, which must be known before any task is read.
    pub fn extension_targets(&mut self, node: &Node) {
        for item in self.list(node, "'extensions'").unwrap_or_default() {
            let target = self.extension_target(item);
            self.extended.push(target.unwrap_or_default());
        }
    }

    /// The property that the extended tasks have; `all` for every kind.
    fn extension_target(&mut self, item: &Node) -> Option<&'static str> {
        let Some([member]) = item.members() else {
            let message = "an entry of 'extensions' has one key: the name of the extension";
            let hint = "begin a new entry with '- ' for each extension".to_owned();
            self.error(item, codes::TASK_WITHOUT_NAME, message, hint);
            return None;
        };
        let what = format!("the extension '{}'", member.key());
        let obj = self.object(member.value(), &what, PROPERTIES)?;
        if !obj.has("extend") {
            self.missing(obj, &what, &["extend"]);
            return None;
        }
        let words = KINDS.map(|(word, _)| word);
        let word = self.word(obj, "extend", &words)?;
        let (_, property) = KINDS.into_iter().find(|(known, _)| *known == word)?;
        Some(if property.is_empty() { "all" } else { property })
    }

    /// Reads the tasks of the extensions.
    pub fn extensions(&mut self, root: Obj<'_>) {
        let list = root.get("use").and_then(|node| node.get("extensions"));
        let items = list.and_then(Node::items).unwrap_or_default();
        let outside = std::mem::replace(&mut self.is_inner, true);
        let mut extensions = Vec::with_capacity(items.len());
        for item in items {
            let member = item.members().and_then(<[_]>::first);
            let empty = item;
            let (name, node) = member.map_or(("", empty), |it| (it.key(), it.value()));
            let when = node
                .get("when")
                .and_then(|node| self.expr(node, "'when'", DEFINITION));
            let before = node.get("before").map(|node| {
                self.skips = true;
                self.tasks(node, "'before'")
            });
            let after = node.get("after").map(|node| self.tasks(node, "'after'"));
            extensions.push(Extension {
                name: name.into(),
                when,
                before,
                after,
            });
        }
        self.is_inner = outside;
        if let Some(tasks) = &mut self.workflow.tasks {
            tasks.extensions = extensions;
        }
    }
}
