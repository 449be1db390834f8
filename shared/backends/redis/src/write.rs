//! Calls of the function that writes a commit if the guards of its plan still hold (`lua/write.lua`).

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use redis::Cmd;
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::BranchResult;
use swirl_ports::{Commit, InboxItem, Result};

use crate::Redis;
use crate::commit_parts::{CommitParts, is_gone, is_last};
use crate::connect::damaged;
use crate::ending::StatusChange;
use crate::following;
use crate::plan::{Plan, plan};
use crate::plan_input::{PlanInput, Revival, Unplanned};
use crate::record::{encode, encode_text, kind};
use crate::recorded::{self, first_due};
use crate::reply::unpack;
use crate::script::{Lazy, PRELUDE, Script};
use crate::size::{is_bounded, kib};
use crate::snapshot::Snapshot;
use crate::waits;

static WRITE: Lazy = Lazy::new(write);
/// A commit that ends its instance frees memory.
static LAST_WRITE: Lazy = Lazy::new(|| write().freeing());
static WRITE_OTHERS: Lazy = Lazy::new(write_others);
static LAST_WRITE_OTHERS: Lazy = Lazy::new(|| write_others().freeing());

fn write() -> Script {
    Script::alone(include_str!("lua/write.lua"))
}

fn write_others() -> Script {
    let parts = [
        "local write_guarded\ndo\n",
        include_str!("lua/write.lua"),
        "\nwrite_guarded = main\nend\n",
        PRELUDE,
        include_str!("lua/scopes.lua"),
        include_str!("lua/write_others.lua"),
    ];
    Script::alone(&parts.concat())
}

pub(crate) fn freeing() -> [&'static Script; 2] {
    [&LAST_WRITE, &LAST_WRITE_OTHERS]
}

