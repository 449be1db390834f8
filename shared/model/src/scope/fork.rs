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
        /// `workflowExecTimeout` has passed and the branch only waited: its state is left
        /// (docs/language.md#decision-81).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        left: bool,
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
    },
}

impl BranchResult {
    pub fn is_done(&self) -> bool {
        matches!(self, BranchResult::Done { .. })
    }

    /// As JSON text.
    pub fn bytes(&self) -> usize {
        crate::data::json_bytes(self)
    }

    /// The result of a branch whose own result would exceed the limit together with the others. Redis' scripts use the
    /// same text.
    pub fn too_large(results_max: usize) -> BranchResult {
        let message =
            format!("the results of all branches would be larger than {results_max} bytes");
        BranchResult::Failed(WorkflowError::new(names::LIMIT_EXCEEDED, message))
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

/// The outcome of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// It is no longer awaited, or has been reported before.
    Stale,
    Noted,
    /// The parent must be notified now.
    Notify,
}

impl Fork {
    /// Records a branch's result; each branch counts once.
    pub fn report(&mut self, index: u32, mut result: BranchResult) -> Reported {
        if self.closed || index >= self.total || self.results.contains_key(&index) {
            return Reported::Stale;
        }
        let bytes = self.bytes.saturating_add(result.bytes());
        if self.results_max > 0 && bytes > self.results_max && result.is_done() {
            result = BranchResult::too_large(self.results_max);
        }
        let urgent = !result.is_done();
        self.restore(index, result);
        if !self.notified && (urgent || self.enough()) {
            self.notified = true;
            Reported::Notify
        } else {
            Reported::Noted
        }
    }

    /// Inserts a result that is already known.
    pub fn restore(&mut self, index: u32, result: BranchResult) {
        self.failed += u32::from(!result.is_done());
        self.bytes = self.bytes.saturating_add(result.bytes());
        self.results.insert(index, result);
    }

    /// Lets more branches run and waits for more results.
    pub fn extend(&mut self, open: u32, needed: u32) {
        self.open = open.min(self.total);
        self.needed = needed;
        self.notified = false;
    }

    /// Forgets the error of a branch, and of all others if asked, so that they may continue. The parent can be notified
    /// again. Returns the branches that continue: those that failed.
    pub fn revive(&mut self, index: u32, others: bool) -> Vec<u32> {
        let failed = |(at, result): (&u32, &BranchResult)| {
            let meant = others || *at == index;
            (meant && matches!(result, BranchResult::Failed(_))).then_some(*at)
        };
        let mut indexes: Vec<u32> = self.results.iter().filter_map(failed).collect();
        // The requested branch continues first.
        indexes.sort_by_key(|at| *at != index);
        for at in &indexes {
            let bytes = self.results.remove(at).map_or(0, |result| result.bytes());
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        self.failed = self.failed.saturating_sub(indexes.len() as u32);
        self.notified = false;
        indexes
    }

    /// How many branches are done without an error.
    pub fn done(&self) -> u32 {
        (self.results.len() as u32).saturating_sub(self.failed)
    }

    /// Whether as many branches are done as the parent waits for.
    pub fn enough(&self) -> bool {
        self.done() >= self.needed
    }

    /// Whether the parent is notified at once when it requests the results.
    pub fn is_news(&self) -> bool {
        self.failed > 0 || self.enough()
    }

    /// Whether the parent waits for a batch after which more branches open. It needs no results then: they are all kept
    /// here until the last batch is done.
    pub fn is_batch(&self) -> bool {
        self.open == self.needed && self.open < self.total
    }

    /// Whether the parent reads the results when it is notified.
    pub fn passes_results(&self) -> bool {
        !self.closed && (self.failed > 0 || !self.is_batch())
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
            last_error: self.last_error.clone(),
            results: Default::default(),
            failed: 0,
            bytes: 0,
            ..*self
        }
    }
}
