//! The fast path for most commits: a plan has guards and writes (`plan.rs`), and one function writes it if the guards
//! still hold (`lua/write.lua`). Otherwise the general function decides (`commit.rs`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use redis::{Cmd, Value};
use swirl_model::event::Command;
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_ports::{Commit, Committed, OutboxEntry, Result};

use crate::Redis;
use crate::branch::fork_of;
use crate::commit::{is_bounded, is_last, kib};
use crate::commit_parts::{CommitParts, is_gone};
use crate::connect::damaged;
use crate::events::event_digest;
use crate::expected::Expected;
use crate::following;
use crate::fork_bases::ForkBase;
use crate::plan::{Plan, plan};
use crate::plan_input::{PlanInput, Unplanned};
use crate::record::{encode, encode_text, end_letter};
use crate::recorded::{self, first_due};
use crate::reply::Reply;
use crate::script::{Lazy, Script};
use crate::snapshot::Snapshot;
use crate::waits;

static WRITE: Lazy = Lazy::new(write);
/// A commit that ends its instance frees memory.
static LAST_WRITE: Lazy = Lazy::new(|| write().freeing());

fn write() -> Script {
    Script::alone(include_str!("lua/write.lua"))
}

pub(crate) fn freeing() -> &'static Script {
    &LAST_WRITE
}

/// The digests of the events that came too late.
fn freed(commit: &Commit) -> Vec<String> {
    commit.refused.iter().map(event_digest).collect()
}

fn script(commit: &Commit) -> &'static Script {
    match is_last(&commit.commands) {
        true => &LAST_WRITE,
        false => &WRITE,
    }
}

