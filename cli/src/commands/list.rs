//! `swirl list`

use serde_json::{Map, Value};
use swirl_api::instance::{InstanceSummary, Instances, LIST, ListQuery};
use swirl_api::{Condition, Status};
use swirl_presentation::timeline::{clean, shown, told};

use crate::client::Server;
use crate::listing;
use crate::terminal::Terminal;
use crate::text::{short, table};

/// Lists instances, newest first.
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_long_help = "\
Examples:
  swirl list
  swirl list --workflow order --status faulted
  swirl list --status waiting
  swirl list --query 'status = faulted and started > -1h'
  swirl list --query 'workflow = order and error = FunctionError and state = Charge'
  swirl list --query 'id ^= c7f' --limit 20
  swirl list --query '@orderId = o-17 or @total >= 1000'
  swirl list --limit 1000 --output json

Queries compare fields with =, !=, ^= (begins with), <, <=, >, >= and 'in (…)', and join comparisons with and, or, not
and parentheses. Fields: continuedFrom, ended, error, errorCode, id, instanceKey, key, parent, scheduled (for which its
schedule started it), started, state (in which it failed), status, suspended, version, workflow; @NAME is a search
attribute that a definition declares. Instants are 2024-01-31T09:00:00Z, 2024-01-31, now, or counted from now: -90s,
-5m, -1h, -7d, -2w."
)]
pub struct Args {
    /// Only instances of this workflow.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,

    /// Only instances with this version of the workflow.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// Only instances in this status: running, completed, faulted, cancelled or terminated. Running instances may also
    /// be waiting (for an event, an answer or a time) or suspended.
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// Only the instance that was started with this key.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Only instances that match this query.
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,

    /// Continue where another listing ended, or after this instance.
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
        workflow: args.workflow.clone(),
        version: args.version.clone(),
        status: args.status.as_deref().map(Condition::from),
        key: args.key.clone(),
        query: args.query.clone(),
        after: args.after.clone(),
        limit: Some(args.limit),
        ..ListQuery::default()
    };
    args.server.run(async |client| {
        let answer = client.ask(LIST.ask().query(query)).await?;
        answer.show_page(terminal, text, more)
    })
}

const HEADER: [&str; 7] = [
    "ID", "WORKFLOW", "STATUS", "STATE", "STARTED", "FOUND BY", "ERROR",
];
/// The longest error in a line, in characters.
const ERROR_CHARS_MAX: usize = 80;

fn text(page: &Instances) -> String {
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(page.instances.iter().map(row));
    match rows.iter().skip(1).all(|row| row[5].is_empty()) {
        true => {
            let rows: Vec<[String; 6]> = rows.into_iter().map(without_attributes).collect();
            table(&rows)
        }
        false => table(&rows),
    }
}

fn more(page: &Instances) -> Option<String> {
    let more = listing::after(page.next.as_deref())?;
    Some(match page.instances.is_empty() {
        false => more,
        true => format!("no match yet among {} instances; {more}", page.scanned),
    })
}

/// The status of an instance as text. Running instances may be shown as waiting or suspended.
pub(super) fn status(status: &Status, suspended: bool, waiting: bool) -> String {
    match (suspended, waiting) {
        (true, _) => "suspended".to_owned(),
        (false, true) => "waiting".to_owned(),
        (false, false) => clean(status.as_str()),
    }
}

fn without_attributes(
    [id, workflow, status, state, started, _, error]: [String; 7],
) -> [String; 6] {
    [id, workflow, status, state, started, error]
}

/// Search attributes with their values.
pub(super) fn attributes(all: &Map<String, Value>) -> String {
    let all = all.iter();
    let all: Vec<String> = all
        .map(|(name, value)| format!("{name} = {}", shown(value)))
        .collect();
    all.join(", ")
}

fn row(row: &InstanceSummary) -> [String; 7] {
    let error = row.error.as_ref();
    let error = error.map(|error| short(told(error), ERROR_CHARS_MAX, "…"));
    [
        clean(&row.id),
        clean(&format!("{}:{}", row.workflow, row.version)),
        status(&row.status, row.suspended, row.waiting.unwrap_or(false)),
        clean(row.state.as_deref().unwrap_or_default()),
        row.started_at.to_string(),
        attributes(&row.attributes),
        error.unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A page with the members that all rows have.
    fn page(next: Option<&str>, mut rows: Value) -> Instances {
        for row in rows.as_array_mut().unwrap() {
            row["startedAt"] = json!("2024-01-31T09:00:00Z");
            row["suspended"] = json!(false);
        }
        let page =
            json!({"instances": rows, "complete": next.is_none(), "next": next, "scanned": 7});
        serde_json::from_value(page).unwrap()
    }

    #[test]
    fn instances_are_shown_as_a_table() {
        let body = page(
            Some("~b"),
            json!([
                {"id": "a", "workflow": "order", "version": "1.0", "status": "running", "waiting": true,
                    "state": "Await payment"},
                {"id": "b", "workflow": "hello", "version": "2.0.0", "status": "faulted", "waiting": false,
                    "state": "Charge",
                    "error": {"name": "FunctionError", "code": "503", "message": "busy"}},
            ]),
        );
        insta::assert_snapshot!(text(&body), @"
        ID  WORKFLOW     STATUS   STATE          STARTED                   ERROR
        a   order:1.0    waiting  Await payment  2024-01-31T09:00:00.000Z
        b   hello:2.0.0  faulted  Charge         2024-01-31T09:00:00.000Z  FunctionError (503): busy
        ");
        assert_eq!(more(&body).unwrap(), "there may be more: --after '~b'");
        let none = page(Some("~b"), json!([]));
        assert_eq!(
            more(&none).unwrap(),
            "no match yet among 7 instances; there may be more: --after '~b'"
        );
        assert_eq!(more(&page(None, json!([]))), None);
    }

    #[test]
    fn search_attributes_have_a_column_if_there_are_any() {
        let body = page(
            None,
            json!([
                {"id": "a", "workflow": "order", "version": "1.0", "status": "completed", "suspended": false,
                    "attributes": {"orderId": "o1", "total": 12.5}},
                {"id": "b", "workflow": "hello", "version": "2.0.0", "status": "completed", "suspended": false,
                    "startedAt": "2024-01-31T09:00:00Z"},
            ]),
        );
        insta::assert_snapshot!(text(&body), @"
        ID  WORKFLOW     STATUS     STATE  STARTED                   FOUND BY                    ERROR
        a   order:1.0    completed         2024-01-31T09:00:00.000Z  orderId = o1, total = 12.5
        b   hello:2.0.0  completed         2024-01-31T09:00:00.000Z
        ");
    }
}
