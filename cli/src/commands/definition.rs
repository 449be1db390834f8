//! `swirl definition`

use serde_json::Value;
use swirl_presentation::timeline::shown;

use crate::arguments::Reason;
use crate::client::Server;
use crate::terminal::Terminal;
use crate::text::table;

/// Lists, shows and deletes deployed definitions.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl definition list
  swirl definition show order --version 1.0.0 > order.sw.yaml
  swirl definition delete order 1.0.0")]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Lists all definitions by workflow, and the versions of each in the order of deployment.
    List(List),
    /// Prints a definition's document as it was deployed.
    #[command(disable_version_flag = true)]
    Show(Show),
    /// Deletes a definition: no new instances of it start.
    ///
    /// This is refused while instances of it run or have failed. Its id and version are never reused for other content:
    /// only the same document can be deployed again.
    #[command(disable_version_flag = true)]
    Delete(Delete),
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Show {
    /// The workflow's id.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// The workflow's version; the latest if absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Delete {
    /// The workflow's id.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// The workflow's version.
    #[arg(value_name = "VERSION")]
    version: String,

    /// Delete it even if it has instances. They continue to their end.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    reason: Reason,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.task {
        Task::List(list) => list.server.run(async |client| {
            let answer = client
                .get_pages(&["definitions"], &[], "definitions")
                .await?;
            answer.show(terminal, listed)
        }),
        Task::Show(show) => show.server.run(async |client| {
            let mut path = vec!["definitions", show.workflow.as_str()];
            path.extend(show.version.as_deref());
            let answer = client.get(&path, &[]).await?;
            answer.show(terminal, |body| {
                body["document"].as_str().unwrap_or_default().to_owned()
            })
        }),
        Task::Delete(delete) => delete.server.run(async |client| {
            let path = ["definitions", &delete.workflow, &delete.version];
            let mut query = delete.reason.query();
            query.extend(delete.force.then_some(("force", "true")));
            let answer = client.delete(&path, &query).await?;
            answer.show(terminal, deleted)
        }),
    }
}

fn deleted(body: &Value) -> String {
    let on = match body["instances"].as_u64() {
        Some(count) if count > 0 => format!("; {count} instances continue to their end"),
        _ => String::new(),
    };
    let (id, version) = (shown(&body["id"]), shown(&body["version"]));
    format!("{id}:{version} is deleted{on}\n")
}

fn listed(body: &Value) -> String {
    let mut rows = vec![["WORKFLOW", "VERSION", "DEPLOYED", "SCHEDULE", "FROM"].map(str::to_owned)];
    for row in body["definitions"].as_array().into_iter().flatten() {
        let version = match row["latest"].as_bool() {
            Some(true) => format!("{} (latest)", shown(&row["version"])),
            _ => shown(&row["version"]),
        };
        let schedule = &row["schedule"];
        let schedule = match (schedule["paused"].as_bool(), &schedule["next"]) {
            (Some(true), _) => "paused".to_owned(),
            (Some(false), Value::Null) => "over".to_owned(),
            (Some(false), next) => format!("next at {}", shown(next)),
            (None, _) => String::new(),
        };
        rows.push([
            shown(&row["id"]),
            version,
            shown(&row["deployedAt"]),
            schedule,
            shown(&row["name"]),
        ]);
    }
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn definitions_are_shown_as_a_table() {
        let row = |version: &str, latest: bool, schedule: Value| {
            json!({"id": "order", "version": version, "deployedAt": "2024-01-31T09:00:00Z", "name": "order.sw.yaml",
                "latest": latest, "schedule": schedule})
        };
        let body = json!({"definitions": [
            row("1.0", false, Value::Null),
            row("1.1", true, json!({"paused": false, "next": "2024-02-01T09:00:00Z"})),
            row("2", true, json!({"paused": true, "next": null})),
        ]});
        insta::assert_snapshot!(listed(&body), @"
        WORKFLOW  VERSION       DEPLOYED              SCHEDULE                      FROM
        order     1.0           2024-01-31T09:00:00Z                                order.sw.yaml
        order     1.1 (latest)  2024-01-31T09:00:00Z  next at 2024-02-01T09:00:00Z  order.sw.yaml
        order     2 (latest)    2024-01-31T09:00:00Z  paused                        order.sw.yaml
        ");
    }
}
