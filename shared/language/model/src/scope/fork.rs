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

/// What the branches of a fork have said last. Many of them say the same at the same time, so neighbours that are alike
/// take one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Heard(Vec<Alike>);

/// Neighbours that have said the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Alike {
    /// The first of them.
    index: u32,
    /// How many follow it.
    #[serde(default, skip_serializing_if = "is_none")]
    more: u32,
    turn: u32,
    waits: bool,
}

impl Alike {
    fn last(&self) -> u32 {
        self.index.saturating_add(self.more)
    }

    fn says(&self, said: Said) -> bool {
        (self.turn, self.waits) == (said.turn, said.waits)
    }
}

impl Heard {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How many branches only wait, as far as they have said so.
    pub fn idle(&self) -> u32 {
        let waits = self.0.iter().filter(|alike| alike.waits);
        waits.map(|alike| alike.more + 1).sum()
    }

    /// Takes in what a branch says. Returns whether it is news.
    pub fn hear(&mut self, said: Said) -> bool {
        let is_news = self.find(said.index).is_none_or(|old| old.turn < said.turn);
        if is_news {
            self.replace(said.index, Some(said));
        }
        is_news
    }

    /// The branch goes on, whatever it has said.
    pub fn goes_on(&mut self, index: u32) {
        if let Some(Alike { turn, .. }) = self.find(index) {
            let waits = false;
            self.replace(index, Some(Said { index, turn, waits }));
        }
    }

    /// Forgets what branches with results have said.
    pub fn forget(&mut self, results: &[(u32, BranchResult)]) {
        for (index, _) in results {
            self.replace(*index, None);
        }
    }

    fn place(&self, index: u32) -> usize {
        self.0.partition_point(|alike| alike.last() < index)
    }

    fn find(&self, index: u32) -> Option<Alike> {
        let found = self.0.get(self.place(index)).copied();
        found.filter(|alike| alike.index <= index)
    }

    fn replace(&mut self, index: u32, said: Option<Said>) {
        let place = self.place(index);
        let old = self.find(index);
        let before = old.filter(|old| old.index < index).map(|old| Alike {
            more: index - 1 - old.index,
            ..old
        });
        let behind = old.filter(|old| old.last() > index).map(|old| Alike {
            index: index + 1,
            more: old.last() - index - 1,
            ..old
        });
        let own = said.map(|said| Alike {
            index,
            more: 0,
            turn: said.turn,
            waits: said.waits,
        });
        let parts = [before, own, behind].into_iter().flatten();
        self.0
            .splice(place..place + usize::from(old.is_some()), parts);
        if let Some(said) = said {
            let own = place + usize::from(before.is_some());
            self.unite(own + 1, said);
            self.unite(own, said);
        }
    }

    /// Unites the entry at this place with the one before it, if they are neighbours that say this.
    fn unite(&mut self, place: usize, said: Said) {
        let Some(before) = place.checked_sub(1) else {
            return;
        };
        let (Some(first), Some(next)) = (self.0.get(before), self.0.get(place)) else {
            return;
        };
        if first.last() + 1 == next.index && first.says(said) && next.says(said) {
            self.0[before].more += next.more + 1;
            self.0.remove(place);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(index: u32, turn: u32, waits: bool) -> Said {
        Said { index, turn, waits }
    }

    #[test]
    fn branches_that_say_the_same_take_one_place() {
        let mut heard = Heard::default();
        for index in (0..1_000).rev().step_by(2).chain((0..1_000).step_by(2)) {
            assert!(heard.hear(said(index, 4, true)));
        }
        assert_eq!((heard.0.len(), heard.idle()), (1, 1_000));
        assert!(heard.hear(said(500, 6, false)) && !heard.hear(said(500, 5, true)));
        assert_eq!((heard.0.len(), heard.idle()), (3, 999));
        assert!(heard.hear(said(500, 7, true)));
        heard.goes_on(500);
        heard.goes_on(2_000);
        assert!(!heard.hear(said(500, 7, true)) && heard.idle() == 999);
        let lost = BranchResult::Failed(WorkflowError::new("E", ""));
        heard.forget(&[(0, lost.clone()), (999, lost.clone()), (10, lost)]);
        assert_eq!(heard.idle(), 996);
        let text = serde_json::to_string(&heard).unwrap();
        assert_eq!(serde_json::from_str::<Heard>(&text).unwrap(), heard);
    }

    #[test]
    fn each_branch_is_heard_as_if_it_stood_alone() {
        let mut heard = Heard::default();
        let mut plain = std::collections::BTreeMap::<u32, (u32, bool)>::new();
        let mut draw = 7_u32;
        for _ in 0..5_000 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (index, turn, waits) = ((draw >> 8) % 20, (draw >> 16) % 4, draw >> 31 == 1);
            if (draw >> 20).is_multiple_of(5) {
                let done = BranchResult::Failed(WorkflowError::new("E", ""));
                heard.forget(&[(index, done)]);
                plain.remove(&index);
                continue;
            }
            let is_news = plain.get(&index).is_none_or(|(old, _)| *old < turn);
            assert_eq!(heard.hear(said(index, turn, waits)), is_news);
            if is_news {
                plain.insert(index, (turn, waits));
            }
            let idle = plain.values().filter(|(_, waits)| *waits).count();
            assert_eq!(heard.idle() as usize, idle);
        }
    }
}
