//! The drafts of edition 0.1: the draft of November 2019, and, with the same reader, the early one of October 2019.
//! Their differences are in [`draft`].
//!
//! Documents mix the forms of both drafts. A form of one draft is accepted in a document of the other with a warning.
//!
//! | file | reads |
//! | --- | --- |
//! | `workflow.rs` | the top level, and the states of a flow |
//! | `trigger.rs` | trigger definitions |
//! | `event_expression.rs` | boolean expressions over triggers |
//! | `state.rs` | the common parts of states: name, filter, transition |
//! | `states/` | one file a kind of state |
//! | `action.rs`, `function.rs`, `retry.rs` | actions, their functions, their retries |
//! | `filter.rs`, `value.rs` | path filters; durations, flags, words |

mod action;
mod draft;
mod event_expression;
mod filter;
mod function;
mod retry;
mod state;
mod states;
mod trigger;
mod value;
mod workflow;

use std::collections::HashMap;

use swirl_model::workflow::FunctionId;

pub(super) use draft::{Draft, EARLY, NOVEMBER};

use swirl_documents::source::Node;

use crate::build::ctx::Ctx;

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    read_as(ctx, root, &NOVEMBER);
}

pub(super) fn properties() -> Vec<&'static str> {
    properties_of(&NOVEMBER)
}

/// The draft's properties, and those that are read in addition.
pub(super) fn properties_of(draft: &'static Draft) -> Vec<&'static str> {
    let further = workflow::FURTHER.iter().chain(&workflow::EDITION);
    let mut all = draft.properties.to_vec();
    all.extend(further.filter(|name| !draft.properties.contains(name)));
    all
}

pub(super) fn read_as(ctx: &mut Ctx<'_>, root: &Node, draft: &'static Draft) {
    let mut reader = Reader {
        ctx,
        draft,
        functions: HashMap::new(),
    };
    reader.workflow(root);
}

/// Shared by the readers in this folder.
struct Reader<'c, 'a> {
    ctx: &'c mut Ctx<'a>,
    draft: &'static Draft,
    /// The functions found so far, by name and type.
    functions: HashMap<(String, String), FunctionId>,
}
