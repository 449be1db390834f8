//! The API's contract is types (`shared/api`): a file that uses them builds no JSON by hand, and reads none by the names
//! of members. Tests may.

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

/// The files that are done. The list only grows.
const DONE: [&str; 78] = [
    "cli/src/client/instance_id.rs",
    "cli/src/client/mod.rs",
    "cli/src/commands/audit.rs",
    "cli/src/commands/batch.rs",
    "cli/src/commands/dead_letters.rs",
    "cli/src/commands/definition.rs",
    "cli/src/commands/deploy.rs",
    "cli/src/commands/events.rs",
    "cli/src/commands/export.rs",
    "cli/src/commands/get.rs",
    "cli/src/commands/history.rs",
    "cli/src/commands/list.rs",
    "cli/src/commands/operate.rs",
    "cli/src/commands/schedule.rs",
    "cli/src/commands/send_event.rs",
    "cli/src/commands/start.rs",
    "cli/src/doctor/api.rs",
    "cli/src/live/plan.rs",
    "cli/src/live/runner.rs",
    "console/src/hints.rs",
    "console/src/naming.rs",
    "console/src/pages/audit.rs",
    "console/src/pages/batch_trial.rs",
    "console/src/pages/batches.rs",
    "console/src/pages/changes.rs",
    "console/src/pages/columns.rs",
    "console/src/pages/definitions.rs",
    "console/src/pages/deploy.rs",
    "console/src/pages/events.rs",
    "console/src/pages/instance.rs",
    "console/src/pages/instances.rs",
    "console/src/pages/lateness.rs",
    "console/src/pages/letters.rs",
    "console/src/pages/occupied.rs",
    "console/src/pages/overview.rs",
    "console/src/pages/schedules.rs",
    "console/src/pages/search.rs",
    "console/src/pages/start.rs",
    "console/src/pages/system.rs",
    "console/src/pages/views.rs",
    "console/src/shell.rs",
    "console/src/spoken.rs",
    "console/src/timeline.rs",
    "console/src/words.rs",
    "coordinator/src/api/aftermath.rs",
    "coordinator/src/api/audit.rs",
    "coordinator/src/api/batches.rs",
    "coordinator/src/api/changes.rs",
    "coordinator/src/api/counts.rs",
    "coordinator/src/api/dead_letters.rs",
    "coordinator/src/api/definitions.rs",
    "coordinator/src/api/diagrams.rs",
    "coordinator/src/api/events.rs",
    "coordinator/src/api/gate.rs",
    "coordinator/src/api/insight.rs",
    "coordinator/src/api/instance_view.rs",
    "coordinator/src/api/instances.rs",
    "coordinator/src/api/listing.rs",
    "coordinator/src/api/matching.rs",
    "coordinator/src/api/migrate.rs",
    "coordinator/src/api/operate.rs",
    "coordinator/src/api/overview.rs",
    "coordinator/src/api/paging.rs",
    "coordinator/src/api/problem.rs",
    "coordinator/src/api/rewind.rs",
    "coordinator/src/api/router.rs",
    "coordinator/src/api/schedules.rs",
    "coordinator/src/api/serve.rs",
    "coordinator/src/api/start.rs",
    "coordinator/src/api/states.rs",
    "coordinator/src/api/system.rs",
    "coordinator/src/api/trial.rs",
    "coordinator/src/api/views.rs",
    "shared/presentation/src/place.rs",
    "shared/presentation/src/rewind.rs",
    "shared/service/src/explain.rs",
    "shared/service/src/reach.rs",
    "shared/service/src/recent.rs",
];

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let untyped = Regex::new(r#"\bjson!|[\w)\]]\["\w+"\]"#)?;
    let mut findings = Vec::new();
    for path in DONE {
        let Some(text) = tree.text(path) else {
            continue;
        };
        let lines = text.lines().enumerate();
        let lines = lines.take_while(|(_, line)| line.trim() != "#[cfg(test)]");
        for (index, line) in lines.filter(|(_, line)| untyped.is_match(line)) {
            findings.push(Finding::at(
                path,
                index + 1,
                format!("`{}`: use the types of shared/api", line.trim()),
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
            ("#[cfg(test)]\njson!({})", 0),
        ] {
            assert_eq!(found(DONE[0], line), count, "{line}");
            assert_eq!(found("cli/src/other.rs", line), 0);
        }
    }
}
