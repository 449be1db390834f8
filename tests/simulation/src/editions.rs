//! Workflows of other editions, which generated workflows run as sub-workflows, for features that 0.8 doesn't have. The
//! order of their events, at the same time or minutes apart, doesn't depend on faults.

use crate::random::Random;
use crate::trials;

/// Workflows that those of [`generate`] start.
pub const OTHERS: &[&str] = &[COUNTER, FAILS, CLOSED, PAIR];

/// For repetitions: its output shows how often it ran.
const COUNTER: &str = r#"id: counter
name: counter
version: "1.0"
schemaVersion: "0.6"
start: C
functions: [{name: inc, type: expression, operation: "{n: ((.n // 0) + 1), counted: (.counted // [] | . + [length])}"}]
states:
  - {name: C, type: operation, actions: [{functionRef: inc}], end: true}
"#;

const FAILS: &str = r#"id: fails
name: fails
version: "1.0"
schemaVersion: "0.6"
start: C
functions: [{name: broken, operation: "a.json#broken"}]
states:
  - {name: C, type: operation, actions: [{functionRef: broken}], end: true}
"#;

/// May only be started in 2020.
const CLOSED: &str = r#"id: closed
name: closed
version: 1.0.0
tasks:
  - {name: A, type: inject, data: {closed: true}, end: {kind: default},
     start: {kind: scheduled, schedule: {interval: "2020-01-01T00:00:00Z/2020-02-01T00:00:00Z"}}}
"#;

/// Started by two events in either order, or by a third one.
const PAIR: &str = r#"id: pair
name: pair
schema-version: "0.1"
starts-at: Wait
trigger-defs:
  - {name: a, source: plan, type: pair-a}
  - {name: b, source: plan, type: pair-b}
  - {name: c, source: plan, type: pair-c}
states:
  - name: Wait
    type: EVENT
    events:
      - event-expression: "(a and b) or c"
        actions: [{function: {name: slow, type: test}, filter: {ResultPath: $.done}}]
        next-state: Done
  - {name: Done, type: OPERATION, action-mode: SEQUENTIAL, actions: [], end: true}
"#;

/// A workflow of another edition, and its events, as milliseconds after the start and type.
pub struct Other {
    pub text: String,
    pub events: Vec<(i64, String)>,
}

/// The number of kinds. The last kind waits for events that arrive minutes after the start, so it must be the first
/// thing that its case does.
pub const KINDS: usize = 9;

pub fn generate(kind: usize, id: &str, random: &mut Random) -> Other {
    let mut events = Vec::new();
    let text = match kind {
        0 => nested(id, random),
        1 => tasks(id, random),
        2 => apart(id, random),
        3 => handled(id, random),
        4 => repeated(id, random),
        5 => trials::tried(id, random),
        6 => trials::as_a_whole(id, random),
        7 => trials::chosen(id, random),
        _ => waiting(id, random, &mut events),
    };
    Other { text, events }
}

fn indented(text: &str, by: usize) -> String {
    let space = " ".repeat(by);
    let lines = text.lines().map(|line| format!("{space}{line}\n"));
    lines.collect()
}

/// 0.1: nested branches with states, whose outputs are listed; retries that match results and errors.
fn nested(id: &str, random: &mut Random) -> String {
    let filter = ["", "\n  filter: {resultPath: $.all}"][random.below(2)];
    let count = 2 + random.below(2);
    let outer = branches(random, 2, count);
    let (done, failure) = (
        "type: OPERATION, action-mode: SEQUENTIAL, actions: [], end: true",
        "type: END, status: FAILURE",
    );
    let (last, outer, version) = match random.below(12) {
        // Only the early draft, which has no version key, has END states.
        0 => (failure, outer, ""),
        1 => (done, failing_late(&outer, done, failure), ""),
        _ => (done, outer, "schema-version: \"0.1\"\n"),
    };
    let last = format!("- {{name: Done, {last}}}");
    let states = format!(
        "- name: P\n  type: PARALLEL{filter}\n  branches:\n{}  next-state: Done\n{last}\n",
        indented(&outer, 4)
    );
    format!(
        "id: {id}\nname: {id}\n{version}starts-at: P\nstates:\n{}",
        indented(&states, 2)
    )
}

