//! Edition 0.9, as differences from 0.8.
//!
//! A name identifies a workflow, errors are problems as in RFC 7807 with handlers and policies, actions publish and
//! subscribe, and durations may be expressions (docs/language.md#decision-98 and #decision-101).

mod action;
mod configuration;
mod document;
mod errors;
mod function;
mod handlers;
mod names;

use swirl_documents::source::Node;
use swirl_model::workflow::{FunctionKind, Version};

use crate::build::ctx::Ctx;
use crate::build::dialect::{ActionReader, Dialect, ErrorReader, FunctionReader, Parts};
use crate::build::earlier::words::misspelt_type;
use crate::build::earlier::{older, snapshots};
use crate::build::rule::Rule;

pub(super) const DIALECT: Dialect = Dialect {
    own_names: &[("id", "name"), ("rest", "openapi")],
    parts: Parts {
        earlier_parts: true,
        state_timeout_is_text: true,
        period_expressions: true,
        events_without_kind: true,
        result_under_name: true,
        instance_key: true,
        action: Some(ActionReader {
            properties: &[
                "name",
                "functionRef",
                "publish",
                "subscribe",
                "subFlowRef",
                "onErrors",
                "actionDataFilter",
                "sleep",
                "condition",
            ],
            invocations: &["functionRef", "publish", "subscribe", "subFlowRef"],
            invocation: action::invocation,
        }),
        errors: Some(ErrorReader {
            definitions: configuration::read,
            of_state: handlers::of_state,
            of_action: handlers::of_action,
            unused: handlers::check_unused,
        }),
        function: Some(FunctionReader {
            kinds: &[("http", FunctionKind::Http)],
            operation: function::operation,
        }),
        ..Parts::NONE
    },
    ..Dialect::JQ
};

pub(super) const RULES: &[Rule] = &[
    Rule::at("/states/*").with(misspelt_type),
    Rule::at("").with(names::check),
    Rule::at("").with(document::identity),
    Rule::at("").unknown(&["autoRetries"]),
    Rule::at("/functions/*").with(function::kind),
    Rule::at("/errors")
        .with(document::policy)
        .knowing(&["policy"]),
    Rule::at("/events/*").with(document::event),
    Rule::at("/**/actions/*")
        .with(document::arguments_beside)
        .knowing(&["args"]),
    Rule::at("/states/*/action").with(document::arguments_beside),
    Rule::at("/states/*[type=sleep]").with(document::no_sleep),
    Rule::at("/states/*[type=delay]").with(document::no_sleep),
    Rule::at("").with(older::names).knowing(older::NAMES),
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
    Rule::at("/**/actions/*").with(older::sub_flow),
    Rule::at("").with(snapshots::start_in_a_state),
    Rule::at("").with(older::starts_at).knowing(&["startsAt"]),
    Rule::at("/states/*/stateDataFilter")
        .with(snapshots::state_filter)
        .knowing(&["dataInputPath", "dataOutputPath"]),
    Rule::at("/states/**/actionDataFilter")
        .with(snapshots::action_filter)
        .knowing(&["dataInputPath", "dataResultsPath"]),
    Rule::at("/states/**/eventDataFilter").with(snapshots::event_filter),
];

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    ctx.workflow.problems = Some("https://serverlessworkflow.io/spec/errors/");
    ctx.workflow.version = Version::Latest;
    ctx.read_workflow(root);
}
