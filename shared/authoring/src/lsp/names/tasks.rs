//! The names in a document of DSL 1.0: tasks, each known in its own list, and what `use` defines.

use swirl_documents::source::Node;

use super::{Block, NameKind, Names, Occurrence};
use crate::lsp::entries::{Key, entries, items};

/// The parts of `use` that define names, with the protocol's numbers for these symbols.
const DEFINED: [(&str, NameKind, u8); 6] = [
    ("functions", NameKind::Function, 12),
    ("errors", NameKind::Error, 22),
    ("retries", NameKind::Retry, 14),
    ("timeouts", NameKind::Timeout, 14),
    ("authentications", NameKind::Auth, 20),
    ("catalogs", NameKind::Catalog, 4),
];

/// The words that `call` and `then` accept besides names.
fn words(kind: NameKind) -> &'static [&'static str] {
    match kind {
        NameKind::Function => &["a2a", "asyncapi", "grpc", "http", "mcp", "openapi"],
        NameKind::State => &["continue", "exit", "end"],
        _ => &[],
    }
}

impl Names {
    pub fn of_tasks(root: &Node) -> Names {
        let mut names = Names::default();
        names.whole(root);
        names
    }

    fn whole(&mut self, root: &Node) {
        for (key, value, last_line) in entries(root, usize::MAX) {
            match key.key {
                "use" => self.reuse(value, last_line),
                "do" => self.tasks(value, last_line),
                "timeout" => self.refer(NameKind::Timeout, "", value.as_str(), value),
                _ => self.credentials(value),
            }
        }
        self.secrets(root);
    }

    fn reuse(&mut self, node: &Node, last_line: usize) {
        for (key, value, last_line) in entries(node, last_line) {
            match key.key {
                "extensions" => {
                    for (item, last_line) in items(value, last_line) {
                        for (name, body, last_line) in entries(item, last_line) {
                            self.define(NameKind::Extension, 2, "", &name, last_line);
                            for (_, list, last_line) in entries(body, last_line) {
                                self.tasks(list, last_line);
                            }
                        }
                    }
                }
                "secrets" => self.declare(value, NameKind::Secret, 20, last_line),
                key => {
                    let defined = DEFINED.iter().find(|(name, ..)| *name == key);
                    let Some((_, kind, symbol)) = defined else {
                        continue;
                    };
                    for (name, body, last_line) in entries(value, last_line) {
                        self.define(*kind, *symbol, "", &name, last_line);
                        match kind {
                            NameKind::Function => self.task(body, body.pointer(), last_line),
                            NameKind::Auth => self.schemes(body),
                            _ => self.credentials(body),
                        }
                    }
                }
            }
        }
    }

    fn tasks(&mut self, list: &Node, last_line: usize) {
        for (item, last_line) in items(list, last_line) {
            for (name, task, last_line) in entries(item, last_line) {
                self.define(NameKind::State, 5, list.pointer(), &name, last_line);
                self.task(task, list.pointer(), last_line);
            }
        }
    }

    /// A task of a list, or a part of it that may contain tasks or name the task that follows.
    fn task(&mut self, task: &Node, list: &str, last_line: usize) {
        let is_asyncapi = task.get("call").and_then(Node::as_str) == Some("asyncapi");
        for (key, value, last_line) in entries(task, last_line) {
            let text = value.as_str();
            match key.key {
                "do" | "try" => self.tasks(value, last_line),
                "fork" => {
                    for (_, branches, last_line) in entries(value, last_line) {
                        self.tasks(branches, last_line);
                    }
                }
                "catch" | "foreach" => self.task(value, list, last_line),
                "switch" => {
                    for (case, last_line) in items(value, last_line) {
                        for (_, case, last_line) in entries(case, last_line) {
                            self.task(case, list, last_line);
                        }
                    }
                }
                "then" => {
                    let name = text.filter(|it| !words(NameKind::State).contains(it));
                    self.refer(NameKind::State, list, name, value);
                }
                "call" => {
                    // Functions of catalogs are not in the document.
                    let name = text.filter(|it| !it.contains([':', '/']));
                    let name = name.filter(|it| !words(NameKind::Function).contains(it));
                    self.refer(NameKind::Function, "", name, value);
                }
                "raise" => {
                    if let Some(error) = value.get("error") {
                        self.refer(NameKind::Error, "", error.as_str(), error);
                    }
                }
                "with" if is_asyncapi => {
                    let subscription = entries(value, last_line)
                        .filter(|(key, ..)| key.key == "subscription")
                        .flat_map(|(_, value, last_line)| entries(value, last_line));
                    for (_, each, last_line) in
                        subscription.filter(|(key, ..)| key.key == "foreach")
                    {
                        self.task(each, list, last_line);
                    }
                    self.credentials(value);
                }
                "retry" => self.refer(NameKind::Retry, "", text, value),
                "timeout" => self.refer(NameKind::Timeout, "", text, value),
                // User data contains no references.
                "metadata" | "set" => {}
                _ => self.credentials(value),
            }
        }
    }

    fn credentials(&mut self, node: &Node) {
        for item in node.items().unwrap_or_default() {
            self.credentials(item);
        }
        for member in node.members().unwrap_or_default() {
            let value = member.value();
            match (member.key(), value.get("use")) {
                ("authentication", Some(name)) => {
                    self.refer(NameKind::Auth, "", name.as_str(), name);
                }
                ("authentication", None) => self.schemes(value),
                _ => self.credentials(value),
            }
        }
    }

    /// The secrets that the schemes of an authentication name.
    fn schemes(&mut self, authentication: &Node) {
        for scheme in authentication.members().unwrap_or_default() {
            if let Some(name) = scheme.value().get("use") {
                self.refer(NameKind::Secret, "", name.as_str(), name);
            }
        }
    }

    fn secrets(&mut self, node: &Node) {
        self.in_text(node, "$secrets.", NameKind::Secret, "_");
        for item in node.items().unwrap_or_default() {
            self.secrets(item);
        }
        for member in node.members().unwrap_or_default() {
            self.secrets(member.value());
        }
    }

    fn refer(&mut self, kind: NameKind, list: &str, name: Option<&str>, node: &Node) {
        if let Some(name) = name {
            self.add_in(list, kind, name, None, (node.line(), node.column()));
        }
    }

    fn define(&mut self, kind: NameKind, symbol: u8, list: &str, key: &Key<'_>, last_line: usize) {
        let block = Block {
            symbol,
            line: key.line,
            column: key.column,
            last_line,
        };
        self.add_in(list, kind, key.key, Some(block), (key.line, key.column));
    }

    /// The texts that may stand in the place of a name: the names of its kind, and further words.
    pub fn instead_of(&self, stand_in: &str) -> Option<Vec<String>> {
        let mut all = self.all.iter();
        let meant = all.find(|one| one.name == stand_in && one.declares.is_none())?;
        let is_other = |one: &&Occurrence| {
            one.declares.is_some() && one.kind == meant.kind && one.list == meant.list
        };
        let names = self
            .all
            .iter()
            .filter(is_other)
            .map(|one| one.name.as_str());
        let mut found: Vec<String> = Vec::new();
        for name in names.chain(words(meant.kind).iter().copied()) {
            if found.iter().all(|known| known != name) {
                found.push(name.to_owned());
            }
        }
        Some(found)
    }
}
