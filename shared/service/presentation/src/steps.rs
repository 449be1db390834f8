//! The history of an instance as a tree of steps with a beginning and an end: states, branches, iterations, actions,
//! their attempts, and waits.
//!
//! Only the entries and the open positions are needed, so a part of a history gives the steps of that part. A branch has
//! no entry for its end: one that isn't open has ended with its last entry.

use swirl_api::history::HistoryEntry;
use swirl_api::instance::ScopePosition;

mod build;
mod flow;

use build::Build;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    State,
    Branch,
    Iteration,
    Action,
    Attempt,
    Wait,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Open,
    Done,
    Failed,
    /// A state was left by an error, which was handled.
    Caught,
    /// It was done, and has been undone since.
    Compensated,
    Skipped,
    /// It ended because a step around it did.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Retried,
    TimedOut,
    Compensated,
    /// An operator acted.
    Operated,
}

#[derive(Debug)]
pub struct Step {
    pub kind: Kind,
    pub name: String,
    pub from: i64,
    /// In milliseconds, as `from`; `None` while it is open.
    pub to: Option<i64>,
    pub outcome: Outcome,
    /// Its retries, timeouts and other marks, with their times.
    pub marks: Vec<(Mark, i64)>,
    /// It undoes another step.
    pub compensates: bool,
    /// The entry with which it begins, and the one with which it ends if that is known.
    pub first: usize,
    pub last: Option<usize>,
    /// Its own entries, without those of the steps within it.
    pub lines: Vec<usize>,
    pub parent: Option<usize>,
    pub children: Vec<usize>,
    scope: usize,
}

impl Step {
    pub fn has(&self, mark: Mark) -> bool {
        self.marks.iter().any(|(one, _)| *one == mark)
    }
}

/// Steps by their numbers.
#[derive(Debug, Default)]
pub struct Steps {
    pub all: Vec<Step>,
    /// Those of the main flow.
    pub roots: Vec<usize>,
    /// The step of each entry, if it has one.
    pub of_line: Vec<Option<usize>>,
}

impl Steps {
    /// `open`: the scopes that have not ended, if they are known.
    pub fn new(history: &[HistoryEntry], open: Option<&[ScopePosition]>) -> Steps {
        let mut build = Build::default();
        for (line, entry) in history.iter().enumerate() {
            build.take(line, entry);
        }
        build.finish(open)
    }

    /// The step and those around it, the outermost first.
    pub fn path(&self, step: usize) -> Vec<usize> {
        let up = |step: &usize| self.all[*step].parent;
        let mut path: Vec<usize> = std::iter::successors(Some(step), up).collect();
        path.reverse();
        path
    }

    /// The entries of the step and of all steps within it, in order.
    pub fn lines_of(&self, step: usize) -> Vec<usize> {
        let mut lines = Vec::new();
        let mut open = vec![step];
        while let Some(step) = open.pop() {
            lines.extend(&self.all[step].lines);
            open.extend(&self.all[step].children);
        }
        lines.sort_unstable();
        lines
    }

    /// The innermost step that failed last, if the instance failed with it.
    pub fn failed(&self) -> Option<usize> {
        let failed = |step: &&usize| self.all[**step].outcome == Outcome::Failed;
        let mut at = *self.roots.last().filter(|step| failed(step))?;
        while let Some(next) = self.all[at].children.iter().rev().find(failed) {
            at = *next;
        }
        Some(at)
    }

    /// The state that was entered next in the same flow.
    pub fn next_state(&self, step: usize) -> Option<usize> {
        let scope = self.all[step].scope;
        let later = self.all.iter().enumerate().skip(step + 1);
        let mut later = later.filter(|(_, one)| one.kind == Kind::State && one.scope == scope);
        let end = self.all[step].last?;
        later.find(|(_, one)| one.first > end).map(|(next, _)| next)
    }
}

#[cfg(test)]
mod tests;
