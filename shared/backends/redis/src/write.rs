//! Calls of the function that writes a commit if the guards of its plan still hold (`lua/write.lua`).

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use redis::{Cmd, RedisWrite};
use swirl_commit::{CommitParts, ForkCommand, StatusChange, kib};
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_ports::{Commit, Result};

use crate::Redis;
use crate::connect::damaged;
use crate::following;
use crate::keys::Keys;
use crate::plan::{Plan, plan};
use crate::plan_input::{PlanInput, Unplanned};
use crate::record::{encode, encode_text};
use crate::recorded::{self, first_due};
use crate::reply::unpack;
use crate::script::{COMMITS, Lazy, NUMBERS, PRELUDE, Script};
use crate::small;
use crate::snapshot::Snapshot;
use crate::waits;

static WRITE: Lazy = Lazy::new(write);
/// A commit that ends its instance frees memory.
static LAST_WRITE: Lazy = Lazy::new(|| write().freeing());
static WRITE_OTHERS: Lazy = Lazy::new(write_others);
static LAST_WRITE_OTHERS: Lazy = Lazy::new(|| write_others().freeing());

fn write() -> Script {
    Script::of_commit(include_str!("lua/write.lua"))
}

fn write_others() -> Script {
    let parts = [
        NUMBERS,
        "local write_guarded\ndo\n",
        COMMITS,
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

fn script(parts: &CommitParts<'_>, plan: &Plan<'_>) -> &'static Script {
    // A new instance needs memory, even if it has already ended.
    let frees = parts.has_end() && !plan.creates;
    match (frees, plan.facts.changes_others()) {
        (false, false) => &WRITE,
        (true, false) => &LAST_WRITE,
        (false, true) => &WRITE_OTHERS,
        (true, true) => &LAST_WRITE_OTHERS,
    }
}

pub(crate) struct Planned<'a> {
    pub script: &'static Script,
    pub call: Cmd,
    pub plan: Plan<'a>,
    /// In the order of their numbers.
    pub effects: Vec<Cow<'a, Command>>,
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
        known: &'a Snapshot,
        rev: u64,
        attempt: u64,
    ) -> Result<std::result::Result<Planned<'a>, Unplanned>> {
        let lease = &commit.lease;
        let id = &lease.scope.instance;
        let limit = self.options().record_max;
        let status = StatusChange::of(&parts.status, known.status());
        let record = match !parts.gone || lease.scope.scope.is_root() {
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
        let revivals = parts.forks.iter().filter_map(|command| match command {
            ForkCommand::Revive { input, .. } => Some(*input),
            _ => None,
        });
        let revivals = revivals.map(|input| {
            let what = || format!("an input of a branch of {}", lease.scope);
            Ok((input, encode_text(input, what, limit)?))
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
        let created = || (Status::Running, Status::Running);
        let change = match known.creation {
            Some(_) => Some(change.unwrap_or_else(created)),
            None => change,
        };
        let mut keys = self.keys().of_commit(id, change);
        let effects = self.effects(commit, parts, known)?;
        let due = first_due(&commit.history);
        let is_followed = self.follows();
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
            waits: waits::changes(commit, parts, limit)?,
            freed: waits::freed(commit),
            lines: commit.history.len(),
            elements: elements.len(),
            history_max: self.options().history_max.max(1),
            is_followed,
            due,
            limit: Some(self.options().instance_bytes)
                .filter(|bytes| *bytes > 0)
                .map(kib),
            stamp: self.stamp(),
            namespace: self.keys().namespace(),
            holder: self.process(),
            attempt,
        };
        let mut plan = match plan(input, known) {
            Ok(plan) => plan,
            Err(why) => return Ok(Err(why)),
        };
        let index = |name: &str| self.keys().index(self.keys().shard(id), name);
        if plan.facts.more.is_none() {
            keys.truncate(Keys::OF_ANY_COMMIT);
        }
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
        if self.options().small_functions
            && let Some((script, call)) = small::call(&plan, &keys, &elements)
        {
            return Ok(Ok(Planned {
                script,
                call,
                plan,
                effects,
            }));
        }
        let script = script(parts, &plan);
        let mut call = script.call(&keys);
        let (facts, draft) = (&plan.facts, &plan.draft);
        call.arg(facts.counts(draft, 2 * plan.begins.len()));
        for (field, _) in &draft.compared {
            call.arg(field);
        }
        call.arg(&draft.read);
        for (_, value) in &draft.compared {
            if !value.is_empty() {
                call.arg(value);
            }
        }
        call.arg(elements);
        for (field, value) in &draft.set {
            call.arg(field).arg(value);
        }
        call.arg(&draft.gone);
        for name in &plan.begins {
            call.arg(&plan.millis);
            call.write_arg_fmt(format_args!("{id}/{name}"));
        }
        call.arg(&facts.leaves);
        if let Some(branch) = &facts.branch {
            branch.write(&mut call, id.as_str(), &plan.millis);
        }
        if let Some(more) = &facts.more {
            let more = rmp_serde::to_vec_named(more);
            call.arg(more.map_err(|error| damaged(lease.scope.to_string(), error))?);
        }
        Ok(Ok(Planned {
            script,
            call,
            plan,
            effects,
        }))
    }

    /// The effects of a commit, among them the ends of the instances that end with this one.
    fn effects<'a>(
        &self,
        commit: &'a Commit,
        parts: &CommitParts<'a>,
        known: &Snapshot,
    ) -> Result<Vec<Cow<'a, Command>>> {
        let children = known.reread.as_ref().and_then(|now| now.children.as_ref());
        let children: Vec<String> = match children.filter(|_| parts.has_end()) {
            Some(children) => unpack(children, &commit.lease.scope.to_string())?,
            None => Vec::new(),
        };
        Ok(parts.effects(children.into_iter().map(InstanceId::new)))
    }
}
