//! Properties that count as absent: null, or an empty text where a name belongs. Serialisers write them for unset
//! members, and YAML keys without a value produce them. They are read as absent, with a warning
//! (docs/language.md#decision-96).
//!
//! Where null is a value (in `data`, `arguments`, `metadata`, ...) nothing changes. Neither do required properties, or
//! ones that no edition knows: the readers report those.

use swirl_documents::source::Node;

use super::ctx::Ctx;

/// Properties that are optional in some edition, in alphabetical order.
const OPTIONAL: [&str; 147] = [
    "actionDataFilter",
    "actionExecTimeout",
    "actionMode",
    "after",
    "annotations",
    "arguments",
    "audiences",
    "auth",
    "authRef",
    "authority",
    "autoRetries",
    "batchSize",
    "before",
    "branchExecTimeout",
    "checkBefore",
    "clientSecret",
    "code",
    "compensate",
    "compensateBefore",
    "compensatedBy",
    "completionType",
    "condition",
    "constants",
    "consumeEventRef",
    "consumeEventTimeout",
    "contextAttributeValue",
    "contextAttributes",
    "continueAs",
    "continueOnError",
    "correlation",
    "cron",
    "dataConditions",
    "dataInputPath",
    "dataInputSchema",
    "dataOnly",
    "dataOutputPath",
    "dataOutputSchema",
    "dataResultsPath",
    "default",
    "defaultCondition",
    "definitions",
    "delay",
    "description",
    "detail",
    "directInvoke",
    "end",
    "errorDataFilter",
    "errorRef",
    "errorRefs",
    "errors",
    "eventConditions",
    "eventDataFilter",
    "eventRef",
    "eventTimeout",
    "events",
    "exceptWhen",
    "exclusive",
    "expression",
    "expressionLang",
    "expressionLanguage",
    "extensions",
    "failOnValidationErrors",
    "fromStateData",
    "functionRef",
    "functions",
    "handlers",
    "increment",
    "input",
    "instance",
    "interrupt",
    "interval",
    "invocation",
    "invoke",
    "iterationParam",
    "jitter",
    "keepActive",
    "key",
    "kind",
    "loop",
    "max",
    "maxAttempts",
    "maxDelay",
    "metadata",
    "mode",
    "multiplier",
    "n",
    "nonRetryableErrors",
    "numCompleted",
    "onError",
    "onErrors",
    "onParentComplete",
    "output",
    "outputCollection",
    "parameters",
    "password",
    "policies",
    "policy",
    "produceEventRef",
    "produceEvents",
    "publish",
    "repeat",
    "requestedIssuer",
    "requestedSubject",
    "resultEventRef",
    "results",
    "resultsFilter",
    "retries",
    "retry",
    "retryRef",
    "retryableErrors",
    "runBefore",
    "schedule",
    "scheme",
    "scopes",
    "secrets",
    "selectionSet",
    "single",
    "sleep",
    "start",
    "startsAt",
    "stateDataFilter",
    "stateExecTimeout",
    "stopOnEvents",
    "subFlowRef",
    "subjectToken",
    "subscribe",
    "taskDataFilter",
    "terminate",
    "then",
    "throw",
    "timeDelay",
    "timeout",
    "timeouts",
    "timezone",
    "title",
    "toStateData",
    "transition",
    "triggerEventRef",
    "useData",
    "useResults",
    "usedForCompensation",
    "username",
    "validUntil",
    "version",
    "waitForCompletion",
    "when",
    "workflowExecTimeout",
];

/// For these, an empty text counts as absent too.
const NAMES: [&str; 10] = [
    "authRef",
    "compensatedBy",
    "dataInputSchema",
    "dataOutputSchema",
    "key",
    "retryRef",
    "runBefore",
    "selectionSet",
    "start",
    "transition",
];

/// Members whose contents belong to the user.
const VALUES: [&str; 11] = [
    "annotations",
    "arguments",
    "constants",
    "contextAttributes",
    "data",
    "dataInputSchema",
    "dataOutputSchema",
    "extensions",
    "inject",
    "metadata",
    "parameters",
];

/// Members that contain parts of a definition but aren't optional everywhere.
const HOLDERS: [&str; 12] = [
    "action",
    "actions",
    "after",
    "before",
    "branches",
    "dataConditions",
    "duration",
    "eventConditions",
    "onEvents",
    "properties",
    "states",
    "tasks",
];

