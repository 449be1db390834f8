//! The conditions, sleeps, retries and repetitions of actions.

use swirl_model::workflow::{Action, ErrorSet, Repeat, Retry, RetryErrors, State, Workflow};

use crate::line::{Line, Sign};
use crate::words;

/// The lines below an action.
pub fn of_action(workflow: &Workflow, action: &Action) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(condition) = action.condition {
        let text = format!("if {}", words::text(workflow, condition));
        lines.push(Line::detail(Sign::None, text));
    }
    for (period, when) in [
        (&action.sleep_before, "before"),
        (&action.sleep_after, "after"),
    ] {
        lines.extend(period.as_ref().map(|period| {
            let text = format!("sleeps {} {when} it", words::period(workflow, period));
            Line::detail(Sign::Time, text)
        }));
    }
    lines.extend(
        action
            .repeat
            .as_ref()
            .map(|rule| Line::detail(Sign::Again, repeat(workflow, rule))),
    );
    if let Some(rule) = &action.retry
        && let Some(text) = retry(workflow, &rule.policy)
    {
        let names = |ids| words::error_names(workflow, ids);
        let of = match &rule.errors {
            RetryErrors::All => String::new(),
            RetryErrors::Only(ids) => format!(", for {}", names(ids)),
            RetryErrors::Except(ids) if ids.is_empty() => String::new(),
            RetryErrors::Except(ids) => format!(", not for {}", names(ids)),
            RetryErrors::When(test) => format!(", if {}", words::text(workflow, *test)),
        };
        lines.push(Line::detail(Sign::Again, format!("{text}{of}")));
    }
    lines.extend(action.on_errors.iter().filter_map(|handler| {
        let text = retry(workflow, handler.retry.as_ref()?)?;
        let of = of_errors(workflow, &handler.errors);
        Some(Line::detail(Sign::Again, format!("{text}{of}")))
    }));
    lines
}

/// The retries that a state permits.
pub fn of_state(workflow: &Workflow, state: &State) -> Vec<Line> {
    let rules = state
        .retries
        .iter()
        .map(|rule| (&rule.errors, &rule.policy));
    let handlers = state.on_errors.iter().filter_map(|handler| {
        let retry = handler.retry.as_ref()?;
        Some((&handler.errors, &retry.policy))
    });
    rules
        .chain(handlers)
        .filter_map(|(errors, policy)| {
            let text = retry(workflow, policy)?;
            let of = of_errors(workflow, errors);
            Some(Line::new(Sign::Again, format!("{text}{of}")))
        })
        .collect()
}

/// Empty if it applies to all errors.
fn of_errors(workflow: &Workflow, errors: &ErrorSet) -> String {
    match errors {
        ErrorSet::Any => String::new(),
        ErrorSet::Except(ids) if ids.is_empty() => String::new(),
        errors => format!(", for {}", words::errors(workflow, errors)),
    }
}

/// `None` if there are no retries.
fn retry(workflow: &Workflow, policy: &Retry) -> Option<String> {
    let mut text = match policy.retries_max {
        Some(0) => return None,
        Some(1) => "1 retry".to_owned(),
        Some(count) => format!("up to {count} retries"),
        None => "unlimited retries".to_owned(),
    };
    let period = |period| words::period(workflow, period);
    if let Some(delay) = &policy.delay {
        text.push_str(&format!(", after {}", period(delay)));
    }
    if let Some(increment) = &policy.increment {
        text.push_str(&format!(", each {} later", period(increment)));
    }
    if let Some(factor) = policy.multiplier.filter(|factor| *factor != 1.0) {
        text.push_str(&format!(", each × {factor}"));
    }
    if let Some(max) = &policy.max_delay {
        text.push_str(&format!(", at most {}", period(max)));
    }
    Some(text)
}

