//! Results as JUnit XML, which most CI servers can read.

use std::path::Path;
use std::time::Duration;

use super::report::{Outcome, Unreadable, Verdict, details};

/// A test suite with a test case for each scenario and each unreadable file.
pub fn xml(verdicts: &[Verdict], unreadable: &[Unreadable]) -> String {
    let count = |wanted: fn(&Outcome) -> bool| {
        verdicts
            .iter()
            .filter(|verdict| wanted(&verdict.outcome))
            .count()
    };
    let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let errors = count(|outcome| matches!(outcome, Outcome::Broken(_))) + unreadable.len();
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let took: Duration = verdicts.iter().map(|verdict| verdict.took).sum();
    let seconds = took.as_secs_f64();
    let totals = format!(
        r#"name="swirl test" tests="{}" failures="{failures}" errors="{errors}" skipped="{skipped}" time="{seconds:.3}""#,
        verdicts.len() + unreadable.len()
    );
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {totals}>\n  <testsuite {totals}>\n"
    );
    for verdict in verdicts {
        let body = match &verdict.outcome {
            Outcome::Passed => None,
            Outcome::Failed(differences) => {
                let first = differences.first();
                let first = first.map(|first| format!("{}: {}", first.what, first.message));
                Some(("failure", first.unwrap_or_default(), details(differences)))
            }
            Outcome::Broken(why) => Some(("error", why.clone(), why.clone())),
            Outcome::Skipped(why) => Some(("skipped", why.clone(), String::new())),
        };
        let seconds = verdict.took.as_secs_f64();
        case(&mut xml, &verdict.file, &verdict.name, seconds, body);
    }
    for Unreadable { path, message } in unreadable {
        let name = path.display().to_string();
        let body = Some(("error", message.clone(), message.clone()));
        case(&mut xml, path, &name, 0.0, body);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// `body`: a tag, its message and its text.
fn case(
    xml: &mut String,
    file: &Path,
    name: &str,
    seconds: f64,
    body: Option<(&str, String, String)>,
) {
    let file = escape(&file.display().to_string());
    xml.push_str(&format!(
        r#"    <testcase name="{}" classname="{file}" file="{file}" time="{seconds:.3}""#,
        escape(name),
    ));
    match body {
        None => xml.push_str("/>\n"),
        Some((tag, message, text)) => xml.push_str(&format!(
            ">\n      <{tag} message=\"{}\">{}</{tag}>\n    </testcase>\n",
            escape(&message),
            escape(&text).replace("&#10;", "\n")
        )),
    }
}

/// For attributes, in which a line break must be written as a number. Characters that XML 1.0 doesn't allow are
/// replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\r' => escaped.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::Difference;
    use std::time::Duration;

    #[test]
    fn all_outcomes() {
        let failed = Outcome::Failed(vec![Difference {
            what: "output".into(),
            message: "differs".into(),
            details: vec!["/a: expected \"<\", got \u{1}".into()],
        }]);
        let outcomes = [
            Outcome::Passed,
            failed,
            Outcome::Broken("a & b".into()),
            Outcome::Skipped("real time".into()),
        ];
        let verdicts = outcomes.map(|outcome| Verdict {
            file: "f.scenario.yaml".into(),
            name: "A \"name\"".into(),
            outcome,
            took: Duration::from_millis(1),
        });
        insta::assert_snapshot!(xml(&verdicts, &[]), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="swirl test" tests="4" failures="1" errors="1" skipped="1" time="0.004">
          <testsuite name="swirl test" tests="4" failures="1" errors="1" skipped="1" time="0.004">
            <testcase name="A &quot;name&quot;" classname="f.scenario.yaml" file="f.scenario.yaml" time="0.001"/>
            <testcase name="A &quot;name&quot;" classname="f.scenario.yaml" file="f.scenario.yaml" time="0.001">
              <failure message="output: differs">output: differs
          /a: expected &quot;&lt;&quot;, got �
        </failure>
            </testcase>
            <testcase name="A &quot;name&quot;" classname="f.scenario.yaml" file="f.scenario.yaml" time="0.001">
              <error message="a &amp; b">a &amp; b</error>
            </testcase>
            <testcase name="A &quot;name&quot;" classname="f.scenario.yaml" file="f.scenario.yaml" time="0.001">
              <skipped message="real time"></skipped>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn unreadable_files_are_errors() {
        let unreadable = Unreadable {
            path: "x.scenario.yaml".into(),
            message: "x.scenario.yaml:1:1: no".into(),
        };
        insta::assert_snapshot!(xml(&[], &[unreadable]), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="swirl test" tests="1" failures="0" errors="1" skipped="0" time="0.000">
          <testsuite name="swirl test" tests="1" failures="0" errors="1" skipped="0" time="0.000">
            <testcase name="x.scenario.yaml" classname="x.scenario.yaml" file="x.scenario.yaml" time="0.000">
              <error message="x.scenario.yaml:1:1: no">x.scenario.yaml:1:1: no</error>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }
}
