//! The store of instances has two ports. Code that executes instances makes no queries over all of them, and code that
//! answers queries doesn't execute instances.

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

/// A folder, and the names that must not occur in it.
const RULES: [(&str, &str); 4] = [
    ("coordinator/src/api/", ASKS_ONLY),
    ("shared/execution/runtime/src/", EXECUTES_ONLY),
    ("shared/process/assembly/src/", EXECUTES_ONLY),
    ("worker/src/", EXECUTES_ONLY),
];

const ASKS_ONLY: &str = r"\bExecutionStore\b|\bdyn Store\b|\bservice\.store\b";
const EXECUTES_ONLY: &str = r"\bInstanceQueries\b|\bdyn Store\b";

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (folder, names) in RULES {
        let names = Regex::new(names)?;
        let code = tree.ending(".rs");
        for text in code.filter(|text| text.path.starts_with(folder)) {
            for (index, line) in text.text.lines().enumerate() {
                let hit = names.find(line);
                if let Some(hit) = hit.filter(|_| !line.trim_start().starts_with("//")) {
                    let message = format!(
                        "'{}' is not for {folder}: shared/execution/ports says which port is for whom",
                        hit.as_str()
                    );
                    findings.push(Finding::at(&text.path, index + 1, message));
                }
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn each_side_has_its_port() {
        let cases = [
            ("worker/src/a.rs", "queries: &dyn InstanceQueries", 1),
            ("worker/src/a.rs", "store: Arc<dyn Store>", 1),
            ("worker/src/a.rs", "store: Arc<dyn ExecutionStore>", 0),
            (
                "shared/execution/runtime/src/a.rs",
                "use swirl_ports::InstanceQueries;",
                1,
            ),
            (
                "coordinator/src/api/a.rs",
                "api.service.store.instance(id)",
                1,
            ),
            ("coordinator/src/api/a.rs", "// not `service.store`", 0),
            ("coordinator/src/api/a.rs", "api.queries.instance(id)", 0),
            ("coordinator/src/process/a.rs", "Arc<dyn Store>", 0),
        ];
        for (path, line, expected) in cases {
            let found = messages(check(&Tree::of(&[(path, line)])));
            assert_eq!(found.len(), expected, "{path}: {line}");
        }
    }
}
