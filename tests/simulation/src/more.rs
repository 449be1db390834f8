//! More kinds of states for [`crate::generate`]: states with other workflows, and states with timeouts.

use crate::generate::Writer;

/// Workflows that generated workflows start by name, by event, or by continuing as them.
pub const OTHERS: &[&str] = &[LEAF, ECHO, LISTENER, RELAY, HEARER, TAIL, WAITS];

/// The innermost sub-workflow.
const LEAF: &str = r#"id: leaf
version: "1.0.0"
specVersion: "0.8"
start: A
functions: [{name: slow, type: rest, operation: "file://shop.json#slow"}]
states:
  - {name: A, type: operation, transition: B, actions: [{functionRef: {refName: slow,
     arguments: {leaf: "${ .n }"}}, actionDataFilter: {toStateData: ".leaf"}}]}
  - {name: B, type: sleep, duration: PT2S, end: true}
"#;

/// Started by an event, and answers with another.
const ECHO: &str = r#"id: echo
version: "1.0.0"
specVersion: "0.8"
start: A
functions: [{name: quick, type: rest, operation: "file://shop.json#quick"}]
events:
  - {name: Asked, type: asked}
  - {name: Answered, type: answered, kind: produced}
states:
  - name: A
    type: event
    onEvents: [{eventRefs: [Asked], actions: [{functionRef: {refName: quick, arguments: {echo: "${ .ask }"}}}]}]
    end: {produceEvents: [{eventRef: Answered, data: "${ {answer: .n} }", contextAttributes: {askid: "${ .ask }"}}]}
"#;

/// Started by each event that is produced during a case.
const LISTENER: &str = r#"id: listener
version: "1.0.0"
specVersion: "0.8"
start: A
functions: [{name: slow, type: rest, operation: "file://shop.json#slow"}]
events: [{name: Made, type: made}]
states:
  - name: A
    type: event
    onEvents: [{eventRefs: [Made], actions: [{functionRef: {refName: slow, arguments: {heard: "${ .n }"}}}]}]
    end: true
"#;

/// Started by the same events. It needs only data, and produces events that start others, so all of it may run where it
/// is started.
const RELAY: &str = r#"id: relay
version: "1.0.0"
specVersion: "0.8"
start: A
events:
  - {name: Made, type: made}
  - {name: Relayed, type: relayed, kind: produced}
states:
  - {name: A, type: event, onEvents: [{eventRefs: [Made], actions: []}],
     transition: {nextState: B, produceEvents: [{eventRef: Relayed, data: "${ {first: .n} }"}]}}
  - {name: B, type: inject, data: {relayed: true},
     end: {produceEvents: [{eventRef: Relayed, data: "${ {second: .n} }"}]}}
"#;

const HEARER: &str = r#"id: hearer
version: "1.0.0"
specVersion: "0.8"
start: A
events: [{name: Relayed, type: relayed}]
states:
  - {name: A, type: event, onEvents: [{eventRefs: [Relayed], actions: []}], end: true}
"#;

const TAIL: &str = r#"id: tail
version: "1.0.0"
specVersion: "0.8"
start: A
states:
  - {name: A, type: inject, data: {tail: true}, transition: B}
  - {name: B, type: sleep, duration: PT3S, end: {terminate: true}}
"#;

/// Waits until its parent has ended.
const WAITS: &str = r#"id: waits
version: "1.0.0"
specVersion: "0.8"
start: A
events: [{name: Never, type: never}]
states:
  - {name: A, type: event, end: true, onEvents: [{eventRefs: [Never], actions: []}]}
"#;

/// The number of kinds that `Writer::more` supports.
pub const KINDS: usize = 13;

