//! Edition 0.7, as differences from 0.8.
//!
//! It differs only in a few words. Additions of 0.8 and other names of 0.6 are accepted with a warning
//! (docs/language.md#decision-96).

mod later;

use crate::build::dialect::{Dialect, Parts};
use crate::build::earlier::events;
use crate::build::earlier::identity::{name_for_id, start_missing, state_ids};
use crate::build::earlier::loose::{in_action, in_entry, in_state};
use crate::build::earlier::older::{self, NAMES, names as names_of_earlier_editions};
use crate::build::earlier::snapshots;
use crate::build::earlier::words::{self, function_word, misspelt_type, state_word};
use crate::build::rule::Rule;

/// jq in `${ }`, with older rules for words and retries (docs/language.md#decision-4 and #decision-20).
pub(super) const DIALECT: Dialect = Dialect {
    words_any_case: true,
    one_attempt_retries: true,
    own_names: &[
        ("produceEventRef", "triggerEventRef"),
        ("consumeEventRef", "resultEventRef"),
        ("consumeEventTimeout", "resultEventTimeout"),
    ],
    parts: Parts {
        earlier_parts: true,
        timeouts_of_all_states: true,
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
    Rule::at("").with(name_for_id),
    Rule::at("").with(state_ids),
    Rule::at("").with(names_of_earlier_editions).knowing(NAMES),
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
    Rule::at("").with(snapshots::start_in_a_state),
    Rule::at("").with(older::starts_at).knowing(&["startsAt"]),
    Rule::at("").with(start_missing),
    Rule::at("/states/*/stateDataFilter")
        .with(snapshots::state_filter)
        .knowing(&["dataInputPath", "dataOutputPath"]),
    Rule::at("/states/**/actionDataFilter")
        .with(snapshots::action_filter)
        .knowing(&["dataInputPath", "dataResultsPath"]),
    Rule::at("/states/**/eventDataFilter").with(snapshots::event_filter),
    Rule::at("/states/*").with(state_word),
    Rule::at("/functions/*").with(function_word),
    Rule::at("/timeouts").also("actionExecTimeouts", "actionExecTimeout"),
    Rule::at("/**/timeouts").with(words::total_timeout),
    Rule::at("/**/eventRef").rename("triggerEventRef", "produceEventRef"),
    Rule::at("/**/eventRef").rename("resultEventRef", "consumeEventRef"),
    Rule::at("/**/eventRef").rename("resultEventTimeout", "consumeEventTimeout"),
    Rule::at("/**/actions/*").with(later::in_action),
    Rule::at("/states/*/action").with(later::in_action),
    Rule::at("/**/eventDataFilter").with(later::in_event_filter),
];