/// One branch fails, long after all others are done.
fn failing_late(text: &str, done: &str, failure: &str) -> String {
    let Some(line) = text.lines().find(|line| line.contains(done)) else {
        return text.to_owned();
    };
    let space = &line[..line.len() - line.trim_start().len()];
    let late = line.replace(done, "type: DELAY, time-delay: PT20M, next-state: Bad");
    text.replacen(
        line,
        &format!("{late}\n{space}- {{name: Bad, {failure}}}"),
        1,
    )
}

fn branches(random: &mut Random, depth: usize, count: usize) -> String {
    let mut text = String::new();
    for index in 0..count {
        let mut states = String::new();
        let length = 1 + random.below(3);
        for at in 0..length {
            let next = format!("next-state: S{}", at + 1);
            states.push_str(&state_of_branch(random, depth, at, &next));
        }
        states.push_str(&format!(
            "- {{name: S{length}, type: OPERATION, action-mode: SEQUENTIAL, actions: [], end: true}}\n"
        ));
        text.push_str(&format!(
            "- name: B{index}\n  starts-at: S0\n  wait-for-completion: true\n  states:\n{}",
            indented(&states, 4)
        ));
    }
    text
}

fn state_of_branch(random: &mut Random, depth: usize, at: usize, next: &str) -> String {
    let kind = random.below(if depth > 1 { 4 } else { 3 });
    match kind {
        0 => {
            let seconds = 1 + random.below(5);
            format!("- {{name: S{at}, type: DELAY, time-delay: PT{seconds}S, {next}}}\n")
        }
        1 => {
            let function = ["quick", "slow"][random.below(2)];
            let n = random.below(10);
            format!(
                "- name: S{at}\n  type: OPERATION\n  action-mode: SEQUENTIAL\n  {next}\n  actions:\n    \
                 - function: {{name: {function}, type: test}}\n      \
                 filter: {{ResultPath: $.r{at}}}\n      \
                 retry: {{match: '{{\"n\":{n}}}', retry-interval: PT2S, max-retry: 2, {next}}}\n"
            )
        }
        2 => format!(
            "- name: S{at}\n  type: OPERATION\n  action-mode: PARALLEL\n  {next}\n  actions:\n    \
             - {{function: {{name: slow, type: test}}, filter: {{ResultPath: $.x{at}}}}}\n    \
             - function: {{name: flaky, type: test}}\n      filter: {{ResultPath: $.y{at}, OutputPath: {}}}\n      \
             retry: {{match: bad, retry-interval: PT1S, max-retry: {}, {next}}}\n",
            ["$".to_owned(), format!("$.x{at}")][random.below(2)],
            1 + random.below(4)
        ),
        _ => {
            let inner = branches(random, depth - 1, 2);
            format!(
                "- name: S{at}\n  type: PARALLEL\n  filter: {{resultPath: $.in{at}}}\n  {next}\n  branches:\n{}",
                indented(&inner, 4)
            )
        }
    }
}

/// The tasks draft: iterations of tasks with pauses and a limit, branches of tasks of which some are enough, a window
/// in the past, a guarded transition.
fn tasks(id: &str, random: &mut Random) -> String {
    let bound = ["", "max: 1, ", "max: 2, ", "max: 3, "][random.below(4)];
    let pause = ["", "timeDelay: PT1S, ", "timeDelay: PT7S, "][random.below(3)];
    let (function, n) = (["quick", "slow"][random.below(2)], random.below(10));
    let completion = [
        "completionType: and",
        "completionType: n_of_m, n: 2",
        "completionType: xor",
    ][random.below(3)];
    let year = [2020, 2023][random.below(2)];
    let guard = if random.percent(90) {
        "$.items"
    } else {
        "$.nothing"
    };
    // The ends of branches are minutes apart, so faults don't affect which of them are enough.
    let branch = |index: usize, minutes: usize| {
        format!(
            "{{name: b{index}, tasks: [{{name: D{index}, type: delay, start: {{kind: default}}, timeDelay: PT{minutes}M, \
             transition: {{nextTask: J{index}}}}}, {{name: J{index}, type: inject, data: {{j{index}: {n}}}, \
             end: {{kind: default}}}}]}}"
        )
    };
    let all = [branch(0, 9), branch(1, 1), branch(2, 5)].join(", ");
    format!(
        "id: {id}\nname: {id}\nversion: 1.0.0\nfunctions: [{{name: {function}, resource: {function}}}]\ntasks:\n  \
         - {{name: I, type: inject, start: {{kind: default}}, data: {{items: [1, 2, 3, {n}]}}, transition: {{nextTask: F}}}}\n  \
         - {{name: F, type: foreach, inputCollection: $.items, inputParameter: $.item, outputCollection: $.out, \
         {bound}{pause}tasks: [{{name: W, start: {{kind: default}}, type: operation, actions: \
         [{{functionRef: {{refName: {function}, parameters: {{k: $.item}}}}}}], transition: {{nextTask: V}}}}, \
         {{name: V, type: delay, timeDelay: PT3S, end: {{kind: default}}}}], \
         transition: {{nextTask: P, expression: {{language: jsonpath, body: \"{guard}\"}}}}}}\n  \
         - {{name: P, type: parallel, {completion}, branches: [{all}], transition: {{nextTask: Q}}}}\n  \
         - {{name: Q, type: parallel, branches: [{{name: w, tasks: [{{name: X, start: {{kind: scheduled, schedule: \
         {{interval: \"{year}-11-01T00:00:00Z/{year}-12-01T00:00:00Z\"}}}}, type: inject, data: {{open: true}}, \
         end: {{kind: default}}}}]}}], transition: {{nextTask: R}}}}\n  \
         - {{name: R, type: subflow, waitForCompletion: true, workflowId: closed, end: {{kind: default}}}}\n"
    )
}

