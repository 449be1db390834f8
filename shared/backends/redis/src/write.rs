//! Commits: a plan has guards and writes (`plan.rs`), and one function writes it if the guards
//! still hold (`lua/write.lua`). Otherwise the scope is read again (`reread.rs`).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{Cmd, Value};
use swirl_model::event::Command;
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{EndStatus, Room};
use swirl_model::scope::BranchResult;
use swirl_ports::{Commit, Committed, Error, InboxItem, Lease, OutboxEntry, Result};
use tokio::time::sleep;

use crate::Redis;
use crate::branch::fork_of;
use crate::commit::{is_bounded, is_last, kib};
use crate::commit_parts::{CommitParts, is_gone};
use crate::connect::damaged;
use crate::ending::StatusChange;
use crate::events::event_digest;
use crate::expected::Expected;
use crate::following;
use crate::fork_bases::ForkBase;
use crate::plan::{Plan, plan};
use crate::plan_input::{Answer, PlanInput, Revival, Unplanned};
use crate::record::{encode, encode_text, kind};
use crate::recorded::{self, first_due};
use crate::reply::{Reply, unpack};
use crate::script::{Lazy, PRELUDE, Script};
use crate::snapshot::Snapshot;
use crate::waits;

static WRITE: Lazy = Lazy::new(write);
/// A commit that ends its instance frees memory.
static LAST_WRITE: Lazy = Lazy::new(|| write().freeing());
static WRITE_OTHERS: Lazy = Lazy::new(write_others);
static LAST_WRITE_OTHERS: Lazy = Lazy::new(|| write_others().freeing());

/// How often a commit is planned, if others keep changing what it depends on.
const PLANS_MAX: u32 = 8;

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

/// The digests of the events that came too late.
fn freed(commit: &Commit) -> Vec<String> {
    commit.refused.iter().map(event_digest).collect()
}

