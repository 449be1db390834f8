//! Edition 0.5 (November 2020), as differences from 0.8.
//!
//! JSONPath in `{{ }}`, `start` and `end` in states, retries of whole states. Names and words of later editions are
//! accepted with a warning (docs/language.md#decision-96).

mod definition;
mod start;
mod states;
mod ways;

use crate::build::dialect::{Dialect, Parts};
use crate::build::earlier::identity::{name_for_id, state_ids};
use crate::build::earlier::words::{misspelt_type, state_word};
use crate::build::earlier::{errors, events, older, shapes, states as of_0_6};
use crate::build::parts::workflow;
use crate::build::rule::Rule;

/// JSONPath, with the words of this edition for rewritten parts.
pub(super) const DIALECT: Dialect = Dialect {
    own_names: &[
        ("arguments", "parameters"),
        ("produceEventRef", "triggerEventRef"),
        ("consumeEventRef", "resultEventRef"),
        ("increment", "multiplier"),
        ("workflowExecTimeout", "execTimeout"),
        ("specVersion", "schemaVersion"),
        ("/stateDataFilter/input", "dataInputPath"),
        ("/stateDataFilter/output", "dataOutputPath"),
        ("/actionDataFilter/fromStateData", "dataInputPath"),
        ("/actionDataFilter/results", "dataResultsPath"),
        ("/eventDataFilter/dataInputPath/data", "dataInputPath"),
        ("/eventDataFilter/data", "dataOutputPath"),
        ("compensate", "compensateBefore"),
        ("errorRef", "error"),
        ("defaultCondition", "default"),
        ("sleep", "delay"),
        ("/states/duration", "timeDelay"),
        ("eventTimeout", "timeout"),
        ("numCompleted", "n"),
    ],
    not_offered: NOT_OFFERED,
    further: &[
        ("a state of type", &["id", "start"]),
        ("a state of type 'callback'", &["timeout"]),
        ("a state of type 'event'", &["timeout"]),
        ("a state of type 'foreach'", &["workflowId"]),
        ("a state of type 'parallel'", &["n"]),
        ("a state of type 'sleep'", &["timeDelay"]),
        (
            "a state of type 'subflow'",
            &["waitForCompletion", "workflowId"],
        ),
        ("a state of type 'switch'", &["default", "eventTimeout"]),
        ("a branch", &["workflowId"]),
        ("an error handler", &["error", "code"]),
    ],
    parts: Parts {
        action_timeout: true,
        handler_retry: true,
        foreach_max: true,
        paths: true,
        guards: true,
        state_schemas: true,
        kinds_of_ends: true,
        injects_nothing: true,
        further_kinds: &["delay", "subflow"],
        schedule: Some(start::schedule),
        ..Parts::NONE
    },
    ..Dialect::JSONPATH
};

/// Of later editions.
const NOT_OFFERED: &[&str] = &[
    "annotations",
    "auth",
    "authRef",
    "autoRetries",
    "batchSize",
    "constants",
    "consumeEventTimeout",
    "continueAs",
    "dataOnly",
    "defaultCondition",
    "duration",
    "errorRef",
    "errorRefs",
    "errors",
    "extensions",
    "invoke",
    "keepActive",
    "key",
    "mode",
    "nonRetryableErrors",
    "numCompleted",
    "repeat",
    "resultEventTimeout",
    "retryableErrors",
    "secrets",
    "selectionSet",
    "sleep",
    "subFlowRef",
    "terminate",
    "timeouts",
    "toStateData",
    "useData",
    "useResults",
];

