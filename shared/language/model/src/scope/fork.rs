//! Forks: the data that their branches begin with, and their results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::*;
use crate::error::names;

/// The result of a branch or iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BranchResult {
    Done {
        merges: Vec<Merge>,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::data::present"
        )]
        result: Option<Data>,
        /// The branch's `$context`, if it has one.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::data::present"
        )]
        context: Option<Data>,
        /// The time of its end, if it is a branch of a race.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<Timestamp>,
    },
    /// A branch of a race failed. It counts as done, because the others go on.
    Lost {
        error: WorkflowError,
        ended: Timestamp,
    },
    Failed(WorkflowError),
    /// An action's handler leads out of the branch, and out of the state that forked.
    Left {
        way: Exit,
        error: WorkflowError,
    },
    /// A `terminate` end within it: ends the whole instance with this output.
    Terminated {
        data: Data,
        parents: bool,
        /// Of a branch of tasks: the context at its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Data>,
    },
}

impl BranchResult {
    pub fn is_done(&self) -> bool {
        matches!(self, BranchResult::Done { .. } | BranchResult::Lost { .. })
    }

    /// The time of the end of a branch of a race.
    pub fn ended(&self) -> Option<Timestamp> {
        match self {
            BranchResult::Done { ended, .. } => *ended,
            BranchResult::Lost { ended, .. } => Some(*ended),
            _ => None,
        }
    }

    /// As JSON text.
    pub fn bytes(&self) -> usize {
        crate::data::json_bytes(self)
    }

    /// The result of a branch whose own result would exceed the limit together with the others.
    pub fn too_large(results_max: usize) -> BranchResult {
        let message =
            format!("the results of all branches would be larger than {results_max} bytes");
        BranchResult::Failed(WorkflowError::new(names::LIMIT_EXCEEDED, message))
    }
}

/// What a branch says about itself after `workflowExecTimeout` (docs/language.md#decision-81).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub index: u32,
    /// Greater each time, since messages may come twice, or a later one first.
    pub turn: u32,
    /// It only waits.
    pub waits: bool,
}

impl ForkRun {
    /// How many branches only wait, as far as they have said so.
    pub fn idle(&self) -> u32 {
        self.said.iter().filter(|said| said.waits).count() as u32
    }

    /// Takes in what a branch says. Returns whether it is news.
    pub fn hear(&mut self, said: Said) -> bool {
        match self.said.iter_mut().find(|old| old.index == said.index) {
            Some(old) if old.turn >= said.turn => return false,
            Some(old) => *old = said,
            None => self.said.push(said),
        }
        true
    }

    /// Forgets what branches with results have said.
    pub fn forget(&mut self, results: &[(u32, BranchResult)]) {
        let is_done = |index: u32| results.iter().any(|(done, _)| *done == index);
        self.said.retain(|said| !is_done(said.index));
    }
}

/// A fork's record: the branches' common origin, and their results as a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    pub parent: ScopeId,
    pub fork: u32,
    pub origin: ForkOrigin,
    /// The state data at the fork: each branch begins with a copy.
    pub data: Data,
    pub items: Option<Data>,
    pub params: Vec<(Arc<str>, Data)>,
    /// `$context` at the fork.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::data::present"
    )]
    pub context: Option<Data>,
    /// The task that the fork is a part of an extension of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended: Option<Box<Extended>>,
    pub last_error: Option<WorkflowError>,
    pub total: u32,
    /// Branches below this index may run.
    pub open: u32,
    /// The parent is notified when this many are done.
    pub needed: u32,
    pub results: std::collections::BTreeMap<u32, BranchResult>,
    /// The number of results that are not `Done`. Counted here because every report needs it.
    #[serde(default)]
    pub failed: u32,
    /// The size limit of all results together, as JSON text; 0 for none. A branch whose result would make them larger
    /// fails with the error `LimitExceeded`.
    #[serde(default)]
    pub results_max: usize,
    /// Their size.
    #[serde(default)]
    pub bytes: usize,
    /// The parent has been notified.
    #[serde(rename = "told")]
    pub notified: bool,
    pub closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForkOrigin {
    Parallel(StateId),
    Foreach(StateId),
    Actions(ListId),
    Entry(StateId, u16),
    Apart(StateId, u32),
}

impl Fork {
    /// Inserts a result that is already known.
    pub fn restore(&mut self, index: u32, result: BranchResult) {
        self.failed += u32::from(!result.is_done());
        self.bytes = self.bytes.saturating_add(result.bytes());
        self.results.insert(index, result);
    }

    /// The data that a branch begins with: everything but the results of the others.
    pub fn origin_of_branch(&self) -> Fork {
        Fork {
            parent: self.parent.clone(),
            fork: self.fork,
            origin: self.origin,
            data: self.data.clone(),
            items: self.items.clone(),
            params: self.params.clone(),
            context: self.context.clone(),
            extended: self.extended.clone(),
            last_error: self.last_error.clone(),
            results: Default::default(),
            failed: 0,
            bytes: 0,
            ..*self
        }
    }
}