fn script(commit: &Commit, plan: &Plan<'_>) -> &'static Script {
    match (is_last(&commit.commands), plan.facts.changes_others()) {
        (false, false) => &WRITE,
        (true, false) => &LAST_WRITE,
        (false, true) => &WRITE_OTHERS,
        (true, true) => &LAST_WRITE_OTHERS,
    }
}

/// A fork that a commit has completed.
struct Completed {
    /// How many results the parent reads, and their size.
    results: u32,
    bytes: u64,
    /// The input that reports them.
    expected: Expected,
    /// Token and end of the lease that the commit took.
    lease: Option<String>,
}

impl Completed {
    /// Reads `j <results> <bytes> <number> <lease>`.
    fn of(answer: &[u8], branch: &str) -> Option<Completed> {
        let mut words = std::str::from_utf8(answer).ok()?.splitn(5, ' ').skip(1);
        let (_, fork) = fork_of(branch)?.rsplit_once('.')?;
        Some(Completed {
            results: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
            expected: Expected {
                fork: fork.parse().ok()?,
                number: words.next()?.to_owned(),
            },
            lease: words.next().map(str::to_owned),
        })
    }
}

/// Token and end of a lease.
fn token_of(lease: &str) -> Option<u64> {
    let (token, _) = lease.split_once(' ')?;
    token.parse().ok()
}

impl Redis {
    /// `rev`: the revision that was read, before that of the record.
    pub(crate) async fn commit_plainly(
        &self,
        commit: &Commit,
        rev: u64,
        attempt: u64,
    ) -> Result<Committed> {
        let parts = CommitParts::of(commit);
        let mut known = Snapshot::take(&commit.lease);
        for round in 0..PLANS_MAX {
            if let Some(known) = &known {
                let is_fresh = known.reread.is_some();
                match self.planned(commit, &parts, known, rev, attempt)? {
                    Ok((call, plan)) => {
                        let answer = self.run(script(commit, &plan), call).await;
                        let answer: Value = self.sure(answer, &commit.lease, attempt).await?;
                        if let Some(committed) = self.written(commit, &parts, plan, answer).await? {
                            self.inner.plain.fetch_add(1, Ordering::Relaxed);
                            return Ok(committed);
                        }
                    }
                    Err(Unplanned::Answer(answer)) if is_fresh => {
                        return self.answered(&commit.lease, answer).await;
                    }
                    Err(Unplanned::Unknown) if is_fresh => {
                        let bad = "a part that its commit needs cannot be read";
                        return Err(damaged(commit.lease.scope.to_string(), bad));
                    }
                    Err(Unplanned::Damaged(bad)) => {
                        return Err(damaged(commit.lease.scope.to_string(), bad));
                    }
                    Err(Unplanned::Answer(_) | Unplanned::Unknown) => {}
                }
            }
            // A field has changed, or was never read. Others that change it are done soon.
            if round > 1 {
                sleep(Duration::from_millis(1 << round)).await;
            }
            known = self.read_again(&commit.lease, &parts).await?;
            if known.is_none() {
                return Ok(Committed::Refused);
            }
        }
        Err(Error::Unavailable(format!(
            "{} changed too often while a commit was written",
            commit.lease.scope
        )))
    }

    async fn answered(&self, lease: &Lease, answer: Answer) -> Result<Committed> {
        Ok(match answer {
            Answer::Refused(None) => Committed::Refused,
            Answer::Refused(Some((holder, attempt))) => {
                let held = Some((holder.as_str(), attempt.as_str()));
                self.refresh_scope(&lease.scope, held).await?;
                Committed::Refused
            }
            Answer::InboxChanged => Committed::InboxChanged,
            Answer::Full(kib) => Committed::Full(Room {
                bytes: kib << 10,
                limit: self.options().instance_bytes,
            }),
        })
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
        let mut others = Vec::new();
        let answer = match answer {
            answer @ Value::Array(_) => {
                let mut reply = Reply::new(answer)?;
                let answer = reply.value()?;
                let first = reply.text()?;
                if !plan.effects.is_empty() {
                    let first: u64 = first.parse().map_err(|_| bad())?;
                    let effects = plan.effects.iter().zip(first..);
                    outbox.extend(effects.map(|(effect, id)| OutboxEntry {
                        instance: scope.instance.clone(),
                        id,
                        command: effect.clone().into_owned(),
                    }));
                }
                (mark, waits) = (reply.text()?, Some(reply.list()?));
                if !reply.is_empty() {
                    others = self.read_scopes(&scope.instance, reply.value()?)?;
                    let ready = self.read_scopes(&scope.instance, reply.value()?)?;
                    if plan.wakes_ready {
                        others.extend(ready);
                    }
                }
                answer
            }
            answer => answer,
        };
        let (mut taken, mut after, mut complete) = (None, plan.after, None);
        match answer {
            Value::Nil => return Ok(None),
            Value::Int(_) => {}
            Value::BulkString(text) if text.starts_with(b"j ") => {
                let Some(found) = Completed::of(&text, scope.scope.as_str()) else {
                    let bad = "it is not a complete fork";
                    return Err(damaged("the answer to a commit", bad));
                };
                let is_large = self.is_large_join(found.results, found.bytes);
                let parent = plan.parent.unwrap_or_default();
                if !is_large && parent == "r" {
                    self.expectations().add(&scope.instance, found.expected);
                }
                complete = Some((is_large, parent.to_owned()));
                taken = found.lease;
            }
            Value::BulkString(text) => {
                taken = Some(String::from_utf8(text).map_err(|_| bad())?);
            }
            other => {
                let what = format!("{other:?}");
                return Err(damaged("the answer to a commit", what));
            }
        }
        let mut token = None;
        if let Some(taken) = taken {
            token = Some(token_of(&taken).ok_or_else(bad)?);
            after.lease = after.lease.map(|rest| taken + &rest);
        }
        let made = parts.made_forks().last();
        if let (Some(fork), Some((header, bytes))) = (made, &after.header) {
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
        let names = plan.woken.iter().chain(&plan.begins);
        let (joins, parent): (Vec<_>, Vec<_>) =
            complete.into_iter().partition(|(is_large, _)| *is_large);
        let named = names.map(String::as_str);
        let named = named.chain(parent.iter().map(|(_, parent)| parent.as_str()));
        let own = plan.is_woken.then(|| scope.clone());
        let mut wake: Vec<ScopeRef> = others.into_iter().chain(named.map(of)).chain(own).collect();
        let joins: Vec<ScopeRef> = joins.iter().map(|(_, parent)| of(parent)).collect();
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
            joins,
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
        let mut keys = self.keys().of_plain(id, change);
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