impl Ctx<'_> {
    /// Removes properties that count as absent from a definition.
    pub fn leave_out_absent_of(&mut self, root: &mut Node) {
        // One of them is enough.
        let given = |root: &Node, name| root.get(name).is_some_and(|node| !node.is_null());
        for name in ["name", "id"] {
            let mut others = ["id", "name", "key"].into_iter();
            if others.any(|other| other != name && given(&*root, other)) {
                self.leave_out_null(root, name);
            }
        }
        self.leave_out_absent(root);
    }

    /// Removes properties that count as absent from a part of a definition.
    pub fn leave_out_absent(&mut self, node: &mut Node) {
        if let Some(items) = node.items_mut() {
            for item in items {
                self.leave_out_absent(item);
            }
            return;
        }
        let members = node.members().unwrap_or_default().iter();
        let keys: Vec<String> = members.map(|member| member.key().to_owned()).collect();
        for key in &keys {
            self.leave_out_below(node, key);
        }
    }

    fn leave_out_below(&mut self, holder: &mut Node, key: &str) {
        let Some(value) = holder.get_mut(key) else {
            return;
        };
        let is_optional = OPTIONAL.binary_search(&key).is_ok();
        let says = match value.as_str() {
            None if value.is_null() && is_optional => "null",
            Some("") if NAMES.contains(&key) => "empty",
            _ => {
                let is_part = is_optional || HOLDERS.contains(&key);
                if is_part && !VALUES.contains(&key) {
                    self.leave_out_absent(value);
                    match key {
                        "action" | "actions" => {
                            self.leave_out_null(value, "name");
                            self.leave_out_null(value, "id");
                        }
                        "dataConditions" | "eventConditions" => self.leave_out_null(value, "name"),
                        "events" | "functions" => self.leave_out_null(value, "type"),
                        "states" => self.leave_out_null(value, "id"),
                        "onEvents" => self.leave_out_null(value, "actions"),
                        _ => {}
                    }
                }
                return;
            }
        };
        if let Some(value) = holder.take(key) {
            self.absent(&value, key, says);
        }
    }

    /// Removes a null property if it is optional in this part, even if it is required in others.
    fn leave_out_null(&mut self, parts: &mut Node, key: &str) {
        let parts = match parts.items().is_some() {
            true => parts.items_mut().into_iter().flatten().collect(),
            false => vec![parts],
        };
        for part in parts {
            if part.get(key).is_some_and(Node::is_null)
                && let Some(value) = part.take(key)
            {
                self.absent(&value, key, "null");
            }
        }
    }

    fn absent(&mut self, value: &Node, key: &str, says: &str) {
        let message = format!("'{key}' is {says}: it is treated as absent");
        self.loose(value, message, format!("remove '{key}'"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::reader::{Reading, read};
    use crate::resource::MapResources;
    use swirl_documents::diagnostic::Severity;

    fn of(text: &str) -> Reading {
        read(
            text.as_bytes(),
            &MapResources::default(),
            &Options::default(),
        )
    }

    fn codes(reading: &Reading) -> Vec<&'static str> {
        let findings = reading.diagnostics.iter();
        findings.map(|finding| finding.code.as_str()).collect()
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(OPTIONAL.is_sorted());
    }

    #[test]
    fn null_counts_as_absent() {
        let reading = of("
id: w
name:
version: 1.0.0
specVersion: '0.8'
description:
timeouts: {workflowExecTimeout: null}
functions: [{name: f, type: null, operation: 'a#b', authRef: null}]
events: [{name: e, type: null, source: s}]
metadata: {a: ''}
states:
- name: A
  id: null
  type: operation
  stateDataFilter: null
  actions:
  - {name: null, functionRef: {refName: f, arguments: {a: null}}, sleep: null, retryRef: ''}
  - {subFlowRef: {workflowId: x, version: null}, sleep: {before: PT1S, after: null}}
  transition: null
  end: {continueAs: {workflowId: w, version: null, workflowExecTimeout: null}}
");
        assert!(reading.workflow.is_some(), "{:?}", reading.diagnostics);
        assert_eq!(codes(&reading), ["loose-form"; 16]);
    }

    #[test]
    fn empty_references_count_as_absent() {
        let reading = of("
id: w
version: 1.0.0
specVersion: '0.8'
start: ''
dataInputSchema: ''
dataOutputSchema: ''
states: [{name: A, type: inject, data: {}, end: true}]
");
        assert!(reading.workflow.is_some(), "{:?}", reading.diagnostics);
        assert_eq!(codes(&reading), ["loose-form"; 3]);
    }

    #[test]
    fn required_properties_must_not_be_null() {
        let head = "id: w\nversion: 1.0.0\nspecVersion: '0.8'\n";
        for (states, expected) in [
            ("states:\n", "wrong-type"),
            (
                "states: [{name: , type: inject, data: {}, end: true}]",
                "wrong-type",
            ),
            (
                "states: [{name: A, type: inject, data: {}, edn: , end: true}]",
                "unknown-property",
            ),
        ] {
            let reading = of(&format!("{head}{states}"));
            let errors = reading.diagnostics.iter();
            let errors = errors.filter(|finding| finding.severity == Severity::Error);
            let errors: Vec<&str> = errors.map(|finding| finding.code.as_str()).collect();
            assert_eq!(errors, [expected], "{states}");
        }
    }

    #[test]
    fn an_empty_transition_counts_as_absent() {
        let reading = of("
id: w
version: 1.0.0
specVersion: '0.8'
states: [{name: A, type: inject, data: {a: null}, transition: ''}]
");
        assert_eq!(codes(&reading), ["missing-property", "loose-form"]);
    }
}
