//! The results of the checks, for people and for programs.

use serde_json::{Value, json};
use swirl_ports::{Finding, Severity};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Ok,
    /// Unusual in production.
    Warning,
    /// Something doesn't work, or soon won't.
    Error,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Error => "error",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// A stable name for programs, such as `redis-eviction`.
    pub name: String,
    pub status: Status,
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

#[derive(Debug, Default)]
pub struct Report {
    pub checks: Vec<Check>,
}

impl Report {
    pub fn ok(&mut self, name: &str, message: impl Into<String>) {
        self.add(name, Status::Ok, message, None);
    }

    pub fn warning(&mut self, name: &str, message: impl Into<String>, hint: &str) {
        self.add(name, Status::Warning, message, Some(hint));
    }

    pub fn error(&mut self, name: &str, message: impl Into<String>, hint: &str) {
        self.add(name, Status::Error, message, Some(hint));
    }

    /// Adds a backend's finding, under its server's name.
    pub fn find(&mut self, server: &str, finding: Finding) {
        let status = match finding.severity {
            Severity::Warning => Status::Warning,
            Severity::Error => Status::Error,
        };
        let name = format!("{server}-{}", finding.code);
        self.add(&name, status, finding.message, Some(finding.hint));
    }

    pub fn add(
        &mut self,
        name: &str,
        status: Status,
        message: impl Into<String>,
        hint: Option<&str>,
    ) {
        self.checks.push(Check {
            name: name.to_owned(),
            status,
            message: message.into(),
            hint: hint.map(str::to_owned),
        });
    }

    /// Whether all checks have passed.
    pub fn healthy(&self) -> bool {
        self.count(Status::Error) == 0
    }

    fn count(&self, status: Status) -> usize {
        let checks = self.checks.iter();
        checks.filter(|check| check.status == status).count()
    }

    pub fn text(&self, colours: bool) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let word = format!("{:<8}", check.status.as_str());
            let word = match (colours, check.status) {
                (false, _) => word,
                (true, Status::Ok) => format!("\x1b[32m{word}\x1b[0m"),
                (true, Status::Warning) => format!("\x1b[33m{word}\x1b[0m"),
                (true, Status::Error) => format!("\x1b[31m{word}\x1b[0m"),
            };
            text.push_str(&format!("{word} {}: {}\n", check.name, check.message));
            if let Some(hint) = &check.hint {
                text.push_str(&format!("         = hint: {hint}\n"));
            }
        }
        text.push_str(&format!(
            "{} checks: {} errors, {} warnings\n",
            self.checks.len(),
            self.count(Status::Error),
            self.count(Status::Warning)
        ));
        text
    }

    pub fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| {
                json!({
                    "check": check.name,
                    "status": check.status.as_str(),
                    "message": check.message,
                    "hint": check.hint,
                })
            })
            .collect();
        json!({"healthy": self.healthy(), "checks": checks})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_includes_hints() {
        let mut report = Report::default();
        report.ok("a", "is well");
        report.warning("b", "is odd", "look at it");
        assert!(report.healthy());
        report.error("c", "is broken", "fix it");
        assert!(!report.healthy());
        assert_eq!(
            report.text(false),
            "ok       a: is well\n\
             warning  b: is odd\n         = hint: look at it\n\
             error    c: is broken\n         = hint: fix it\n\
             3 checks: 1 errors, 1 warnings\n"
        );
        assert_eq!(report.json()["checks"][2]["hint"], "fix it");
    }
}
