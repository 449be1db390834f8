//! Random workflows as text of edition 0.8, so that a failing one can be read.
//!
//! Their outcome doesn't depend on the order of things that happen at the same time: branches that fail do so alone and
//! late, and each event state waits for an event of its own.

use std::fmt::Write;

use crate::editions::{self, Other};
use crate::more::KINDS;
use crate::random::Random;

/// A workflow with a sub-workflow, and its events.
#[derive(Debug, Clone)]
pub struct Case {
    pub seed: u64,
    pub size: usize,
    pub main: String,
    pub sub: String,
    /// Sub-workflows of other editions.
    pub older: Vec<String>,
    /// Milliseconds after the start, type and id.
    pub events: Vec<(i64, String)>,
    /// The documents are of DSL 1.0.
    pub tasks: bool,
}

impl Case {
    /// The workflow that a client starts.
    pub fn workflow(&self) -> &'static str {
        match self.tasks {
            true => crate::tasks::generate::MAIN,
            false => "main",
        }
    }
}

pub(crate) struct Writer {
    pub(crate) random: Random,
    states: String,
    undo: String,
    pub(crate) events: String,
    sent: Vec<(i64, String)>,
    /// The workflow has compensation.
    compensates: bool,
    /// The workflow has asked a question already.
    pub(crate) asks: bool,
}

pub fn generate(seed: u64, size: usize) -> Case {
    let mut random = Random::new(seed);
    let sub_seed = random.next();
    let main = Random::new(random.next());
    let older = older(&mut Random::new(seed ^ 0x0e17));
    let main = write("main", main, size.max(1), true, older.len());
    let sub = write("sub", Random::new(sub_seed), 1 + size / 3, false, 0);
    let mut events = main.1;
    for other in &older {
        events.extend(other.events.iter().cloned());
    }
    if seed.is_multiple_of(3) {
        let kinds = ["pair-a", "pair-b"].map(str::to_owned);
        events.extend([2_000, 9_000].into_iter().zip(kinds));
    }
    events.extend(sub.1);
    Case {
        seed,
        size,
        main: main.0,
        sub: sub.0,
        older: older.into_iter().map(|other| other.text).collect(),
        events,
        tasks: false,
    }
}

/// None for every second case, because faults end soon; otherwise up to three. One that waits for events is first.
fn older(random: &mut Random) -> Vec<Other> {
    let count = [0, 0, 0, 1, 2, 3][random.below(6)];
    let kinds = (0..count).map(|place| match place {
        0 => random.below(editions::KINDS),
        _ => random.below(editions::KINDS - 1),
    });
    let kinds: Vec<usize> = kinds.collect();
    let others = kinds.into_iter().enumerate();
    others
        .map(|(place, kind)| editions::generate(kind, &format!("older{place}"), random))
        .collect()
}

const HEAD: &str = r#"functions:
  - {name: quick, type: rest, operation: "file://shop.json#quick"}
  - {name: slow, type: rest, operation: "file://shop.json#slow"}
  - {name: flaky, type: rest, operation: "file://shop.json#flaky"}
  - {name: broken, type: rest, operation: "file://shop.json#broken"}
  - {name: late, type: rest, operation: "file://shop.json#late"}
  - {name: endless, type: rest, operation: "file://shop.json#endless"}
  - {name: count, type: expression, operation: "{c: (.n + 1)}"}
errors: [{name: Bad, code: bad}, {name: Slow, code: timeout}]
retries: [{name: often, delay: PT3S, maxAttempts: 5}, {name: few, delay: PT2S, multiplier: 2, maxAttempts: 2}]
"#;

fn write(
    id: &str,
    random: Random,
    size: usize,
    is_main: bool,
    older: usize,
) -> (String, Vec<(i64, String)>) {
    let mut writer = Writer {
        random,
        states: String::new(),
        undo: String::new(),
        events: String::new(),
        sent: Vec::new(),
        compensates: false,
        asks: false,
    };
    // Not a starting event state, because it would matter whether an event or a client comes first.
    let first = if older > 0 { "O0" } else { "S0" };
    writer.line(&format!(
        "{{name: Begin, type: inject, data: {{begun: true}}, transition: {first}}}"
    ));
    for place in 0..older {
        let next = match place + 1 {
            next if next < older => format!("O{next}"),
            _ => "S0".to_owned(),
        };
        writer.line(&format!(
            "{{name: O{place}, type: operation, transition: {next}, actions: [{{subFlowRef: older{place}, \
             actionDataFilter: {{toStateData: \".older{place}\"}}}}]}}"
        ));
    }
    for index in 0..size {
        let way = if index + 1 < size {
            format!("transition: S{}", index + 1)
        } else {
            "end: true".to_owned()
        };
        writer.state(index, &way, is_main, index + 1 == size);
    }
    let mut text =
        format!("id: {id}\nversion: \"1.0.0\"\nspecVersion: \"0.8\"\nstart: Begin\n{HEAD}");
    let _ = writeln!(
        text,
        "events:\n  - {{name: Made, type: made, kind: produced}}"
    );
    text.push_str(&writer.events);
    let _ = write!(text, "states:\n{}{}", writer.states, writer.undo);
    (text, writer.sent)
}

