//! The state of the system, at a glance.

use askama::Template;
use serde_json::Value;

use super::lateness::{self, Fact, Process};
use crate::answer::{Answer, list, page, text};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::Visitor;
use crate::words::{Pill, short, status};

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    shell: Shell,
    counts: Vec<Count>,
    failures: Vec<Failures>,
    oldest: Vec<Oldest>,
    facts: Vec<Fact>,
    processes: Vec<Process>,
    lacking: &'static str,
    empty: bool,
}

struct Count {
    pill: Pill,
    count: String,
}

struct Failures {
    workflow: String,
    state: String,
    error: String,
    message: String,
    count: u64,
    newest: String,
    workflow_path: String,
}

struct Oldest {
    id: String,
    short: String,
    path: String,
    workflow: String,
    started: String,
    suspended: bool,
}

pub async fn show(visitor: Visitor) -> Answer {
    let shell = Shell::new(&visitor, "overview", "Overview").await?;
    let found = visitor.asking.get(&["overview"], &[]).await?;
    let system = visitor.asking.get(&["system"], &[]).await?;
    let processes = lateness::processes(&system);
    let counts: Vec<Count> = list(&found, "counts")
        .iter()
        .map(|row| Count {
            pill: status(row),
            count: match row["more"] == true {
                true => format!("{}+", row["count"]),
                false => row["count"].to_string(),
            },
        })
        .collect();
    let failures = list(&found, "failures").iter().map(|row| Failures {
        workflow: text(row, "workflow"),
        state: text(row, "state"),
        error: text(row, "error"),
        message: text(row, "message"),
        count: row["count"].as_u64().unwrap_or_default(),
        newest: segment(&text(row, "newest")),
        workflow_path: segment(&text(row, "workflow")),
    });
    let oldest = list(&found, "oldest").iter().map(|row: &Value| {
        let id = text(row, "id");
        Oldest {
            short: short(&id),
            path: segment(&id),
            id,
            workflow: text(row, "workflow"),
            started: text(row, "startedAt"),
            suspended: row["suspended"] == true,
        }
    });
    page(&Page {
        shell: shell.with_news(),
        empty: counts.iter().all(|count| count.count == "0"),
        counts,
        failures: failures.collect(),
        oldest: oldest.collect(),
        facts: lateness::facts(&system),
        lacking: lateness::lacking(&processes),
        processes,
    })
}
