//! States: the parts that all kinds share (section "Workflow States").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Schema, State, Workflow};

use super::states::{self, StateReader};
use crate::build::advice::Advice;
use crate::build::ctx::{Ctx, Obj, StateHead};
use crate::build::rule::Rule;
use crate::build::values::meant_word;

/// Properties that every state may have. Each kind adds its own.
///
/// The specification's tables omit `onErrors`, `metadata` and the two properties of compensation for some kinds, but
/// its chapters give them to every state, so every state has them.
pub(super) const COMMON: [&str; 9] = [
    "name",
    "type",
    "stateDataFilter",
    "onErrors",
    "transition",
    "end",
    "compensatedBy",
    "usedForCompensation",
    "metadata",
];

/// Only some editions have them.
const SCHEMAS: [&str; 2] = ["dataInputSchema", "dataOutputSchema"];

impl Ctx<'_> {
    /// Reads the names of states before anything refers to them.
    pub fn state_heads(&mut self, items: &[Node]) {
        for item in items {
            let text = |name: &str| item.get(name).and_then(Node::as_str);
            let kind = text("type").and_then(|word| self.kind_of(word).0);
            let mark = item.get("usedForCompensation");
            let head = StateHead {
                name: text("name").unwrap_or_default().to_owned(),
                flow: self.flow(),
                location: self.location(item),
                is_event: kind == Some("event"),
                mark: mark.map(|node| self.location(node)),
                used_for_compensation: mark.and_then(Node::as_bool) == Some(true),
                compensated_by: item.get("compensatedBy").map(|node| self.location(node)),
            };
            self.add_state(item, head);
        }
    }

    pub fn read_states(&mut self, items: &[Node]) {
        for (id, item) in self.states_of_flow().into_iter().zip(items) {
            self.enter_state(id);
            let state = self.read_state(item);
            self.put_state(id, state);
        }
    }

    /// The properties that states of all kinds have.
    pub fn properties_of_states(&self) -> Vec<&'static str> {
        let mut known = COMMON.to_vec();
        if self.dialect.parts.state_schemas {
            known.extend(SCHEMAS);
        }
        known
    }

    fn read_state(&mut self, node: &Node) -> Option<State> {
        if node.members().is_none() {
            self.wrong_type(node, "a state", "an object");
            return None;
        }
        let kind = self.state_kind(node);
        let mut known = self.properties_of_states();
        let obj = match kind {
            Some(kind) => {
                known.extend(kind.properties);
                if kind.word == "foreach" {
                    let own = self.dialect.parts.foreach_max;
                    let windowed = self.earlier_part(own, node, "max", "write 'batchSize'");
                    known.extend(windowed.then_some("max"));
                }
                if self.dialect.parts.timeouts_of_all_states && !known.contains(&"timeouts") {
                    known.push("timeouts");
                }
                // An event state cannot compensate.
                known.retain(|name| kind.word != "event" || *name != "usedForCompensation");
                self.check_next_of_switch(node, kind);
                self.object(node, &format!("a state of type '{}'", kind.word), &known)?
            }
            None => {
                self.of_unknown_kind.push(self.flow());
                known.extend(states::KINDS.iter().flat_map(|kind| kind.properties));
                known.extend(self.dialect.parts.foreach_max.then_some("max"));
                known.extend(self.dialect.further.iter().flat_map(|(_, names)| *names));
                known.extend(self.dialect.own_names.iter().map(|(_, own)| *own));
                let of_states = self.rules.iter().filter(|rule| rule.is_of_states());
                known.extend(of_states.flat_map(Rule::names));
                self.object(node, "a state", &known)?
            }
        };
        let name = self.need_string(obj, "a state", "name");
        if let (Some(name), Some(node)) = (&name, obj.get("name")) {
            self.check_name(node, "a state's name", name);
        }
        let metadata = self.metadata(obj);
        let (input, output) = self.state_filter(obj);
        self.boolean(obj, "usedForCompensation", false);
        let on_errors = self.handlers(obj);
        let compensated_by = obj
            .get("compensatedBy")
            .and_then(|node| self.state_ref(node, "'compensatedBy'"));
        // A state of an unknown kind may be a switch, which has neither.
        let has_next = match kind {
            Some(kind) => kind.has_next,
            None => obj.has("transition") || obj.has("end"),
        };
        let mut next = None;
        if has_next {
            next = self.next(obj, "a state", !self.compensating);
            if self.compensating && matches!(next, Some(swirl_model::workflow::Next::End(_))) {
                self.end_ignored(obj);
                next = None;
            }
        }
        let [input_schema, output_schema] = match self.dialect.parts.state_schemas {
            true => SCHEMAS.map(|name| self.state_schema(obj, name)),
            false => [None, None],
        };
        let (kind, timeout) = (kind?.read)(self, obj)?;
        let pointer = self.problem_pointer(node);
        Some(State {
            name: name?.into(),
            flow: Workflow::ROOT,
            kind,
            pointer,
            input,
            output,
            input_schema,
            output_schema,
            on_errors,
            next,
            compensated_by,
            used_for_compensation: self.compensating,
            timeout,
            metadata,
            ..State::default()
        })
    }

    /// If a state's data doesn't fit its schema, this is recorded and the state continues, because the language doesn't
    /// say whether the schema is checked at all (docs/language.md#decision-59).
    pub fn state_schema(&mut self, obj: Obj<'_>, name: &str) -> Option<Schema> {
        let schema = self.schema(obj, name)?;
        Some(Schema {
            fail: false,
            ..schema
        })
    }

    fn state_kind(&mut self, node: &Node) -> Option<&'static StateReader> {
        let Some(word) = node.get("type") else {
            self.missing_here(node, "a state", &["type"]);
            return None;
        };
        let word = self.kind_word(word)?;
        states::KINDS.iter().find(|kind| kind.word == word)
    }

    /// The kind of state that a word names, or means with a typing error, which is reported.
    pub fn kind_word(&mut self, node: &Node) -> Option<&'static str> {
        let word = self.string(node, "'type'")?;
        let (kind, advice) = self.kind_of(&word);
        if let Some(advice) = advice {
            let message = format!("there is no state type '{word}'");
            self.error(node, codes::UNKNOWN_VALUE, message, advice);
        }
        kind
    }

    /// The kind of state that a word names, or means with a typing error, which the advice is about.
    pub fn kind_of(&self, word: &str) -> (Option<&'static str>, Option<Advice>) {
        let own = states::KINDS.iter().map(|kind| kind.word);
        let further = self.dialect.parts.further_kinds.iter().copied();
        let kinds: Vec<&str> = own.chain(further).collect();
        if let Some(kind) = kinds.iter().find(|kind| **kind == word) {
            return (Some(kind), None);
        }
        let kinds = self.offered(&kinds);
        let (meant, hint) = meant_word(word, &kinds);
        (meant, Some(Advice::among(&kinds, hint)))
    }

    /// Switch states have neither `transition` nor `end`, so the message names the alternative.
    fn check_next_of_switch(&mut self, node: &Node, kind: &StateReader) {
        if kind.has_next {
            return;
        }
        for name in ["transition", "end"] {
            if let Some(place) = node.get(name) {
                self.error(
                    place,
                    codes::UNKNOWN_PROPERTY,
                    format!("a switch state does not have its own '{name}'"),
                    format!("put '{name}' into its conditions and its 'defaultCondition'"),
                );
            }
        }
    }

    /// docs/language.md#decision-5: an end in a compensating state is ignored.
    pub fn end_ignored(&mut self, obj: Obj<'_>) {
        if let Some(node) = obj.get("end") {
            self.warn(
                node,
                codes::COMPENSATION_END_IGNORED,
                "'end' in a compensating state is ignored: the state that triggered the compensation says how the workflow continues",
                "remove 'end'".to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::build::parts::testing::findings;

    /// One state in line 5, and another one that it may lead to.
    fn of_state(state: &str) -> String {
        findings(&format!(
            "states:\n- {{{state}}}\n- {{name: Z, type: inject, data: {{}}, end: true}}\n"
        ))
    }

    #[test]
    fn common_parts_of_states() {
        let mut wrong = Vec::new();
        for (state, expected) in [
            ("name: A, type: inject, data: {}, transition: Z", ""),
            (
                "name: A, type: inject, data: {}",
                "error missing-property /states/0 5",
            ),
            (
                "name: A, type: inject, data: {}, transition: Z, end: true",
                "error exclusive-properties /states/0 5",
            ),
            (
                "name: A, type: inject, data: {}, transition: Z, end: false",
                "",
            ),
            (
                "type: inject, data: {}, transition: Z",
                "error missing-property /states/0 5",
            ),
            (
                "name: A, type: injekt, data: {}, transition: Z",
                "error unknown-value /states/0/type 5",
            ),
            (
                "name: A, type: Operation, foo: 1, actions: [{functionRef: nope}], transition: Z",
                "error unknown-value /states/0/type 5\nerror unknown-property /states/0/foo 5\nerror unknown-function /states/0/actions/0/functionRef 5",
            ),
            (
                "name: A, type: pause, foo: 1, stateDataFilter: {inptu: .a}, actions: [], transition: Z",
                "error unknown-value /states/0/type 5\nerror unknown-property /states/0/foo 5\nerror unknown-property /states/0/stateDataFilter/inptu 5",
            ),
            (
                "name: A, type: parallel, branches: [{name: x, actions: []}], completionType: some, numCompleted: 3, transition: Z",
                "error unknown-value /states/0/completionType 5\nerror bad-count /states/0/numCompleted 5",
            ),
            (
                "name: A, type: parallel, branches: {name: x}, completionType: atLeast, numCompleted: 1, transition: Z",
                "error wrong-type /states/0/branches 5",
            ),
            (
                "name: A, transition: Z",
                "error missing-property /states/0 5",
            ),
            (
                "name: A, type: inject, data: {}, transition: Y",
                "error unknown-state /states/0/transition 5",
            ),
            (
                "name: A, type: inject, data: {}, transition: {nextState: z}",
                "error unknown-state /states/0/transition/nextState 5",
            ),
            (
                "name: A, type: inject, dat: {}, transition: Z",
                "error unknown-property /states/0/dat 5",
            ),
            (
                "name: Z, type: inject, data: {}, transition: Z",
                "warning unreachable-state /states/1 6\nerror duplicate-name /states/1/name 6",
            ),
            (
                "name: A, type: inject, data: {a: '${ .b }'}, transition: Z",
                "warning expression-not-evaluated /states/0/data/a 5",
            ),
            (
                "name: A, type: inject, data: {}, metadata: {a: 1}, transition: Z",
                "warning metadata-not-text /states/0/metadata/a 5",
            ),
            (
                "name: A, type: sleep, duration: PT1S, timeouts: {}, transition: Z",
                "error unknown-property /states/0/timeouts 5",
            ),
            (
                "id: s1, name: A, type: inject, data: {}, transition: Z",
                "warning loose-form /states/0/id 5",
            ),
            (
                "name: A, type: sleep, duration: 5, transition: Z",
                "error wrong-type /states/0/duration 5",
            ),
            (
                "name: A, type: operation, actions: [], timeouts: {eventTimeout: PT1S}, transition: Z",
                "error unknown-property /states/0/timeouts/eventTimeout 5",
            ),
            (
                "name: A, type: operation, actions: [], timeouts: {stateExecTimeout: PT0S}, transition: Z",
                "error zero-timeout /states/0/timeouts/stateExecTimeout 5",
            ),
            (
                "name: A, type: operation, actions: [], onErrors: [{errorRef: x, end: true}], transition: Z",
                "error unknown-error /states/0/onErrors/0/errorRef 5",
            ),
            (
                "name: A, type: operation, actions: [], onErrors: [{errorRef: '*'}], transition: Z",
                "error missing-property /states/0/onErrors/0 5",
            ),
            (
                "name: A, type: operation, actions: [], onErrors: [{errorRef: '*', errorRefs: ['*'], end: true}], transition: Z",
                "error exclusive-properties /states/0/onErrors/0 5",
            ),
            (
                "name: A, type: switch, transition: Z",
                "warning switch-without-default /states/0 5\nerror missing-property /states/0 5\nerror unknown-property /states/0/transition 5",
            ),
            (
                "name: A, type: switch, dataConditions: [{condition: .a, transition: Z}], defaultCondition: {end: true}",
                "",
            ),
            (
                "name: A, type: switch, dataConditions: [{condition: .a, transition: Z}]",
                "warning switch-without-default /states/0 5",
            ),
            (
                "name: A, type: switch, dataConditions: [{transition: Z}], defaultCondition: {}",
                "error missing-property /states/0/dataConditions/0 5\nerror missing-property /states/0/defaultCondition 5",
            ),
            (
                "name: A, type: switch, dataConditions: [{condition: .a, transition: Z}], eventConditions: [], defaultCondition: {end: true}",
                "error exclusive-properties /states/0 5",
            ),
            (
                "name: A, type: parallel, branches: [{name: x, actions: []}, {name: x, actions: []}], transition: Z",
                "error duplicate-name /states/0/branches/1/name 5",
            ),
            (
                "name: A, type: parallel, branches: [{name: x, actions: []}], completionType: atLeast, transition: Z",
                "error missing-property /states/0 5",
            ),
            (
                "name: A, type: parallel, branches: [{name: x, actions: []}], completionType: atLeast, numCompleted: '2', transition: Z",
                "error bad-count /states/0/numCompleted 5",
            ),
            (
                "name: A, type: parallel, branches: [{name: x, actions: []}], numCompleted: 1, transition: Z",
                "warning ignored-property /states/0/numCompleted 5",
            ),
            (
                "name: A, type: parallel, branches: [], transition: Z",
                "error empty-list /states/0/branches 5",
            ),
            (
                "name: A, type: foreach, inputCollection: .a, actions: [], batchSize: 1, transition: Z",
                "error bad-batch-size /states/0/batchSize 5",
            ),
            (
                "name: A, type: foreach, inputCollection: .a, actions: [], batchSize: '${ .n }', transition: Z",
                "",
            ),
            (
                "name: A, type: foreach, actions: [], iterationParam: $x, transition: Z",
                "error missing-property /states/0 5\nwarning loose-form /states/0/iterationParam 5",
            ),
            (
                "name: A, type: foreach, inputCollection: .a, outputCollection: '.a | .b | f', actions: [], transition: Z",
                "error bad-path /states/0/outputCollection 5",
            ),
            (
                "name: A, type: event, onEvents: [{eventRefs: [e]}], transition: Z",
                "error unknown-event /states/0/onEvents/0/eventRefs/0 5",
            ),
            (
                "name: A, type: callback, transition: Z",
                "error missing-property /states/0 5\nerror missing-property /states/0 5",
            ),
            (
                "name: A, type: inject, data: 7, transition: Z",
                "error wrong-type /states/0/data 5",
            ),
            (
                "name: A, type: inject, data: {}, transition: [Z]",
                "error wrong-type /states/0/transition 5\nwarning unreachable-state /states/1 6",
            ),
            (
                "name: A, type: inject, data: {}, end: 'yes'",
                "error wrong-type /states/0/end 5\nwarning unreachable-state /states/1 6",
            ),
            (
                "name: A, type: inject, data: {}, end: {terminate: false, continueAs: x}",
                "warning continue-as-terminate /states/0/end/terminate 5\nwarning unreachable-state /states/1 6",
            ),
            (
                "name: A, type: inject, data: {}, end: {continueAs: {workflowExecTimeout: {runBefore: x}}}",
                "error missing-property /states/0/end/continueAs 5\nerror missing-property /states/0/end/continueAs/workflowExecTimeout 5",
            ),
        ] {
            let found = of_state(state);
            if found != expected {
                wrong.push(format!("{state}\n{found}\ninstead of\n{expected}\n"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