impl Writer {
    pub(crate) fn line(&mut self, text: &str) {
        let _ = writeln!(self.states, "  - {text}");
    }

    fn state(&mut self, index: usize, way: &str, is_main: bool, last: bool) {
        let name = format!("name: S{index}");
        let way = self.way(way, is_main, last);
        if self.random.percent(if is_main { 45 } else { 20 }) {
            // A sub-workflow runs many times at once, so it waits for no event.
            let kind = match is_main {
                true => self.random.below(KINDS),
                false => 6 + self.random.below(KINDS - 6),
            };
            return self.more(kind, index, &way, is_main);
        }
        let kind = self.random.below(if is_main { 14 } else { 6 });
        match kind {
            0 => {
                let n = self.random.below(9);
                self.line(&format!("{{{name}, type: inject, data: {{n: {n}}}, {way}}}"));
            }
            1 => {
                let actions = self.actions(index, is_main);
                self.line(&format!("{{{name}, type: operation, actions: [{actions}], {way}}}"));
            }
            2 => {
                let actions = self.actions(index, is_main);
                self.line(&format!(
                    "{{{name}, type: operation, actionMode: parallel, actions: [{actions}], {way}}}"
                ));
            }
            3 => {
                let n = self.random.below(9);
                self.line(&format!(
                    "{{{name}, type: switch, dataConditions: [{{condition: \"${{ .n > {n} }}\", {way}}}], \
                     defaultCondition: {{{way}}}}}"
                ));
            }
            4 => {
                let s = 1 + self.random.below(5);
                self.line(&format!("{{{name}, type: sleep, duration: PT{s}S, {way}}}"));
            }
            5 => self.foreach(index, &way, is_main),
            6 => {
                let count = 2 + self.random.below(3);
                let branches: Vec<String> = (0..count)
                    .map(|b| {
                        let actions = self.actions(index * 10 + b, is_main);
                        format!("{{name: B{b}, actions: [{actions}]}}")
                    })
                    .collect();
                let branches = branches.join(", ");
                self.line(&format!("{{{name}, type: parallel, branches: [{branches}], {way}}}"));
            }
            // One branch fails late. The others are done by then, or continue for long after.
            7 => self.line(&format!(
                "{{{name}, type: parallel, branches: [{{name: A, actions: [{{functionRef: late}}]}}, \
                 {{name: B, actions: [{{functionRef: quick}}]}}, \
                 {{name: C, actions: [{{functionRef: endless}}, {{functionRef: quick}}]}}], \
                 onErrors: [{{errorRef: Bad, {way}}}], {way}}}"
            )),
            8 => self.event(index, &way),
            9 => {
                let event = self.sent_event(index);
                self.line(&format!(
                    "{{{name}, type: callback, action: {{functionRef: {{refName: quick, \
                     arguments: {{at: c{index}}}}}}}, eventRef: {event}, {way}}}"
                ));
            }
            10 => self.line(&format!(
                "{{{name}, type: operation, actions: [{{functionRef: quick}}, {{functionRef: broken}}], \
                 onErrors: [{{errorRef: Bad, {way}}}], {way}}}"
            )),
            11 => self.line(&format!(
                "{{{name}, type: operation, timeouts: {{actionExecTimeout: PT7S}}, \
                 actions: [{{functionRef: endless}}], onErrors: [{{errorRef: Slow, {way}}}], {way}}}"
            )),
            12 => {
                self.compensates = true;
                let actions = self.actions(index, is_main);
                self.line(&format!(
                    "{{{name}, type: operation, compensatedBy: U{index}, actions: [{actions}], {way}}}"
                ));
                let _ = writeln!(
                    self.undo,
                    "  - {{name: U{index}, type: operation, usedForCompensation: true, \
                     actions: [{{functionRef: {{refName: flaky, arguments: {{undo: {index}}}}}, \
                     retryRef: often, retryableErrors: [Bad]}}]}}"
                );
            }
            _ if last && self.random.percent(40) => self.line(&format!(
                "{{{name}, type: operation, actions: [{{functionRef: broken}}], {way}}}"
            )),
            _ => self.line(&format!(
                "{{{name}, type: operation, actions: [{{subFlowRef: sub}}], {way}}}"
            )),
        }
    }

