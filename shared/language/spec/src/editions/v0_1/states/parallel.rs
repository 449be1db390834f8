//! Parallel state: branches with their own states (section "Parallel State", docs/language.md#decision-33 and
//! #decision-53).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Body, Branch, Parallel, StateKind};

use super::super::Reader;
use super::super::filter::Filter;
use super::{Read, StateReader};
use crate::build::ctx::Obj;

pub(super) const KIND: StateReader = StateReader {
    word: "PARALLEL",
    properties: &["branches", "next-state"],
    read,
};

const PROPERTIES: &[&str] = &["name", "starts-at", "states", "wait-for-completion"];

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>, filter: Filter<'_>) -> Option<Read> {
    let to = reader.target(filter.result);
    let next = reader.way(obj, "a parallel state");
    let items = match obj.get("branches") {
        Some(node) => reader.ctx.full_list(node, "'branches'").unwrap_or_default(),
        None => {
            reader.ctx.missing(obj, "a parallel state", &["branches"]);
            return None;
        }
    };
    reader.ctx.unique(items, "name", "branch");
    let mut branches = Vec::with_capacity(items.len());
    for item in items {
        branches.push(branch(reader, item));
    }
    let branches = branches.into_iter().collect::<Option<Vec<_>>>()?;
    let parallel = Parallel {
        branches,
        collect: true,
        collect_to: to,
        ..Parallel::default()
    };
    Some(Read::new(StateKind::Parallel(parallel), Some(next?)))
}

fn branch(reader: &mut Reader<'_, '_>, node: &Node) -> Option<Branch> {
    let obj = reader.ctx.object(node, "a branch", PROPERTIES)?;
    let name = reader.ctx.need_string(obj, "a branch", "name");
    if !obj.has("wait-for-completion") {
        reader.ctx.warn(
            node,
            codes::MISSING_PROPERTY,
            "a branch needs 'wait-for-completion': nothing waits for this branch",
            "add 'wait-for-completion', true or false".to_owned(),
        );
    }
    let awaited = reader.flag(obj, "wait-for-completion", false);
    let items = reader.ctx.need_list(obj, "a branch", "states")?;
    let what = match &name {
        Some(name) => format!("the branch '{name}'"),
        None => "a branch".to_owned(),
    };
    let flow = reader.flow(obj, &what, items);
    let states = &reader.ctx.workflow[flow].states;
    let ends = reader.ctx.ends.iter().any(|state| states.contains(state));
    let is_read = !reader.ctx.of_unknown_kind.contains(&flow);
    if is_read && !items.is_empty() && !ends && !items.iter().any(is_end) {
        let hint = match reader.draft.start_is_marked {
            true => "add a state of type END",
            false => "set 'end: true' in the last state",
        };
        let message = format!("{what} has no end state");
        let code = codes::MISSING_PROPERTY;
        reader.ctx.error(node, code, message, hint.to_owned());
    }
    Some(Branch {
        name: name?.into(),
        body: Body::Flow(flow),
        timeout: None,
        awaited,
    })
}

/// Whether a branch may end in this state, in the form of each draft.
fn is_end(state: &Node) -> bool {
    let text = |name: &str| state.get(name).and_then(Node::as_str).unwrap_or_default();
    let flag = state.get("end").and_then(Node::as_bool);
    flag == Some(true)
        || text("end").eq_ignore_ascii_case("true")
        || text("type").eq_ignore_ascii_case("end")
}