/// Of `j <results> <bytes> <number>`: how many results the parent reads, their size, and the input that reports them.
fn completed(answer: &[u8], branch: &str) -> Option<(u32, u64, Expected)> {
    let mut words = std::str::from_utf8(answer).ok()?.split(' ').skip(1);
    let (results, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (_, fork) = fork_of(branch)?.rsplit_once('.')?;
    let expected = Expected {
        fork: fork.parse().ok()?,
        number: words.next()?.to_owned(),
    };
    Some((results, bytes, expected))
}

impl Redis {
    /// Returns `None` if the commit is left to the general function; nothing was written then. `rev`: the revision that
    /// was read, before that of the record.
    pub(crate) async fn commit_plainly(
        &self,
        commit: &Commit,
        rev: u64,
        attempt: u64,
    ) -> Option<Result<Committed>> {
        if !self.options().plain {
            return None;
        }
        let known = Snapshot::take(&commit.lease)?;
        let parts = CommitParts::of(commit)?;
        match self
            .write_planned(commit, &parts, known, rev, attempt)
            .await
        {
            Ok(Some(committed)) => {
                self.inner.plain.fetch_add(1, Ordering::Relaxed);
                Some(Ok(committed))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns `None` if the commit is left to the general function; nothing was written then.
    async fn write_planned(
        &self,
        commit: &Commit,
        parts: &CommitParts<'_>,
        mut known: Snapshot,
        rev: u64,
        attempt: u64,
    ) -> Result<Option<Committed>> {
        let mut is_fresh = false;
        loop {
            let planned = self.planned(commit, parts, &known, rev, attempt)?;
            let answer = match planned {
                Ok((call, plan)) => {
                    let answer = self.run(script(commit), call).await;
                    let answer: Value = self.sure(answer, &commit.lease, attempt).await?;
                    self.written(commit, parts, plan, answer).await?
                }
                Err(Unplanned::Unknown) => None,
                Err(Unplanned::General) => return Ok(None),
            };
            if answer.is_some() || is_fresh {
                return Ok(answer);
            }
            // A field has changed or was never read.
            let Some(found) = self.read_again(&commit.lease, parts).await? else {
                return Ok(None);
            };
            (known, is_fresh) = (found, true);
        }
    }

    /// Reads the function's response. Returns `None` if nothing was written.
    async fn written(
        &self,
        commit: &Commit,
        parts: &CommitParts<'_>,
        plan: Plan<'_>,
        answer: Value,
    ) -> Result<Option<Committed>> {
        let scope = &commit.lease.scope;
        let bad = || damaged("the answer to a commit", "its numbers aren't numbers");
        let (mut outbox, mut mark, mut waits) = (Vec::new(), String::new(), None);
        let answer = match answer {
            answer @ Value::Array(_) => {
                let mut reply = Reply::new(answer)?;
                let answer = reply.value()?;
                let first = reply.text()?;
                if !parts.effects.is_empty() {
                    let first: u64 = first.parse().map_err(|_| bad())?;
                    let effects = parts.effects.iter().zip(first..);
                    outbox.extend(effects.map(|(effect, id)| OutboxEntry {
                        instance: scope.instance.clone(),
                        id,
                        command: (*effect).clone(),
                    }));
                }
                (mark, waits) = (reply.text()?, Some(reply.list()?));
                answer
            }
            answer => answer,
        };
        let (mut token, mut after, mut complete) = (None, plan.after, None);
        match answer {
            Value::Nil => return Ok(None),
            Value::Int(_) => {}
            Value::BulkString(text) if text.starts_with(b"j ") => {
                let Some((results, bytes, expected)) = completed(&text, scope.scope.as_str())
                else {
                    let bad = "it is not a complete fork";
                    return Err(damaged("the answer to a commit", bad));
                };
                let is_large = self.is_large_join(results, bytes);
                if !is_large {
                    self.expectations().add(&scope.instance, expected);
                }
                complete = Some(is_large);
            }
            Value::BulkString(text) => {
                let text = String::from_utf8(text).ok();
                let number = text.as_ref().and_then(|text| text.split_once(' '));
                let Some(number) = number.and_then(|(number, _)| number.parse().ok()) else {
                    return Err(bad());
                };
                token = Some(number);
                after.lease = text.zip(after.lease).map(|(begin, rest)| begin + &rest);
            }
            other => {
                let what = format!("{other:?}");
                return Err(damaged("the answer to a commit", what));
            }
        }
        if let (Some(fork), Some((header, bytes))) = (parts.fork, &after.header) {
            // Its branches are next, and most of them here.
            let name = format!("{}.{}", scope.scope, fork.fork);
            let fork_base = ForkBase {
                stamp: plan.stamp.to_string(),
                header: header.clone(),
                fork: Arc::new(fork.clone()),
                fork_bytes: plan.fork_bytes,
                bytes: bytes + plan.fork_bytes,
            };
            self.fork_bases().share(&scope.instance, &name, fork_base);
        }
        let of = |name: &str| ScopeRef {
            instance: scope.instance.clone(),
            scope: ScopeId::new(name),
        };
        let names = plan.wakes.iter().map(String::as_str);
        let names = names.chain((complete == Some(false)).then_some("r"));
        let own = plan.is_woken.then(|| scope.clone());
        let mut wake = names.map(of).chain(own).collect();
        let joins = (complete == Some(true)).then(|| of("r"));
        let freed = freed(commit);
        if let Some(waits) = waits {
            self.update_wait_index(&scope.instance, &freed, mark, waits, &mut wake)
                .await;
        }
        // The holder of the scope sees new inputs when it releases the scope.
        if !plan.released {
            wake.retain(|found| found != scope);
        }
        if !plan.released {
            after.put(&commit.lease);
        }
        Ok(Some(Committed::Done {
            outbox,
            wake,
            joins: joins.into_iter().collect(),
            released: plan.released,
            token,
        }))
    }

    /// The number of commits on the fast path.
    pub fn plain_commits(&self) -> u64 {
        self.inner.plain.load(Ordering::Relaxed)
    }

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

    fn planned<'a>(
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
        let record = match is_kept || parts.end.is_some() {
            true => self.encode_scope(&commit.scope, lease)?,
            false => Vec::new(),
        };
        let fork = parts.fork.map(|fork| {
            let what = || format!("a fork of {}", lease.scope);
            encode(fork, what, limit)
        });
        let fork = fork.transpose()?;
        let (mut result, mut is_done) = (None, false);
        if let Some(Command::Report(report)) = parts.report {
            let what = || format!("the result of {}", lease.scope);
            result = Some(encode(report, what, limit)?);
            is_done = report.is_done();
        }
        let (mut output, mut error) = (None, None);
        let mut keys = self.keys().of_plain(id, None);
        if let Some(Command::End {
            status,
            output: data,
            error: fault,
        }) = parts.end
        {
            let data = data.as_ref();
            let data = data.map(|data| encode(data, || format!("the output of {id}"), limit));
            output = data.transpose()?;
            let fault = fault.as_ref();
            let fault = fault.map(|fault| encode(fault, || format!("the error of {id}"), limit));
            error = fault.transpose()?;
            keys = self.keys().of_plain(id, Some(end_letter(*status)));
        }
        let due = first_due(&commit.history);
        let is_followed = self.follows();
        let adds = match is_bounded(commit, self.options().instance_bytes) {
            true => {
                let kib_of =
                    |part: &Option<Vec<u8>>| part.as_ref().map_or(0, |part| kib(part.len()));
                let of_record = if is_kept { kib(record.len()) } else { 0 };
                let of_result = if is_done { kib_of(&result) } else { 0 };
                of_record + kib_of(&fork) + of_result
            }
            false => 0,
        };
        let elements = crate::history::elements(&commit.history, id, limit)?;
        let effects = parts.effects.iter().map(|effect| {
            let what = || format!("an effect of {}", lease.scope);
            encode_text(effect, what, limit)
        });
        let effects = effects.collect::<Result<_>>()?;
        let input = PlanInput {
            commit,
            parts,
            rev,
            record,
            fork,
            result,
            output,
            error,
            effects,
            waits: waits::changes(commit, limit)?,
            freed: freed(commit),
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
        let index = |name: &str| self.keys().index(self.keys().shard(id), name);
        for (name, key) in plan.facts.indexes() {
            keys.push(index(name));
            *key = keys.len();
        }
        if let Some(key) = plan.facts.consumed() {
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
        let mut call = script(commit).call(&keys);
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
        for name in &plan.wakes {
            call.arg(format!("{id}/{name}"));
        }
        Ok(Ok((call, plan)))
    }
}