impl Writer {
    pub(crate) fn more(&mut self, kind: usize, index: usize, way: &str, is_main: bool) {
        let name = format!("name: S{index}");
        match kind {
            0 => {
                let needed = 1 + self.random.below(2);
                let a = self.actions(index * 10, is_main);
                let b = self.actions(index * 10 + 1, is_main);
                let b = if needed == 1 { "{functionRef: endless}".to_owned() } else { b };
                self.line(&format!(
                    "{{{name}, type: parallel, completionType: atLeast, numCompleted: {needed}, branches: \
                     [{{name: A, actions: [{a}]}}, {{name: B, actions: [{b}]}}, \
                     {{name: C, actions: [{{functionRef: endless}}]}}], {way}}}"
                ));
            }
            1 => self.switch_events(index, way),
            2 if self.asks => self.sets(index, way),
            2 => {
                self.asks = true;
                self.events.push_str(
                    "  - {name: Ask, type: asked, kind: produced}\n  \
                     - {name: Told, type: answered, correlation: [{contextAttributeName: askid, \
                     contextAttributeValue: \"${ .order }\"}]}\n",
                );
                self.line(&format!(
                    "{{{name}, type: operation, actions: [{{eventRef: {{triggerEventRef: Ask, \
                     resultEventRef: Told, resultEventTimeout: PT1H, data: \"${{ {{ask: .order}} }}\", \
                     contextAttributes: {{askid: \"${{ .order }}\"}}}}, \
                     actionDataFilter: {{toStateData: \".told{index}\"}}}}], {way}}}"
                ));
            }
            3 => self.sets(index, way),
            4 => self.line(&format!(
                "{{{name}, type: operation, actions: [{{subFlowRef: {{workflowId: leaf, invoke: async, \
                 onParentComplete: continue}}}}, {{functionRef: quick}}], {way}}}"
            )),
            5 => self.line(&format!(
                "{{{name}, type: operation, actions: [{{subFlowRef: {{workflowId: waits, invoke: async, \
                 onParentComplete: terminate}}}}], {way}}}"
            )),
            6 => self.line(&format!(
                "{{{name}, type: operation, actions: [{{subFlowRef: leaf, actionDataFilter: \
                 {{toStateData: \".leaf{index}\"}}}}, {{functionRef: {{refName: quick, \
                 arguments: {{l: \"${{ .leaf{index}.leaf }}\"}}}}}}], {way}}}"
            )),
            7 => self.line(&format!(
                "{{{name}, type: operation, actions: [{{functionRef: {{refName: flaky, arguments: \
                 {{few: {index}, n: \"${{ .n }}\"}}}}, retryRef: few, retryableErrors: [Bad]}}], \
                 onErrors: [{{errorRef: Bad, {way}}}], {way}}}"
            )),
            8 => self.line(&format!(
                "{{{name}, type: operation, timeouts: {{stateExecTimeout: PT8S}}, actions: \
                 [{{functionRef: endless}}, {{functionRef: quick}}], \
                 onErrors: [{{errorRef: Slow, {way}}}], {way}}}"
            )),
            9 => self.line(&format!(
                "{{{name}, type: parallel, timeouts: {{branchExecTimeout: PT9S}}, branches: \
                 [{{name: A, actions: [{{functionRef: quick}}]}}, \
                 {{name: B, actions: [{{functionRef: endless}}]}}], \
                 onErrors: [{{errorRef: Slow, {way}}}], {way}}}"
            )),
            10 => {
                let n = self.random.below(9);
                self.line(&format!(
                    "{{{name}, type: operation, actions: [{{condition: \"${{ .n > {n} }}\", functionRef: \
                     {{refName: quick, arguments: {{cond: {index}}}}}}}, {{functionRef: count, \
                     actionDataFilter: {{results: \"${{ {{n: (.c % 10)}} }}\"}}}}], \
                     stateDataFilter: {{output: \"${{ . + {{seen{index}: .n}} }}\"}}, {way}}}"
                ));
            }
            11 => self.line(&format!(
                "{{{name}, type: foreach, batchSize: 2, inputCollection: \"${{ [range(.n % 5)] }}\", \
                 iterationParam: it, outputCollection: \"${{ .o{index} }}\", actions: [{{functionRef: \
                 {{refName: slow, arguments: {{it: \"${{ $it }}\"}}}}, retryRef: often, \
                 actionDataFilter: {{results: \"${{ {{r: .n}} }}\"}}}}], {way}}}"
            )),
            _ => self.line(&format!(
                "{{{name}, type: foreach, mode: sequential, inputCollection: \"${{ [1, 2, 3] }}\", iterationParam: k, \
                 outputCollection: \"${{ .f{index} }}\", actions: [{{subFlowRef: leaf, actionDataFilter: \
                 {{results: \"${{ .leaf }}\"}}}}], {way}}}"
            )),
        }
    }

    fn switch_events(&mut self, index: usize, way: &str) {
        let event = if self.random.percent(30) {
            self.define(index)
        } else {
            self.sent_event(index)
        };
        self.line(&format!(
            "{{name: S{index}, type: switch, timeouts: {{eventTimeout: PT4M}}, eventConditions: \
             [{{eventRef: {event}, eventDataFilter: {{toStateData: \".sw{index}\"}}, {way}}}], \
             defaultCondition: {{{way}}}}}"
        ));
    }

    /// Two entries, one of them for two events.
    fn sets(&mut self, index: usize, way: &str) {
        let names: Vec<String> = (0..3)
            .map(|n| self.sent_event((index + 1) * 100 + n))
            .collect();
        let [a, b, c] = &names[..] else { return };
        let mode = match self.random.percent(50) {
            true => "actionMode: parallel, ",
            false => "",
        };
        let actions = self.actions(900 + index, false);
        self.line(&format!(
            "{{name: S{index}, type: event, exclusive: false, onEvents: [{{eventRefs: [{a}, {b}], \
             eventDataFilter: {{toStateData: \".set{index}\"}}, {mode}actions: [{actions}]}}, \
             {{eventRefs: [{c}], eventDataFilter: {{toStateData: \".one{index}\"}}, actions: []}}], {way}}}"
        ));
    }
}