fn repeat(workflow: &Workflow, rule: &Repeat) -> String {
    let mut text = "repeated".to_owned();
    if let Some(max) = rule.max {
        text.push_str(&format!(", at most {max} times"));
    }
    if let Some(test) = rule.test {
        text.push_str(&format!(", while {}", words::text(workflow, test)));
    }
    if !rule.stop_on.is_empty() {
        let names: Vec<&str> = rule
            .stop_on
            .iter()
            .map(|event| &*workflow[*event].name)
            .collect();
        text.push_str(&format!(", until {}", names.join(" or ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use swirl_spec::resource::MapResources;

    use crate::{Format, render};

    const DOCUMENT: &str = r#"
id: t
version: "1"
specVersion: "0.8"
start: Pay
functions:
  - {name: charge, type: expression, operation: ".a"}
  - {name: log, type: custom, operation: sysout}
errors: [{name: Busy, code: "503"}, {name: Gone, code: "410"}]
retries:
  - {name: often, delay: PT2S, multiplier: 2, maxDelay: PT1M, maxAttempts: 4}
  - {name: never, maxAttempts: 0}
  - {name: later, delay: PT5S, increment: PT1S, maxAttempts: 2}
autoRetries: true
states:
  - name: Pay
    type: operation
    actions:
      - functionRef: charge
        condition: '${ .total > 0 and .currency == "<EUR>" and .customer.isKnown }'
        sleep: {before: PT5S, after: PT1M}
        retryRef: often
        nonRetryableErrors: [Gone]
      - {name: Plain, functionRef: log, retryRef: never}
      - {name: Late, functionRef: log, retryRef: later}
    transition: Choose
  - name: Choose
    type: switch
    dataConditions:
      - {name: rich, condition: "${ .total > 1000 }", end: true}
    defaultCondition: {end: true}
"#;

    fn drawn(format: Format) -> String {
        let options = swirl_spec::Options::default();
        let reading = swirl_spec::read(DOCUMENT.as_bytes(), &MapResources::default(), &options);
        render(&reading.workflow.expect("it is read"), format)
    }

    #[test]
    fn mermaid_shows_conditions_and_repetitions_of_actions() {
        let text = drawn(Format::Mermaid);
        let pay = text.lines().find(|line| line.contains("Pay")).unwrap();
        let pay = pay
            .replace("#62;", ">")
            .replace("#34;", "'")
            .replace("<br/>", "\n");
        for line in [
            "call charge\nif .total > 0 and .currency == ",
            "\nsleeps PT5S before it\nsleeps PT1M after it\nup to 4 retries, after PT2S, each × 2, …",
            "\ncall Plain#58; log\ncall Late#58; log\nup to 2 retries, after PT5S, each PT1S …",
        ] {
            assert!(pay.contains(line), "{line}\n--\n{pay}");
        }
    }

    #[test]
    fn truncated_texts_are_in_a_tooltip() {
        let svg = drawn(Format::Svg);
        let condition =
            "if .total &gt; 0 and .currency == &quot;&lt;EUR&gt;&quot; and .customer.isKnown";
        assert!(
            svg.contains(&format!("<title>{condition}</title>")),
            "{svg}"
        );
        for tooltip in [
            "<title>Pay: operation\ncharge\n",
            "<title>Pay → Choose</title>",
            "<title>Choose → end\nrich: .total &gt; 1000</title>",
            "<title>start → Pay</title>",
        ] {
            assert!(svg.contains(tooltip), "{tooltip}\n{svg}");
        }
        for text in [
            "sleeps PT5S before it",
            "sleeps PT1M after it",
            "up to 4 retries, after PT2S",
        ] {
            assert!(svg.contains(text), "{text}\n{svg}");
        }
        assert!(!svg.contains(">0 retries"), "{svg}");
    }

    #[test]
    fn retries_of_older_and_newer_editions() {
        let document = r#"
id: t
version: "1"
specVersion: "0.5"
events: []
functions: [{name: f, operation: "http://localhost/api.json#f"}]
retries: [{name: r, delay: PT1S, maxAttempts: 3}]
states:
  - name: A
    type: operation
    start: {kind: default}
    actions: [{functionRef: {refName: f}}]
    onErrors: [{error: "*", retryRef: r, end: {kind: default}}]
    end: {kind: default}
"#;
        let options = swirl_spec::Options::default();
        let mut resources = MapResources::default();
        resources.insert("http://localhost/api.json", "{}");
        let reading = swirl_spec::read(document.as_bytes(), &resources, &options);
        let workflow = reading.workflow.expect("it is read");
        let text = render(&workflow, Format::Mermaid);
        assert!(
            text.contains("call f<br/>up to 3 retries, after PT1S\" as s1"),
            "{text}"
        );
    }
}
