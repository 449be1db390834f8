//! `swirl audit`

use serde_json::Value;
use swirl_presentation::timeline::shown;

use crate::client::Server;
use crate::listing;
use crate::terminal::Terminal;

/// Lists the actions of operators, newest first.
///
/// Each line says who did what, when and why: actions on instances, batches, definitions, schedules, dead letters and
/// saved views. A batch is one line; the histories of its instances have the details. A coordinator keeps the newest
/// 10,000 ('coordinator.keep_audit_max').
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl audit
  swirl audit --by ann --action cancel
  swirl audit --subject 2f6c41d09a7be853c1640f27
  swirl audit --kind definition --limit 1000 --output json")]
pub struct Args {
    /// Only this action, such as cancel, retry, migrate, batch, deploy or schedule-pause.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,

    /// Only the actions of the caller with this name: that of its token, or the one that the provider gives.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Only actions on objects of this kind: instance, batch, definition, schedule, dead-letter or view.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Only actions on the object with this id.
    #[arg(long, value_name = "ID")]
    subject: Option<String>,

    /// Continue where another listing ended.
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,

    /// The maximum number, up to 1000.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    limit: u32,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let limit = args.limit.to_string();
    let filters = [
        ("action", &args.action),
        ("by", &args.by),
        ("kind", &args.kind),
        ("subject", &args.subject),
        ("after", &args.after),
    ];
    let query = listing::query(&limit, &filters);
    args.server.run(async |client| {
        let answer = client.get(&["audit"], &query).await?;
        answer.show_page(terminal, text, listing::more)
    })
}

fn text(body: &Value) -> String {
    let entries = body["entries"].as_array().into_iter().flatten();
    entries.map(line).collect()
}

fn line(entry: &Value) -> String {
    let subject = &entry["subject"];
    let mut line = format!("{}  ", shown(&entry["at"]));
    if entry["by"].is_string() {
        line.push_str(&format!("{}  ", shown(&entry["by"])));
    }
    line.push_str(&format!(
        "{}  {} {}",
        shown(&entry["action"]),
        shown(&subject["kind"]),
        shown(&subject["id"])
    ));
    if subject["version"].is_string() {
        line.push_str(&format!(" {}", shown(&subject["version"])));
    }
    let details = entry["details"].as_object().into_iter().flatten();
    for (place, (name, value)) in details.enumerate() {
        let before = if place == 0 { "  (" } else { ", " };
        line.push_str(&format!("{before}{name}: {}", shown(value)));
    }
    if entry["details"]
        .as_object()
        .is_some_and(|all| !all.is_empty())
    {
        line.push(')');
    }
    if entry["reason"].is_string() {
        line.push_str(&format!("  because: {}", shown(&entry["reason"])));
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_actor_action_object_and_reason() {
        let rerun = json!({
            "at": "2026-01-31T09:00:00.000Z", "by": "ann", "action": "rerun",
            "subject": {"kind": "instance", "id": "i1"}, "reason": "the card was wrong",
            "details": {"state": "Charge", "workflow": "order"},
        });
        assert_eq!(
            line(&rerun),
            "2026-01-31T09:00:00.000Z  ann  rerun  instance i1  (state: Charge, workflow: order)  \
             because: the card was wrong\n"
        );
        let deploy = json!({
            "at": "2026-01-31T09:00:00.000Z", "by": null, "action": "deploy",
            "subject": {"kind": "definition", "id": "order", "version": "1.0"}, "reason": null, "details": {},
        });
        assert_eq!(
            line(&deploy),
            "2026-01-31T09:00:00.000Z  deploy  definition order 1.0\n"
        );
    }
}
