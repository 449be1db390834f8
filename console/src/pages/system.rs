//! The server itself: its health and some figures.

use askama::Template;
use axum::http::StatusCode;
use swirl_api::Instant;
use swirl_api::server::READY;
use swirl_api::system::{self, CHECKS, CheckStatus, SYSTEM};

use super::lateness::{self, Fact, Process};
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
    facts: Vec<Fact>,
    processes: Vec<Process>,
    /// Why work waits; empty if nothing is lacking.
    lacking: &'static str,
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

pub async fn show(visitor: Visitor) -> Answer {
    let shell = Shell::new(&visitor, "system", "System").await?;
    let (ready, detail, limited) = match visitor.asking.ask(READY.ask()).await {
        Ok(health) => (true, String::new(), health.limited),
        Err(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE => {
            (false, refusal.problem.detail, Vec::new())
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let system = visitor.asking.ask(SYSTEM.ask()).await?;
    let checks = match shell.may_operate {
        true => visitor.asking.ask(CHECKS.ask()).await?,
        false => system::Checks::default(),
    };
    let facts = lateness::facts(&system);
    let processes = lateness::processes(system.processes);
    page(&Page {
        facts,
        lacking: lateness::lacking(&processes),
        processes,
        checks: Checks::new(shell.may_operate, checks),
        shell: shell.with_news(),
        ready,
        detail,
        limited,
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
}