/// The release of 0.1: branches that nothing waits for. One is done long before the end, another would be done long
/// after it.
fn apart(id: &str, random: &mut Random) -> String {
    let awaited = random.percent(50);
    let sub = "workflowId: leaf, waitForCompletion: true";
    let minutes = 1 + random.below(2);
    let third = format!(
        "{{name: third, waitForCompletion: {awaited}, states: [{{name: T, type: DELAY, start: {{kind: DEFAULT}}, \
         timeDelay: PT{minutes}M, transition: {{nextState: U}}}}, \
         {{name: U, type: RELAY, inject: {{third: true}}, end: {{kind: DEFAULT}}}}]}}"
    );
    format!(
        "id: {id}\nname: {id}\nversion: 1.0.0\nstates:\n  \
         - {{name: P, type: PARALLEL, start: {{kind: DEFAULT}}, branches: [\
         {{name: soon, waitForCompletion: false, states: [{{name: A, type: SUBFLOW, {sub}, start: {{kind: DEFAULT}}, \
         end: {{kind: DEFAULT}}}}]}}, \
         {{name: late, waitForCompletion: false, states: [{{name: B, type: DELAY, start: {{kind: DEFAULT}}, \
         timeDelay: PT5H, transition: {{nextState: C}}}}, {{name: C, type: SUBFLOW, {sub}, end: {{kind: DEFAULT}}}}]}}, \
         {third}], transition: {{nextState: D}}}}\n  \
         - {{name: D, type: DELAY, timeDelay: PT15M, end: {{kind: DEFAULT}}}}\n"
    )
}

/// 0.9: handlers of actions.
fn handled(id: &str, random: &mut Random) -> String {
    let mut actions = Vec::new();
    let count = 1 + random.below(4);
    for index in 0..count {
        let function = ["quick", "flaky", "broken", "flaky"][random.below(4)];
        let when = [
            "when: [{status: 500}], ",
            "exceptWhen: [{status: 408}], ",
            "when: [{status: 408}, {status: 500}], exceptWhen: [{status: 408}], ",
            "",
        ][random.below(4)];
        let retry = ["", "retry: twice, ", "retry: often, "][random.below(3)];
        let then = [
            "then: {transition: h}",
            "then: {end: true}",
            "then: {throw: true}",
            "",
            "",
        ][random.below(5)];
        let handler = format!("{when}{retry}{then}");
        let handler = handler.trim_end_matches(", ");
        // An empty handler is omitted.
        let handlers = match handler.is_empty() {
            true => String::new(),
            false => format!(", onErrors: [{{{handler}}}]"),
        };
        actions.push(format!(
            "{{name: a{index}, functionRef: {{refName: {function}, arguments: {{i: {index}}}}}, \
             actionDataFilter: {{toStateData: \"${{ .a{index} }}\"}}{handlers}}}"
        ));
    }
    let mode = ["sequential", "parallel"][random.below(2)];
    // If actions ran in parallel, two could fail at the same time.
    let (mode, actions) = match mode {
        "parallel" => (mode, actions[..1].to_vec()),
        _ => (mode, actions),
    };
    let state = [
        ", onErrors: [{then: {transition: h}}]",
        ", onErrors: [{when: [{status: 500}]}]",
    ][random.below(2)];
    format!(
        "name: {id}\nversion: \"1.0\"\nspecVersion: \"0.9\"\nfunctions:\n  \
         - {{name: quick, operation: \"a.json#quick\"}}\n  - {{name: flaky, operation: \"a.json#flaky\"}}\n  \
         - {{name: broken, operation: \"a.json#broken\"}}\n\
         retries: [{{name: twice, delay: PT2S, maxAttempts: 2}}, {{name: often, delay: PT1S, multiplier: 2, maxAttempts: 5}}]\n\
         states:\n  \
         - {{name: a, type: operation, actionMode: {mode}, actions: [{}]{state}, transition: b}}\n  \
         - {{name: b, type: inject, data: {{b: true}}, end: true}}\n  \
         - {{name: h, type: inject, data: {{h: true}}, end: true}}\n",
        actions.join(", ")
    )
}

