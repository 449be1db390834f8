//! The effect of a commit on the fork that its scope is a branch of.

use swirl_model::scope::BranchResult;

use crate::request::Request;
use crate::snapshot::Snapshot;

/// The place of a branch in the tree of scopes: `r.3.1` is branch 1 of fork `r.3`, the third fork of `r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchPosition<'a> {
    pub fork: &'a str,
    pub parent: &'a str,
    pub number: u32,
    pub index: u32,
}

impl<'a> BranchPosition<'a> {
    /// Returns `None` for a root.
    pub fn of(scope: &'a str) -> Option<BranchPosition<'a>> {
        let (fork, index) = scope.rsplit_once('.')?;
        let (parent, number) = fork.rsplit_once('.')?;
        Some(BranchPosition {
            fork,
            parent,
            number: number.parse().ok()?,
            index: index.parse().ok()?,
        })
    }
}

#[derive(Debug)]
pub struct BranchChange<'a> {
    pub place: BranchPosition<'a>,
    /// It has no record yet, so it depends on its fork being open.
    pub is_unborn: bool,
    /// The change of the number of branches with a record.
    pub live: i32,
    /// The result, if it counts. Branches that end at the same time don't conflict, so it is counted when the commit is
    /// written ([`Numbers::count`](crate::Numbers::count)).
    pub report: Option<Report>,
    /// The scope that made the fork has ended, so nothing notifies it.
    pub is_orphan: bool,
    /// The fork is closed, and stays so: it is removed with its last branch.
    pub is_closed: bool,
}

#[derive(Debug)]
pub struct Report {
    pub is_done: bool,
    /// Takes the place of a result that would make the results of all branches too large.
    pub replaced: Option<BranchResult>,
}

pub(crate) fn change<'a>(
    request: &Request<'a, '_>,
    known: &Snapshot<'_>,
    place: BranchPosition<'a>,
) -> BranchChange<'a> {
    let (fork, gone) = (known.enclosing, request.parts.gone);
    let is_closed = fork.is_some_and(|fork| fork.is_closed);
    // Each branch counts once, and nothing waits for a closed fork.
    let counts = !is_closed && !known.has_reported;
    let report = request.parts.report.filter(|_| counts).map(|result| {
        let all = fork.map_or(0, |fork| fork.bytes) + request.size.result.unwrap_or(0) as u64;
        let most = fork.map_or(0, |fork| fork.most);
        let is_too_large = result.is_done() && most > 0 && all > most;
        let limit = usize::try_from(most).unwrap_or(usize::MAX);
        Report {
            is_done: result.is_done() && !is_too_large,
            replaced: is_too_large.then(|| BranchResult::too_large(limit)),
        }
    });
    BranchChange {
        place,
        is_unborn: known.record.is_none(),
        live: match (known.record.is_some(), gone) {
            (false, false) => 1,
            (true, true) => -1,
            _ => 0,
        },
        report,
        is_orphan: known.is_orphan,
        is_closed,
    }
}