    /// The transition, sometimes with an event or compensation.
    fn way(&mut self, way: &str, is_main: bool, last: bool) -> String {
        let produce = "produceEvents: [{eventRef: Made, data: \"${ {n: .n} }\"}]";
        let made = self.random.percent(25);
        if last {
            let mut parts = Vec::new();
            if is_main && self.compensates && self.random.percent(70) {
                parts.push("compensate: true");
            }
            if made {
                parts.push(produce);
            }
            if is_main && self.random.percent(15) {
                parts.push("continueAs: {workflowId: tail, data: \"${ {n: .n, order: .order} }\"}");
            }
            return match parts.is_empty() {
                true => way.to_owned(),
                false => format!("end: {{{}}}", parts.join(", ")),
            };
        }
        match (made, way.strip_prefix("transition: ")) {
            (true, Some(next)) => format!("transition: {{nextState: {next}, {produce}}}"),
            _ => way.to_owned(),
        }
    }

    /// One to three actions that succeed in the end.
    pub(crate) fn actions(&mut self, place: usize, is_main: bool) -> String {
        let count = 1 + self.random.below(3);
        let actions: Vec<String> = (0..count)
            .map(|index| {
                let into = format!("actionDataFilter: {{toStateData: \".a{place}x{index}\"}}");
                let args = format!("arguments: {{p: {place}, i: {index}, n: \"${{ .n }}\"}}");
                let call = |f: &str| format!("functionRef: {{refName: {f}, {args}}}");
                match self.random.below(if is_main { 6 } else { 5 }) {
                    0 => format!("{{{}, {into}}}", call("quick")),
                    1 => format!("{{{}, {into}}}", call("slow")),
                    2 => format!(
                        "{{{}, retryRef: often, retryableErrors: [Bad], {into}}}",
                        call("flaky")
                    ),
                    3 => format!("{{functionRef: count, {into}}}"),
                    4 => format!(
                        "{{{}, sleep: {{before: PT1S, after: PT2S}}, {into}}}",
                        call("quick")
                    ),
                    _ => format!("{{subFlowRef: sub, {into}}}"),
                }
            })
            .collect();
        actions.join(", ")
    }

    fn foreach(&mut self, index: usize, way: &str, is_main: bool) {
        let mode = match self.random.below(3) {
            0 => "mode: sequential, ".to_owned(),
            1 => format!("batchSize: {}, ", 2 + self.random.below(4)),
            _ => String::new(),
        };
        let actions = self.actions(index, is_main);
        self.line(&format!(
            "{{name: S{index}, type: foreach, {mode}inputCollection: \"${{ [1, 2, 3, 4, 5] }}\", \
             iterationParam: n, outputCollection: \"${{ .o{index} }}\", actions: [{actions}], {way}}}"
        ));
    }

    fn event(&mut self, index: usize, way: &str) {
        let event = if self.random.percent(20) {
            self.define(index)
        } else {
            self.sent_event(index)
        };
        self.line(&format!(
            "{{name: S{index}, type: event, timeouts: {{eventTimeout: PT5M}}, \
             onEvents: [{{eventRefs: [{event}], actions: [{{functionRef: quick}}]}}], {way}}}"
        ));
    }

    pub(crate) fn define(&mut self, index: usize) -> String {
        let _ = writeln!(
            self.events,
            "  - {{name: E{index}, type: e{index}, correlation: [{{contextAttributeName: orderid, \
             contextAttributeValue: \"${{ .order }}\"}}]}}"
        );
        format!("E{index}")
    }

    pub(crate) fn sent_event(&mut self, index: usize) -> String {
        let at = 500 + 2000 * self.random.below(10) as i64;
        self.sent.push((at, format!("e{index}")));
        self.define(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workflow_is_valid() {
        for seed in 0..300 {
            let case = generate(seed, 1 + (seed as usize % 9));
            for text in crate::plans::documents(&case) {
                let resources = swirl_spec::resource::MapResources::default();
                let reading =
                    swirl_spec::read(text.as_bytes(), &resources, &swirl_spec::Options::default());
                assert!(
                    reading.workflow.is_some(),
                    "{text}\n{:?}",
                    reading.diagnostics
                );
            }
        }
    }
}
