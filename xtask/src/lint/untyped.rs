//! The API's contract is types (`shared/service/api`): nobody builds JSON by hand, or reads some by the names of members. Tests
//! may.

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

/// The folders of the server and of its clients.
const FOLDERS: [&str; 5] = [
    "cli/src/",
    "console/src/",
    "coordinator/src/",
    "shared/service/presentation/src/",
    "shared/service/service/src/",
];

/// Files and folders whose JSON is not of the API.
const OTHERS: [&str; 20] = [
    // Definitions that are changed for a trial.
    "cli/src/live/documents.rs",
    // The output of commands that ask no server.
    "cli/src/commands/call/",
    "cli/src/commands/config.rs",
    "cli/src/commands/explain.rs",
    "cli/src/commands/fmt.rs",
    "cli/src/commands/lint.rs",
    "cli/src/commands/lsp.rs",
    "cli/src/commands/migrate.rs",
    "cli/src/commands/migrate/",
    "cli/src/commands/mod.rs",
    "cli/src/commands/new.rs",
    "cli/src/commands/replay.rs",
    "cli/src/commands/schema.rs",
    "cli/src/commands/test.rs",
    "cli/src/commands/token.rs",
    "cli/src/commands/validate.rs",
    "coordinator/src/doctor/report.rs",
    // Failures of a command itself.
    "cli/src/terminal.rs",
    // JSON Schemas.
    "console/src/form.rs",
    // Tokens and documents of providers.
    "coordinator/src/access/oidc/",
];

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let untyped = Regex::new(
        r#"\bjson!|[\w)\]]\["\w+"\]|\.pointer\("|\.get\("\w+"\)\??\.(as_|and_then\((Value|\|\w+\| \w+\.as_))"#,
    )?;
    let mut findings = Vec::new();
    for text in tree.ending(".rs") {
        let path = &*text.path;
        let is_in = |one: &&str| path.starts_with(*one);
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        if is_test || !FOLDERS.iter().any(is_in) || OTHERS.iter().any(is_in) {
            continue;
        }
        let lines = text.text.lines().enumerate();
        let lines = lines.take_while(|(_, line)| line.trim() != "#[cfg(test)]");
        for (index, line) in lines.filter(|(_, line)| untyped.is_match(line)) {
            findings.push(Finding::at(
                path,
                index + 1,
                format!("`{}`: use the types of shared/service/api", line.trim()),
            ));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn files_with_types_have_no_untyped_json() {
        let found = |path: &str, text: &str| messages(check(&Tree::of(&[(path, text)]))).len();
        for (line, count) in [
            ("json!({})", 1),
            ("body[\"id\"].as_str()", 1),
            ("x()[\"id\"]", 1),
            ("let all = [\"id\"];", 0),
            ("one.get(\"id\").and_then(Value::as_str)", 1),
            ("one.get(\"id\")?.as_str()", 1),
            ("body.pointer(\"/id\")", 1),
            ("headers.get(\"id\")", 0),
            ("#[cfg(test)]\njson!({})", 0),
        ] {
            assert_eq!(found("cli/src/commands/get.rs", line), count, "{line}");
            assert_eq!(found("console/src/tests.rs", line), 0);
            assert_eq!(found(OTHERS[0], line), 0);
            assert_eq!(found("worker/src/lib.rs", line), 0);
        }
    }
}