/// 0.6: sub-workflows that are run repeatedly.
fn repeated(id: &str, random: &mut Random) -> String {
    let n = random.below(12);
    let repeat = |random: &mut Random| match random.below(4) {
        0 => format!("{{max: {}}}", 1 + random.below(3)),
        1 => format!("{{expression: \"${{ .n < {n} }}\", max: 4}}"),
        2 => format!("{{expression: \"${{ .n < {n} }}\", checkBefore: false, max: 4}}"),
        _ => format!("{{expression: \"${{ .n < {n} }}\"}}"),
    };
    let (first, second) = (repeat(random), repeat(random));
    let goes_on = random.percent(50);
    format!(
        "id: {id}\nname: {id}\nversion: \"1.0\"\nschemaVersion: \"0.6\"\nstart: R\nstates:\n  \
         - {{name: R, type: subflow, workflowId: counter, repeat: {first}, transition: S}}\n  \
         - {{name: S, type: subflow, workflowId: counter, repeat: {second}, transition: T}}\n  \
         - {{name: T, type: subflow, workflowId: fails, repeat: {{max: 2, continueOnError: {goes_on}}}, \
         onErrors: [{{error: \"no such\", transition: Z}}{}], transition: Z}}\n  \
         - {{name: Z, type: inject, data: {{z: true}}, end: true}}\n",
        if goes_on {
            ""
        } else {
            ", {error: \"*\", transition: Z}"
        }
    )
}

/// 0.1: entries with boolean expressions, timeouts and transitions of their own.
fn waiting(id: &str, random: &mut Random, events: &mut Vec<(i64, String)>) -> String {
    let minute = 60_000;
    let mut triggers = Vec::new();
    let comes = [random.percent(70), random.percent(70), random.percent(70)];
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        let kind = format!("{id}-{name}");
        triggers.push(format!("{{name: {name}, source: plan, type: {kind}}}"));
        if comes[index] {
            let at = 10 + 7 * ((index as i64 + random.below(3) as i64) % 3) + index as i64;
            events.push((at * minute, kind));
        }
    }
    let expression = [
        "a and b",
        "a or c",
        "(a and c) or b",
        "a and (b or c)",
        "b",
        "a and not c",
    ];
    let one = expression[random.below(expression.len())];
    let other = expression[random.below(expression.len())];
    let timeouts = ["PT5M", "PT14M30S", "PT50M"];
    let (first, second) = (timeouts[random.below(2)], timeouts[2]);
    format!(
        "id: {id}\nname: {id}\nschema-version: \"0.1\"\nstarts-at: Begin\ntrigger-defs: [{}]\nstates:\n  \
         - {{name: Begin, type: DELAY, time-delay: PT1S, next-state: Wait}}\n  - name: Wait\n    type: EVENT\n    events:\n      \
         - event-expression: \"{one}\"\n        timeout: {first}\n        \
         actions: [{{function: {{name: slow, type: test}}, filter: {{ResultPath: $.one}}}}]\n        next-state: First\n      \
         - event-expression: \"{other}\"\n        timeout: {second}\n        \
         actions: [{{function: {{name: quick, type: test}}, filter: {{ResultPath: $.two}}}}]\n        next-state: Second\n  \
         - {{name: First, type: OPERATION, action-mode: SEQUENTIAL, actions: [{{function: {{name: quick, type: test}}, \
         filter: {{ResultPath: $.first}}}}], end: true}}\n  \
         - {{name: Second, type: OPERATION, action-mode: SEQUENTIAL, actions: [{{function: {{name: quick, type: test}}, \
         filter: {{ResultPath: $.second}}}}], end: true}}\n",
        triggers.join(", ")
    )
}
