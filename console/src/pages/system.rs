//! The server itself: its health and some figures.

use askama::Template;
use axum::http::StatusCode;
use swirl_api::Instant;
use swirl_api::server::{METRICS, READY};
use swirl_api::system::{self, CHECKS, CheckStatus, SYSTEM};

use super::lateness::{self, Fact};
use crate::answer::{Answer, page};
use crate::shell::Shell;
use crate::visitor::Visitor;

#[derive(Template)]
#[template(path = "system.html")]
struct Page {
    shell: Shell,
    ready: bool,
    detail: String,
    limited: Vec<String>,
    metrics: Vec<(String, String)>,
    facts: Vec<Fact>,
    checks: Checks,
}

/// The checks of the servers behind it.
struct Checks {
    /// The visitor may see them.
    allowed: bool,
    /// There are no results yet.
    at: Option<Instant>,
    running: bool,
    errors: usize,
    warnings: usize,
    rows: Vec<Check>,
}

struct Check {
    name: String,
    /// For the style sheet, then for people.
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    message: String,
    hint: String,
    /// The page of what was found; empty if there is none.
    page: &'static str,
}

/// The figures that are shown, with their names.
const FIGURES: [(&str, &str); 6] = [
    ("swirl_instances", "Stored instances"),
    ("swirl_running_instances", "Running instances"),
    (
        "swirl_queue_pending",
        "Messages that are waiting for a process",
    ),
    (
        "swirl_queue_oldest_seconds",
        "How long the oldest of them has been waiting, in seconds",
    ),
    (
        "process_memory_usage_bytes",
        "Memory of this process, in MiB",
    ),
    (
        "process_cpu_time_seconds_total",
        "Processor time of this process, in seconds",
    ),
];

pub async fn show(visitor: Visitor) -> Answer {
    let shell = Shell::new(&visitor, "system", "System").await?;
    let (ready, detail, limited) = match visitor.asking.ask(READY.ask()).await {
        Ok(health) => (true, String::new(), health.limited),
        Err(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE => {
            (false, refusal.problem.detail, Vec::new())
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let metrics = visitor.asking.text(METRICS.ask()).await;
    let metrics = metrics.unwrap_or_default();
    let system = visitor.asking.ask(SYSTEM.ask()).await?;
    let checks = match shell.may_operate {
        true => visitor.asking.ask(CHECKS.ask()).await?,
        false => system::Checks::default(),
    };
    page(&Page {
        facts: lateness::facts(&system),
        checks: Checks::new(shell.may_operate, checks),
        shell: shell.with_news(),
        ready,
        detail,
        limited,
        metrics: figures(&metrics),
    })
}

impl Checks {
    fn new(allowed: bool, found: system::Checks) -> Checks {
        let rows: Vec<Check> = found.checks.into_iter().map(check).collect();
        let count = |class: &str| rows.iter().filter(|row| row.class == class).count();
        Checks {
            allowed,
            at: found.checked_at,
            running: found.running,
            errors: count("bad"),
            warnings: count("warning"),
            rows,
        }
    }
}

fn check(one: system::Check) -> Check {
    let (class, sign, word) = match one.status {
        CheckStatus::Ok => ("good", "✓", "all right"),
        CheckStatus::Warning => ("warning", "!", "unusual"),
        _ => ("bad", "✕", "wrong"),
    };
    Check {
        page: match (one.check.as_str(), class) {
            ("nats-dead-letters", "warning") => "/console/events",
            _ => "",
        },
        name: one.check,
        class,
        sign,
        word,
        message: one.message,
        hint: one.hint.unwrap_or_default(),
    }
}

/// The sum of each figure over its labels.
fn figures(metrics: &str) -> Vec<(String, String)> {
    let of = |name: &str| {
        let lines = metrics.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.reduce(|sum, value| sum + value)
    };
    let all = FIGURES.iter().filter_map(|(name, title)| {
        let value = match name.ends_with("_bytes") {
            true => of(name)? / f64::from(1 << 20),
            false => of(name)?,
        };
        Some((
            (*title).to_owned(),
            format!("{}", (value * 100.0).round() / 100.0),
        ))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_have_a_sign_and_a_word_each() {
        let found = serde_json::json!({"checkedAt": "2024-01-31T09:00:00.000Z", "running": false, "checks": [
            {"check": "redis", "status": "ok", "message": "Redis 7.2", "hint": null},
            {"check": "redis-eviction", "status": "warning", "message": "may evict", "hint": "set noeviction"},
            {"check": "nats", "status": "error", "message": "no answer", "hint": "unusual"},
        ]});
        let checks = Checks::new(true, serde_json::from_value(found).unwrap());
        assert_eq!((checks.errors, checks.warnings), (1, 1));
        let words: Vec<&str> = checks.rows.iter().map(|row| row.word).collect();
        assert_eq!(words, ["all right", "unusual", "wrong"]);
        assert_eq!(checks.rows[1].hint, "set noeviction");
    }

    #[test]
    fn figures_are_summed_over_their_labels() {
        let text = "# HELP x\nswirl_running_instances{does=\"a\"} 2\nswirl_running_instances{does=\"b\"} 3\n\
                    swirl_running_instances_other 9\nprocess_memory_usage_bytes 85790720\nprocess_cpu_time_seconds_total 1.234\n";
        assert_eq!(
            figures(text),
            [
                ("Running instances".to_owned(), "5".to_owned()),
                (
                    "Memory of this process, in MiB".to_owned(),
                    "81.82".to_owned()
                ),
                (
                    "Processor time of this process, in seconds".to_owned(),
                    "1.23".to_owned()
                ),
            ]
        );
    }
}
