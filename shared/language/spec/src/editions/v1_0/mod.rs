//! DSL 1.0: documents whose `document.dsl` is `1.0.x`.
//!
//! A task becomes a state with a [`Task`](swirl_model::workflow::Task), a list of tasks a flow. Parts of the language that
//! aren't carried out yet are refused at their place.

mod authentication;
mod call;
mod call_agents;
mod call_asyncapi;
mod call_grpc;
mod call_http;
mod called;
mod catalog;
mod credentials;
mod data;
mod document;
mod emit;
mod extensions;
mod failure;
mod flow;
mod functions;
mod kinds;
mod listen;
mod oauth2;
mod process;
mod reuse;
mod run;
mod schedule;
mod tasks;
#[cfg(test)]
mod tests;
mod uri;
mod value;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use swirl_documents::source::Node;
use swirl_model::workflow::AuthId;

use crate::build::ctx::Ctx;
use crate::build::dialect::{Dialect, Parts};

pub(super) const DIALECT: Dialect = Dialect {
    variables: value::DEFINITION,
    parts: Parts {
        period_expressions: true,
        ..Parts::NONE
    },
    ..Dialect::JQ
};

pub(super) fn properties() -> Vec<&'static str> {
    document::PROPERTIES.to_vec()
}

/// The properties that a task may have while it has none yet that gives its kind.
pub(crate) fn of_task() -> impl Iterator<Item = &'static str> {
    let kinds = kinds::KINDS.iter().map(|kind| kind.word);
    kinds.chain(tasks::COMMON)
}

pub(crate) fn kinds_of_task() -> impl Iterator<Item = &'static str> {
    kinds::KINDS.iter().map(|kind| kind.word)
}

pub(crate) fn is_label(text: &str) -> bool {
    document::is_label(text)
}

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    let mut reader = Reader {
        ctx,
        kinds: kinds::KINDS,
        loose: false,
        reuse: Reuse::default(),
        used: HashSet::new(),
        variables: BTreeSet::new(),
        auth: HashMap::new(),
        inlining: Inlining::default(),
        lists: Vec::new(),
        extended: Vec::new(),
        skips: false,
        is_inner: false,
    };
    reader.workflow(root);
}

/// The context, and what the document's other parts refer to.
struct Reader<'c, 'a> {
    ctx: &'c mut Ctx<'a>,
    /// The kinds of tasks, each with its reader.
    kinds: &'static [tasks::Kind],
    /// `evaluate.mode: loose`.
    loose: bool,
    reuse: Reuse,
    /// The places of the definitions in `use` that something refers to.
    used: HashSet<String>,
    /// All variables that the document defines.
    variables: BTreeSet<Arc<str>>,
    /// The authentications that have been read, by the place of their definition and the variables there.
    auth: HashMap<String, Option<AuthId>>,
    inlining: Inlining,
    /// The names of the tasks in the lists around the current place, the innermost last.
    lists: Vec<HashSet<String>>,
    /// What each extension extends.
    extended: Vec<&'static str>,
    /// The next list is that of an extension before a task: its `exit` skips the task.
    skips: bool,
    /// Tasks of a function or an extension are being read. They aren't extended.
    is_inner: bool,
}

/// `use`: definitions are read where they are referred to, because their expressions see the values there.
#[derive(Default)]
struct Reuse {
    authentications: Vec<(String, Node)>,
    catalogs: Vec<(String, Node)>,
    errors: Vec<(String, Node)>,
    functions: Vec<(String, Node)>,
    retries: Vec<(String, Node)>,
    timeouts: Vec<(String, Node)>,
}

/// The functions that are being read, and what was read so far.
#[derive(Debug, Default)]
struct Inlining {
    /// The functions around the current place, the innermost last.
    open: Vec<String>,
    /// The functions of the document that something calls.
    called: Vec<String>,
    /// The circles that have been reported.
    circles: Vec<Vec<String>>,
    /// The tasks that calls have added.
    tasks: usize,
}

impl Reader<'_, '_> {
    /// The extensions that may apply to a task of this kind.
    pub fn extensions_of(&self, kind: &str) -> Vec<u16> {
        if self.is_inner {
            return Vec::new();
        }
        let all = self.extended.iter().zip(0u16..);
        all.filter(|(target, _)| **target == "all" || **target == kind)
            .map(|(_, index)| index)
            .collect()
    }
}

impl<'a> Deref for Reader<'_, 'a> {
    type Target = Ctx<'a>;

    fn deref(&self) -> &Ctx<'a> {
        self.ctx
    }
}

impl<'a> DerefMut for Reader<'_, 'a> {
    fn deref_mut(&mut self) -> &mut Ctx<'a> {
        self.ctx
    }
}
