//! The printed results of scenarios.

use std::path::PathBuf;
use std::time::Duration;

use super::expect::Difference;

/// The result of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Passed,
    /// Expectations that aren't met; never empty.
    Failed(Vec<Difference>),
    /// The run itself failed, with the reason.
    Broken(String),
    /// The scenario was skipped, with the reason.
    Skipped(String),
}

/// One scenario that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub file: PathBuf,
    pub name: String,
    pub outcome: Outcome,
    /// In real time.
    pub took: Duration,
}

/// A path without a runnable scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub path: PathBuf,
    /// A message that includes the file's name.
    pub message: String,
}

/// The number of scenarios by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    /// Files that could not be read, and scenarios that refer to such a file.
    pub unreadable: usize,
}

impl Tally {
    pub fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed(_) | Outcome::Broken(_) => self.failed += 1,
            Outcome::Skipped(_) => self.skipped += 1,
        }
    }

    /// The last line: `N passed, N failed`.
    pub fn line(&self) -> String {
        let Tally {
            passed,
            failed,
            skipped,
            ..
        } = self;
        match skipped {
            0 => format!("{passed} passed, {failed} failed"),
            _ => format!("{passed} passed, {failed} failed, {skipped} skipped"),
        }
    }

    /// 0: all passed; 1: some failed; 2: a file could not be read.
    pub fn exit_code(&self) -> u8 {
        match (self.unreadable, self.failed) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        }
    }
}

impl Verdict {
    /// One line, followed by the differences. Ends with a line break.
    pub fn text(&self, colour: bool) -> String {
        let (word, code) = match &self.outcome {
            Outcome::Passed => ("ok", "32"),
            Outcome::Failed(_) | Outcome::Broken(_) => ("FAILED", "31"),
            Outcome::Skipped(_) => ("skipped", "33"),
        };
        let word = if colour {
            format!("\x1b[{code}m{word:7}\x1b[0m")
        } else {
            format!("{word:7}")
        };
        let mut text = format!(
            "{word} {} ({})\n",
            one_line(&self.name),
            self.file.display()
        );
        match &self.outcome {
            Outcome::Passed => {}
            Outcome::Failed(differences) => text.push_str(&indent(&details(differences))),
            Outcome::Broken(why) | Outcome::Skipped(why) => text.push_str(&indent(why)),
        }
        text
    }
}

/// The differences as plain text.
pub fn details(differences: &[Difference]) -> String {
    let mut text = String::new();
    for Difference {
        what,
        message,
        details,
    } in differences
    {
        text.push_str(&format!("{what}: {message}\n"));
        for line in details {
            text.push_str(&format!("  {}\n", line.trim_end()));
        }
    }
    text
}

/// Names may come from anywhere, and must not break the line or the terminal.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn indent(text: &str) -> String {
    text.lines()
        .map(|line| format!("        {}\n", one_line(line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(outcome: Outcome) -> Verdict {
        Verdict {
            file: PathBuf::from("a/b.scenario.yaml"),
            name: "Two\nlines".to_owned(),
            outcome,
            took: Duration::from_millis(12),
        }
    }

    #[test]
    fn each_scenario_has_a_line_and_its_differences() {
        let failed = Outcome::Failed(vec![
            Difference {
                what: "status".into(),
                message: "expected completed, got faulted".into(),
                details: vec![],
            },
            Difference {
                what: "output".into(),
                message: "differs".into(),
                details: vec!["/a: expected 1, got 2".into()],
            },
        ]);
        let text: String = [
            Outcome::Passed,
            failed,
            Outcome::Broken("no".into()),
            Outcome::Skipped("real time".into()),
        ]
        .map(|outcome| verdict(outcome).text(false))
        .concat();
        insta::assert_snapshot!(text, @r#"
        ok      Two lines (a/b.scenario.yaml)
        FAILED  Two lines (a/b.scenario.yaml)
                status: expected completed, got faulted
                output: differs
                  /a: expected 1, got 2
        FAILED  Two lines (a/b.scenario.yaml)
                no
        skipped Two lines (a/b.scenario.yaml)
                real time
        "#);
        assert!(
            verdict(Outcome::Passed)
                .text(true)
                .starts_with("\x1b[32mok")
        );
    }

    #[test]
    fn last_line_and_exit_code() {
        let mut tally = Tally::default();
        assert_eq!(
            (tally.line().as_str(), tally.exit_code()),
            ("0 passed, 0 failed", 0)
        );
        for outcome in [
            Outcome::Passed,
            Outcome::Passed,
            Outcome::Broken(String::new()),
        ] {
            tally.count(&outcome);
        }
        assert_eq!(
            (tally.line().as_str(), tally.exit_code()),
            ("2 passed, 1 failed", 1)
        );
        tally.count(&Outcome::Skipped(String::new()));
        tally.unreadable = 1;
        assert_eq!(
            (tally.line().as_str(), tally.exit_code()),
            ("2 passed, 1 failed, 1 skipped", 2)
        );
    }
}