pub(crate) fn script(commit: &Commit, plan: &Plan<'_>) -> &'static Script {
    match (is_last(&commit.commands), plan.facts.changes_others()) {
        (false, false) => &WRITE,
        (true, false) => &LAST_WRITE,
        (false, true) => &WRITE_OTHERS,
        (true, true) => &LAST_WRITE_OTHERS,
    }
}

impl Redis {
    /// A unique number for a write: greater than all earlier ones of this process, and like those of other processes a
    /// time.
    fn stamp(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(1, |now| now.as_micros() as u64);
        let last = self
            .inner
            .stamp
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(now.max(last + 1))
            });
        last.map_or(now, |last| now.max(last + 1))
    }

    pub(crate) fn planned<'a>(
        &'a self,
        commit: &'a Commit,
        parts: &'a CommitParts<'a>,
        known: &Snapshot,
        rev: u64,
        attempt: u64,
    ) -> Result<std::result::Result<(Cmd, Plan<'a>), Unplanned>> {
        let lease = &commit.lease;
        let id = &lease.scope.instance;
        let limit = self.options().record_max;
        let is_kept = !is_gone(&commit.scope, &commit.commands);
        let status = StatusChange::of(&parts.status, known.status());
        let record = match is_kept || lease.scope.scope.is_root() {
            true => self.encode_scope(&commit.scope, lease)?,
            false => Vec::new(),
        };
        let forks = parts
            .made_forks()
            .map(|fork| encode(fork, || format!("a fork of {}", lease.scope), limit));
        let forks = forks.collect::<Result<Vec<_>>>()?;
        let detached = parts.detached.iter().map(|scope| {
            let what = || format!("a detached scope of {}", lease.scope);
            encode(scope, what, limit)
        });
        let detached = detached.collect::<Result<Vec<_>>>()?;
        let revivals = parts.revived().map(|(.., input)| {
            let what = || format!("an input of a branch of {}", lease.scope);
            Ok(Revival {
                id: InboxItem::new(input.clone()).id,
                kind: kind(input),
                input: encode_text(input, what, limit)?,
            })
        });
        let revivals = revivals.collect::<Result<_>>()?;
        let result = parts
            .report
            .map(|report| encode(report, || format!("the result of {}", lease.scope), limit));
        let result = result.transpose()?;
        let (mut output, mut error) = (None, None);
        if let Some(Command::End {
            output: data,
            error: fault,
            ..
        }) = status.as_ref().and_then(|change| change.end)
        {
            let data = data.as_ref();
            let data = data.map(|data| encode(data, || format!("the output of {id}"), limit));
            output = data.transpose()?;
            let fault = fault.as_ref();
            let fault = fault.map(|fault| encode(fault, || format!("the error of {id}"), limit));
            error = fault.transpose()?;
        }
        let change = status.map(|change| (known.status(), change.to));
        let mut keys = self.keys().of_commit(id, change);
        let effects = self.effects(commit, parts, known)?;
        let due = first_due(&commit.history);
        let is_followed = self.follows();
        let adds = match is_bounded(commit, self.options().instance_bytes) {
            true => {
                let of_all =
                    |all: &[Vec<u8>]| -> usize { all.iter().map(|one| kib(one.len())).sum() };
                let of_record = if is_kept { kib(record.len()) } else { 0 };
                let is_done = parts.report.is_some_and(BranchResult::is_done);
                let result = result.as_ref().filter(|_| is_done);
                let of_result = result.map_or(0, |result| kib(result.len()));
                of_record + of_all(&forks) + of_all(&detached) + of_result
            }
            false => 0,
        };
        let elements = crate::history::elements(&commit.history, id, limit)?;
        let texts = effects.iter().map(|effect| {
            let what = || format!("an effect of {}", lease.scope);
            encode_text(effect, what, limit)
        });
        let texts = texts.collect::<Result<_>>()?;
        let input = PlanInput {
            commit,
            parts,
            rev,
            record,
            forks,
            detached,
            revivals,
            result,
            output,
            error,
            effects: texts,
            waits: waits::changes(commit, limit)?,
            freed: waits::freed(commit),
            lines: commit.history.len(),
            elements: elements.len(),
            history_max: self.options().history_max.max(1),
            is_followed,
            due,
            most: kib(self.options().instance_bytes),
            adds,
            stamp: self.stamp(),
            namespace: self.keys().namespace(),
            holder: self.process(),
            attempt,
        };
        let mut plan = match plan(input, known) {
            Ok(plan) => plan,
            Err(why) => return Ok(Err(why)),
        };
        plan.effects = effects;
        let index = |name: &str| self.keys().index(self.keys().shard(id), name);
        for (name, key) in plan.facts.indexes() {
            keys.push(index(name));
            *key = keys.len();
        }
        for key in plan.facts.consumed() {
            keys.push(format!("{}:got:{id}", self.keys().tag(id)));
            *key = keys.len();
        }
        if due.is_some() {
            keys.push(index(recorded::INDEX));
        }
        if is_followed {
            keys.push(index(following::INDEX));
        }
        let facts = rmp_serde::to_vec(&plan.facts);
        let facts = facts.map_err(|error| damaged(lease.scope.to_string(), error))?;
        let mut call = script(commit, &plan).call(&keys);
        call.arg(facts);
        for (field, _) in &plan.compared {
            call.arg(field);
        }
        call.arg(&plan.read);
        for (_, value) in &plan.compared {
            call.arg(value);
        }
        call.arg(elements);
        for (field, value) in &plan.set {
            call.arg(field).arg(value);
        }
        call.arg(&plan.gone);
        for name in &plan.begins {
            call.arg(format!("{id}/{name}"));
        }
        Ok(Ok((call, plan)))
    }

    /// The effects of a commit, among them the ends of the instances that end with this one.
    fn effects<'a>(
        &self,
        commit: &'a Commit,
        parts: &CommitParts<'a>,
        known: &Snapshot,
    ) -> Result<Vec<Cow<'a, Command>>> {
        let own = parts.effects.iter().map(|effect| Cow::Borrowed(*effect));
        let mut effects: Vec<Cow<'a, Command>> = own.collect();
        let ends = parts
            .status
            .iter()
            .any(|command| matches!(command, Command::End { .. }));
        let children = known.reread.as_ref().and_then(|now| now.children.as_ref());
        if let (true, Some(children)) = (ends, children) {
            let children: Vec<String> = unpack(children, &commit.lease.scope.to_string())?;
            let ends = children.into_iter().map(|child| {
                Cow::Owned(Command::EndInstance {
                    id: InstanceId::new(child),
                    status: EndStatus::Terminated,
                })
            });
            let at = parts.effects_before_end;
            effects.splice(at..at, ends);
        }
        Ok(effects)
    }
}
