//! `swirl list`

use serde_json::Value;

use crate::client::{Server, timeline::shown};
use crate::terminal::Terminal;

/// Lists instances, newest first.
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_long_help = "\
Examples:
  swirl list
  swirl list --workflow order --status faulted
  swirl list --limit 1000 --output json"
)]
pub struct Args {
    /// Of this workflow.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,

    /// Of this version of it.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// In this status: running, completed, faulted, cancelled or terminated.
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// Started with this key.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Those that come after this instance.
    #[arg(long, value_name = "ID")]
    after: Option<String>,

    /// How many at most, up to 1000.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    limit: u32,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let limit = args.limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    for (name, value) in [
        ("workflow", &args.workflow),
        ("version", &args.version),
        ("status", &args.status),
        ("key", &args.key),
        ("after", &args.after),
    ] {
        query.extend(value.as_deref().map(|value| (name, value)));
    }
    args.server.run(async |client| {
        let answer = client.get(&["instances"], &query).await?;
        answer.show(terminal, text)
    })
}

fn text(body: &Value) -> String {
    let empty = Vec::new();
    let instances = body["instances"].as_array().unwrap_or(&empty);
    let rows: Vec<[String; 4]> = instances
        .iter()
        .map(|row| {
            let suspended = match row["suspended"].as_bool() {
                Some(true) => ", suspended",
                _ => "",
            };
            [
                shown(&row["id"]),
                format!("{}:{}", shown(&row["workflow"]), shown(&row["version"])),
                format!("{}{suspended}", shown(&row["status"])),
                shown(&row["startedAt"]),
            ]
        })
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let (id, workflow, status) = (width(0), width(1), width(2));
    let mut text = String::new();
    for row in &rows {
        let line = format!(
            "{:<id$}  {:<workflow$}  {:<status$}  {}",
            row[0], row[1], row[2], row[3]
        );
        text.push_str(&line);
        text.push('\n');
    }
    if let Some(next) = body["next"].as_str() {
        text.push_str(&format!("there may be more: --after {next}\n"));
    }
    text
}