pub(super) const RULES: &[Rule] = &[
    Rule::at("/states/*").with(misspelt_type),
    Rule::at("/states/*")
        .with(older::spring)
        .knowing(older::SPRING),
    Rule::at("")
        .with(definition::error_refs)
        .knowing(&["errorRef"]),
    Rule::at("").with(definition::later),
    Rule::at("").with(definition::names),
    Rule::at("").with(name_for_id),
    Rule::at("").also("schemaVersion", "specVersion"),
    Rule::at("").default("specVersion", "0.5"),
    Rule::at("")
        .with(of_0_6::exec_timeout)
        .knowing(&["execTimeout"]),
    Rule::at("").with(definition::state_ids),
    Rule::at("").with(state_ids),
    Rule::at("/events").with(shapes::names).knowing(&["names"]),
    Rule::at("/events/*")
        .with(older::correlation_token)
        .knowing(&["correlationToken"]),
    Rule::at("/events/*").with(events::incomplete),
    Rule::at("/events/*").unknown(&["dataOnly"]),
    Rule::at("/functions/*").unknown(&["authRef"]),
    Rule::at("/functions/*[resource]")
        .with(definition::resource)
        .knowing(&["resource"]),
    Rule::at("/retries/*").with(definition::later_retry),
    Rule::at("/retries/*[multiplier]").with(definition::multiplier),
    // Actions.
    Rule::at("/states/**/actions/*")
        .with(states::action)
        .knowing(&["waitForCompletion"]),
    Rule::at("/states/*/action").with(states::action),
    Rule::at("/states/**/functionRef").rename("parameters", "arguments"),
    Rule::at("/states/**/functionRef").unknown(&["selectionSet", "invoke"]),
    Rule::at("/states/**/eventRef").also("triggerEventRef", "produceEventRef"),
    Rule::at("/states/**/eventRef").also("resultEventRef", "consumeEventRef"),
    Rule::at("/states/**/eventRef")
        .with(states::later_event_timeout)
        .knowing(&["resultEventTimeout", "consumeEventTimeout"]),
    Rule::at("/states/**/eventRef").unknown(&["invoke"]),
    // Kinds of states, with their own properties.
    Rule::at("/states/*").with(state_word),
    Rule::at("/states/*[type=sleep]").with(states::sleep),
    Rule::at("/states/*[type]").with(states::kind),
    Rule::at("/states/*").word("type", "delay", "sleep"),
    Rule::at("/states/*[type=sleep]").rename("timeDelay", "duration"),
    Rule::at("/states/*[type=sleep]").with(of_0_6::delay),
    Rule::at("/states/*[type=sleep]").with(states::cannot_fail),
    Rule::at("/states/*[type=inject]").with(states::cannot_fail),
    Rule::at("/states/*")
        .with(states::later_timeouts)
        .knowing(&["timeouts"]),
    Rule::at("/states/*[type=event]").with(of_0_6::timeout),
    Rule::at("/states/*[type=callback]").with(of_0_6::timeout),
    Rule::at("/states/*[type=callback]").with(states::waits_without_end),
    Rule::at("").with(start::of_states).knowing(&["startsAt"]),
    Rule::at("/states/*[type=switch]").rename("default", "defaultCondition"),
    Rule::at("/states/*[type=switch]").with(states::switch),
    Rule::at("/states/*/onEvents/*[!actions]").with(states::no_actions),
    Rule::at("/states/*[type=parallel]")
        .with(states::later_count)
        .knowing(&["numCompleted"]),
    Rule::at("/states/*[type=parallel]").with(of_0_6::completion),
    Rule::at("/states/*/branches/*").unknown(&["timeouts"]),
    Rule::at("/states/*[type=foreach]")
        .with(states::foreach)
        .knowing(&["inputParameter"]),
    Rule::at("").with(states::own_workflow),
    Rule::at("/states/*[type=parallel]/branches/*").with(of_0_6::workflow_for_actions),
    Rule::at("/states/*[type=foreach]").with(of_0_6::workflow_for_actions),
    Rule::at("/states/*[type=subflow]").unknown(&["repeat"]),
    Rule::at("/states/*[type=subflow]")
        .with(states::subflow)
        .knowing(&["waitForCompletion", "workflowId"]),
    // Transitions, errors.
    Rule::at("").with(ways::of_states).knowing(&[
        "compensate",
        "compensateBefore",
        "nextState",
        "produceEvent",
    ]),
    Rule::at("/states/*/defaultCondition").unknown(&["name"]),
    Rule::at("/states/*/onErrors/*").unknown(&["errorRef", "errorRefs"]),
    Rule::at("/states/*/onErrors").with(states::handled_twice),
    Rule::at("").with(errors::define).knowing(&["code"]),
    // Filters.
    Rule::at("/states/*/stateDataFilter").rename("dataInputPath", "input"),
    Rule::at("/states/*/stateDataFilter").rename("dataOutputPath", "output"),
    Rule::at("/states/**/actionDataFilter").rename("dataInputPath", "fromStateData"),
    Rule::at("/states/**/actionDataFilter").rename("dataResultsPath", "results"),
    Rule::at("/states/**/actionDataFilter").unknown(&["useResults"]),
    Rule::at("/states/**/actionDataFilter").with(states::later_target),
    Rule::at("/states/**/eventDataFilter").also("dataInputPath", "dataOutputPath"),
    Rule::at("/states/**/eventDataFilter").rename("dataOutputPath", "data"),
    Rule::at("/states/**/eventDataFilter").unknown(&["useData"]),
    Rule::at("/states/**/eventDataFilter").with(states::later_target),
];

pub(super) fn properties() -> Vec<&'static str> {
    let known = workflow::PROPERTIES.iter().copied();
    let known = known.filter(|name| !NOT_OFFERED.contains(name));
    known.chain(["schemaVersion", "startsAt"]).collect()
}
