//! What a commit does to the fork that its scope is a branch of, and the scopes that it detaches.

use swirl_model::scope::{BranchResult, Scope};

use crate::draft::Draft;
use crate::facts::Branch;
use crate::lazy::enclosing_forks;
use crate::plan_input::{PlanInput, Unplanned};
use crate::record::flags;
use crate::snapshot::Snapshot;

impl Draft<'_> {
    /// The part of a branch. The function counts its result, since branches that end at the same time don't conflict.
    pub fn branch(
        &mut self,
        fork: &str,
        index: u32,
        gone: bool,
        input: &mut PlanInput<'_>,
        known: &Snapshot,
    ) -> Result<Branch, Unplanned> {
        let (parent, number) = fork.rsplit_once('.').unwrap_or_default();
        let now = known.reread.as_ref().and_then(|now| now.fork.as_ref());
        let is_orphan = known.reread.as_ref().is_some_and(|now| now.is_orphan);
        let is_closed = now.is_some_and(|fork| fork.closed == 1);
        // Each branch counts once, and nothing waits for a closed fork.
        let counts = !is_closed && !known.has_reported();
        let result = input.result.take().filter(|_| counts);
        let (mut letter, mut bytes) = ("", 0);
        if let (Some(report), Some(mut result)) = (input.parts.report, result) {
            letter = if report.is_done() { "d" } else { "f" };
            let most = now.map_or(0, |fork| fork.most);
            let all = now.map_or(0, |fork| fork.bytes) + result.len() as u64;
            if letter == "d" && most > 0 && all > most {
                let limit = usize::try_from(most).unwrap_or(usize::MAX);
                result = serde_json::to_vec(&BranchResult::too_large(limit))
                    .map_err(|_| Unplanned::Damaged("a result that is too large"))?;
                letter = "f";
            }
            bytes = result.len();
            self.set_own("b:", result);
        }
        Ok(Branch {
            fork: fork.to_owned(),
            number: number.to_owned(),
            index: if known.recorded { -1 } else { i64::from(index) },
            stamp: match (now, input.commit.lease.fork_stamp) {
                (Some(fork), _) => fork.stamp.clone(),
                (None, 0) => String::new(),
                (None, stamp) => stamp.to_string(),
            },
            live: match (known.recorded, gone) {
                (false, false) => 1,
                (true, true) => -1,
                _ => 0,
            },
            result: letter,
            bytes,
            reads_parent: known.completes && !letter.is_empty(),
            parent: (!is_orphan).then(|| parent.to_owned()),
            is_closed,
        })
    }

    /// Reads the numbers of a branch's fork and what its parent needs; and unless the branch is gone, the marks of the
    /// parent and the numbers of the fork that it is a branch of, and so on. Returns the number of these forks.
    pub fn read_branch(&mut self, branch: &Branch, gone: bool) -> usize {
        let (parent, _) = branch.fork.rsplit_once('.').unwrap_or_default();
        self.read.push(format!("g:{}", branch.fork));
        if branch.reads_parent {
            let parent = ["l:", "q:", "x:"].map(|kind| format!("{kind}{parent}"));
            self.read.extend(parent);
        }
        if gone {
            return 0;
        }
        let around = enclosing_forks(parent);
        let mut scope = parent;
        for (parent, fork, _) in &around {
            self.read.push(format!("m:{scope}"));
            self.read.push(format!("g:{fork}"));
            scope = parent;
        }
        around.len()
    }

    /// Writes a detached scope. Returns whether it goes on by itself.
    pub fn detach(&mut self, scope: &Scope, record: Vec<u8>, stamp: u64) -> bool {
        let flags = flags(scope);
        let mark = format!("{} {flags} {stamp}", scope.rev);
        self.set(&format!("r:{}", scope.id), record);
        self.set(&format!("m:{}", scope.id), mark.into_bytes());
        flags.contains('g')
    }
}
