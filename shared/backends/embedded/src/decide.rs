//! Decides about a commit. Nothing changes while the store is locked, so everything about the scope is known.

use std::sync::Arc;

use swirl_commit::{
    BranchPosition, CommitParts, Decision, Flags, ForkCommand, Hold, Item, Numbers, OwnFork,
    Record, Request, Size, Snapshot, Undecided, decide, failures,
};
use swirl_model::ids::ScopeId;
use swirl_model::scope::BranchResult;
use swirl_ports::Commit;

use crate::key::Seq;
use crate::state::{Inst, State};
use crate::weight::of_fork;

impl State {
    /// Also returns the ids of the consumed inputs. `effects`: their number.
    pub(crate) fn decide<'c>(
        &self,
        (seq, inst): (Seq, &Inst),
        commit: &'c Commit,
        parts: &CommitParts<'c>,
        effects: usize,
        size: Size,
    ) -> Result<(Decision<'c>, Vec<Arc<str>>), Undecided> {
        let scope = &commit.lease.scope.scope;
        let limit = self.options.instance_bytes;
        let request = Request {
            commit,
            parts,
            rev: commit.scope.rev,
            effects,
            refers_to_fork: false,
            size,
            limit: (limit > 0).then_some(limit >> 10),
        };
        let entry = inst.scopes.get(scope);
        let waiting = entry.map(|entry| entry.inbox.items()).unwrap_or_default();
        let (ids, items): (Vec<&Arc<str>>, Vec<Item<'_>>) = waiting.into_iter().unzip();
        let timers = match parts.changes_timers {
            true => self.timers.armed(seq, scope),
            false => Vec::new(),
        };
        let (mut forks, mut own_forks) = (Vec::new(), Vec::new());
        if parts.gone || !parts.forks.is_empty() {
            let all = (scope.clone(), 0)..=(scope.clone(), u32::MAX);
            forks.extend(inst.forks.range(all).map(|((_, fork), _)| *fork));
            let changed = parts.changed_forks().into_iter();
            own_forks.extend(changed.filter_map(|fork| own_fork(inst, scope, fork, parts)));
        }
        let enclosing = BranchPosition::of(scope.as_str()).and_then(|place| {
            let entry = inst
                .forks
                .get(&(ScopeId::new(place.parent), place.number))?;
            let numbers = Numbers::of(&entry.fork, entry.notification_count);
            Some((numbers, entry.fork.results.contains_key(&place.index)))
        });
        let record = entry.and_then(|entry| {
            let record = entry.scope.as_deref()?;
            Some(Record {
                version: Some((record.rev, 0)),
                flags: Flags::of(record),
                kib: entry.kib,
            })
        });
        let hold = entry.and_then(|entry| entry.lease.as_ref());
        let known = Snapshot {
            is_complete: true,
            status: inst.status(),
            is_suspended: inst.instance.state.suspended,
            is_closed: inst.closed(scope),
            hold: hold.map_or(Hold::None, |hold| Hold::By {
                token: hold.token,
                is_notified: hold.notified_closed,
                is_same_attempt: false,
                has_expired: false,
            }),
            record,
            is_unborn: Some(inst.not_started(scope).is_some()),
            has_reported: enclosing
                .as_ref()
                .is_some_and(|(_, has_reported)| *has_reported),
            enclosing: enclosing.as_ref().map(|(numbers, _)| numbers),
            items: Some(&items),
            timers: Some(&timers),
            forks: &forks,
            own_forks: &own_forks,
            size: Some(inst.kib),
            ..Snapshot::default()
        };
        let decision = decide(&request, &known)?;
        let consumed = decision.inbox.consumed.iter();
        let consumed = consumed.map(|at| ids[*at].clone()).collect();
        Ok((decision, consumed))
    }
}

fn own_fork(inst: &Inst, scope: &ScopeId, fork: u32, parts: &CommitParts<'_>) -> Option<OwnFork> {
    let entry = inst.forks.get(&(scope.clone(), fork))?;
    let revives = |command: &ForkCommand<'_>| match command {
        ForkCommand::Revive { fork: of, .. } => *of == fork,
        _ => false,
    };
    Some(OwnFork {
        fork,
        numbers: Numbers {
            live: u32::from(inst.has_branches(scope, fork)),
            ..Numbers::of(&entry.fork, entry.notification_count)
        },
        base_kib: entry.kib,
        errors: match parts.forks.iter().any(revives) {
            true => failures(&entry.fork).collect(),
            false => Vec::new(),
        },
    })
}

/// The sizes of a commit's parts.
pub(crate) fn sizes(inst: &Inst, commit: &Commit, parts: &CommitParts<'_>) -> Size {
    let is_kept = !parts.gone || commit.scope.id.is_root();
    let detached = parts.detached.iter();
    Size {
        record: match is_kept {
            true => inst.weight_of(&commit.scope),
            false => 0,
        },
        forks: parts.made_forks().map(of_fork).collect(),
        detached: detached.map(|scope| inst.weight_of(scope)).collect(),
        result: parts.report.map(BranchResult::bytes),
    }
}
