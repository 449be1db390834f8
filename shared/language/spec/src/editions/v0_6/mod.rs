//! Edition 0.6, as differences from 0.8.
//!
//! States that 0.8 doesn't have become others (a delay state sleeps, a subflow state is an operation state). Timeouts
//! are where they apply, and errors are described where they are handled.

use crate::build::dialect::{Dialect, Parts};
use crate::build::earlier::identity::{name_for_id, start_missing, state_ids};
use crate::build::earlier::loose::{in_action, in_entry, in_state};
use crate::build::earlier::words::{function_word, misspelt_type, state_word};
use crate::build::earlier::{errors, events, older, snapshots, states};
use crate::build::rule::Rule;

/// jq in `${ }`, with older rules for words and retries (docs/language.md#decision-4 and #decision-20).
pub(super) const DIALECT: Dialect = Dialect {
    words_any_case: true,
    one_attempt_retries: true,
    own_names: &[
        ("produceEventRef", "triggerEventRef"),
        ("consumeEventRef", "resultEventRef"),
        ("defaultCondition", "default"),
        ("/states/duration", "timeDelay"),
        ("numCompleted", "n"),
        ("errorRef", "error"),
        ("specVersion", "schemaVersion"),
        ("workflowExecTimeout", "execTimeout"),
    ],
    parts: Parts {
        action_timeout: true,
        handler_retry: true,
        foreach_max: true,
        repeat: Some(states::repeat),
        ..Parts::NONE
    },
    ..Dialect::JQ
};

pub(super) const RULES: &[Rule] = &[
    Rule::at("/states/*").with(misspelt_type),
    Rule::at("/**/actions/*")
        .with(in_action)
        .knowing(&["args", "actionFilter"]),
    Rule::at("/states/*/action").with(in_action),
    Rule::at("/states/*")
        .with(in_state)
        .knowing(&["stateFilter", "eventFilter"]),
    Rule::at("/**/onEvents/*")
        .with(in_entry)
        .knowing(&["eventFilter"]),
    Rule::at("/states/*")
        .with(older::spring)
        .knowing(older::SPRING),
    Rule::at("").with(name_for_id),
    Rule::at("").with(state_ids),
    Rule::at("")
        .with(snapshots::start_in_a_state)
        .knowing(&["start"]),
    Rule::at("").with(older::starts_at).knowing(&["startsAt"]),
    Rule::at("").with(older::ways).knowing(older::WAYS),
    Rule::at("/functions/*")
        .with(older::function)
        .knowing(&["resource"]),
    Rule::at("/events")
        .with(older::event_names)
        .knowing(&["names"]),
    Rule::at("/events/*")
        .with(older::correlation_token)
        .knowing(&["correlationToken"]),
    Rule::at("/events/*").with(events::incomplete),
    Rule::at("/states/*[type=foreach]")
        .with(older::iteration_param)
        .knowing(&["inputParameter"]),
    Rule::at("").with(start_missing),
    Rule::at("/states/*/stateDataFilter")
        .with(snapshots::state_filter)
        .knowing(&["dataInputPath", "dataOutputPath"]),
    Rule::at("/states/**/actionDataFilter")
        .with(snapshots::action_filter)
        .knowing(&["dataInputPath", "dataResultsPath"]),
    Rule::at("/states/**/eventDataFilter").with(snapshots::event_filter),
    Rule::at("").also("schemaVersion", "specVersion"),
    Rule::at("").default("specVersion", "0.6"),
    Rule::at("")
        .with(states::exec_timeout)
        .knowing(&["execTimeout"]),
    Rule::at("/states/*").word("type", "delay", "sleep"),
    Rule::at("/states/*").with(state_word),
    Rule::at("/functions/*").with(function_word),
    Rule::at("/states/*[type=sleep]").rename("timeDelay", "duration"),
    Rule::at("/states/*[type=sleep]").with(states::delay),
    Rule::at("/states/*[type=subflow]")
        .with(states::subflow)
        .knowing(&["repeat", "waitForCompletion", "workflowId"]),
    Rule::at("/states/*[type=switch]").rename("default", "defaultCondition"),
    Rule::at("/states/*[type=switch]").with(states::event_timeout_of_switch),
    Rule::at("/states/*[type=event]").with(states::timeout),
    Rule::at("/states/*[type=callback]").with(states::timeout),
    Rule::at("/states/*[type=parallel]").with(states::completion),
    Rule::at("/states/*[type=parallel]/branches/*").with(states::workflow_for_actions),
    Rule::at("/states/*[type=foreach]").with(states::workflow_for_actions),
    Rule::at("/**/eventRef").rename("triggerEventRef", "produceEventRef"),
    Rule::at("/**/eventRef").rename("resultEventRef", "consumeEventRef"),
    Rule::at("")
        .with(errors::define)
        .knowing(&["code", "error"]),
];
