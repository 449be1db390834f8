//! `swirl audit`

use swirl_api::audit::{Action, AuditEntry, Kind, LIST, ListQuery};
use swirl_presentation::timeline::clean;

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
    let query = ListQuery {
        action: args.action.as_deref().map(Action::from),
        by: args.by.clone(),
        kind: args.kind.as_deref().map(Kind::from),
        subject: args.subject.clone(),
        after: args.after.clone(),
        limit: Some(args.limit),
    };
    args.server.run(async |client| {
        let answer = client.ask(LIST.ask().query(query)).await?;
        answer.show_page(
            terminal,
            |page| page.entries.iter().map(line).collect(),
            |page| listing::after(page.next.as_deref()),
        )
    })
}

fn line(entry: &AuditEntry) -> String {
    let AuditEntry {
        at,
        action,
        subject,
        ..
    } = entry;
    let mut line = format!("{at}  ");
    if let Some(by) = &entry.by {
        line.push_str(&format!("{by}  "));
    }
    line.push_str(&format!("{action}  {} {}", subject.kind, subject.id));
    if let Some(version) = &subject.version {
        line.push_str(&format!(" {version}"));
    }
    let details = entry.details.iter();
    let details: Vec<String> = details
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    if !details.is_empty() {
        line.push_str(&format!("  ({})", details.join(", ")));
    }
    if let Some(reason) = &entry.reason {
        line.push_str(&format!("  because: {reason}"));
    }
    clean(&line) + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    fn line(entry: Value) -> String {
        super::line(&from_value(entry).unwrap())
    }

    #[test]
    fn a_line_has_actor_action_object_and_reason() {
        let rerun = json!({
            "id": "1", "at": "2026-01-31T09:00:00.000Z", "by": "ann", "action": "rerun",
            "subject": {"kind": "instance", "id": "i1"}, "reason": "the card was wrong",
            "details": {"state": "Charge", "workflow": "order"},
        });
        assert_eq!(
            line(rerun),
            "2026-01-31T09:00:00.000Z  ann  rerun  instance i1  (state: Charge, workflow: order)  \
             because: the card was wrong\n"
        );
        let deploy = json!({
            "id": "1", "at": "2026-01-31T09:00:00.000Z", "by": null, "action": "deploy",
            "subject": {"kind": "definition", "id": "order", "version": "1.0"}, "reason": null, "details": {},
        });
        assert_eq!(
            line(deploy),
            "2026-01-31T09:00:00.000Z  deploy  definition order 1.0\n"
        );
    }
}
