//! The workflow definition itself (section "Workflow Definition").

use std::sync::Arc;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::StateId;

use super::{start, state};
use crate::build::ctx::{Ctx, Obj};
use crate::build::earlier::older::as_there;
use crate::build::params::is_variable;

pub(super) const PROPERTIES: &[&str] = &[
    "id",
    "name",
    "description",
    "version",
    "schemaVersion",
    "specVersion",
    "expressionLang",
    "dataInputSchema",
    "dataOutputSchema",
    "events",
    "functions",
    "retries",
    "states",
    "metadata",
    "start",
    "startsAt",
];

/// Properties of other editions.
const OTHERS: [&str; 4] = ["autoRetries", "constants", "execTimeout", "secrets"];

pub(in crate::editions) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    if root.members().is_none() {
        ctx.wrong_type(root, "a workflow definition", "an object");
        return;
    }
    let root = Obj { node: root };
    identity(ctx, root);
    ctx.language(root);
    ctx.version(root);
    ctx.workflow.metadata = metadata(ctx, root);
    as_there(ctx, root.node, &OTHERS);
    ctx.auto_retries = ctx.boolean(root, "autoRetries", false);
    ctx.secrets(root);
    ctx.constants(root);
    let states = ctx
        .need_list(root, "a workflow definition", "states")
        .unwrap_or_default();
    if states.is_empty()
        && let Some(node) = root.get("states").filter(|node| node.items().is_some())
    {
        let message = "'states' is empty: a workflow has at least one state";
        ctx.error(node, codes::EMPTY_LIST, message, "add a state".to_owned());
    }
    iteration_params(ctx, states);
    if let Some(node) = root.get("retries") {
        ctx.retry_definitions(node);
    }
    if let Some(node) = root.get("events") {
        ctx.events(node);
    }
    if let Some(node) = root.get("functions") {
        ctx.functions(node);
    }
    ctx.enter_flow();
    state::heads(ctx, states);
    if let Some(node) = root.get("execTimeout") {
        ctx.workflow.timeout = ctx.workflow_exec_timeout(node);
    }
    let start = start::of_states(ctx, root, states);
    state::read_all(ctx, states, start);
    schemas(ctx, root, start);
    ctx.check_custom_types();
    if !states.is_empty() {
        ctx.check_graph(start);
        ctx.start_event_values(start);
    }
    ctx.leave_flow(start);
}

/// docs/language.md#decision-3: a missing id does no harm if there is a name, and vice versa.
fn identity(ctx: &mut Ctx<'_>, root: Obj<'_>) {
    for name in ["id", "name"] {
        if let Some(node) = root.get(name)
            && let Some(text) = node.as_str().filter(|text| !text.is_empty())
        {
            ctx.check_id(node, &format!("'{name}'"), text);
        }
    }
    if let Some(node) = root.get("id")
        && node
            .as_str()
            .is_some_and(|text| text.contains(ctx.dialect.delimiters.open()))
    {
        ctx.error(
            node,
            codes::ID_NOT_CONSTANT,
            "'id' must be a constant, and has an expression in it",
            "write a fixed name; 'version' may be an expression".to_owned(),
        );
    }
    let id = ctx.opt_name(root, "id");
    let name = ctx.opt_name(root, "name");
    match (root.has("id"), root.has("name")) {
        (false, false) => ctx.missing(root, "a workflow definition", &["id"]),
        (false, true) => ctx.warn(
            root.node,
            codes::MISSING_PROPERTY,
            "the workflow has no 'id': its name is used instead",
            "add 'id'".to_owned(),
        ),
        (true, false) => ctx.warn(
            root.node,
            codes::MISSING_PROPERTY,
            "the workflow has no 'name'",
            "add 'name'".to_owned(),
        ),
        (true, true) => {}
    }
    ctx.workflow.id = id.or_else(|| name.clone()).unwrap_or_default();
    ctx.workflow.name = name;
    ctx.workflow.description = ctx.description(root);
    for name in ["schemaVersion", "specVersion"] {
        if let Some(node) = root.get(name) {
            ctx.text(node, &format!("'{name}'"));
        }
    }
}

/// `metadata`, and the other top-level properties, which are kept. A property that resembles a known name gets a
/// warning.
fn metadata(ctx: &mut Ctx<'_>, root: Obj<'_>) -> Data {
    let mut metadata = ctx.metadata(root);
    for member in root.node.members().unwrap_or_default() {
        if PROPERTIES.contains(&member.key()) || OTHERS.contains(&member.key()) {
            continue;
        }
        ctx.additional(member, PROPERTIES);
        if metadata.get(member.key()).is_none() {
            metadata.set(member.key(), member.value().to_data());
        }
    }
    metadata
}

/// Expression functions are checked with all parameters that may be in scope at their uses.
fn iteration_params(ctx: &mut Ctx<'_>, states: &[Node]) {
    for state in states {
        let name = state.get("iterationParam").and_then(Node::as_str);
        if let Some(name) = name.filter(|name| is_variable(name)) {
            let name: Arc<str> = name.into();
            if !ctx.all_params.contains(&name) {
                ctx.all_params.push(name);
            }
        }
    }
}

fn schemas(ctx: &mut Ctx<'_>, root: Obj<'_>, start: StateId) {
    ctx.workflow.input_schema = ctx.schema(root, "dataInputSchema");
    ctx.workflow.output_schema = ctx.schema(root, "dataOutputSchema");
    let head = ctx.states.get(start.0 as usize);
    if let (true, Some(node)) = (
        head.is_some_and(|head| head.is_event),
        root.get("dataInputSchema"),
    ) {
        // docs/language.md#decision-19.
        let why = "the workflow starts with an event state";
        ctx.ignored(node, "dataInputSchema", why);
        ctx.workflow.input_schema = None;
    }
}
