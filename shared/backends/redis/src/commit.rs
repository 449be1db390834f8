//! Commits. A plan has guards and writes (`plan.rs`), and one function writes it if the guards still hold (`write.rs`).
//! Otherwise the scope is read again (`reread.rs`), and there is another plan, or the answer that the commit takes no
//! effect (`swirl_commit`).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use swirl_commit::{Answer, BranchPosition, CommitParts};
use swirl_model::event::Command;
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::Room;
use swirl_ports::{Commit, Committed, Error, Lease, OutboxEntry, Result};
use tokio::time::sleep;

use crate::Redis;
use crate::branch::fork_of;
use crate::connect::damaged;
use crate::expected::Expected;
use crate::fork_bases::ForkBase;
use crate::known::holder;
use crate::plan::Plan;
use crate::plan_input::Unplanned;
use crate::reply::Reply;
use crate::snapshot::Snapshot;
use crate::unread::Unread;
use crate::waits::{self, freed};
use crate::write::Planned;

/// How often a commit is planned, if others keep changing what it depends on.
const PLANS_MAX: u32 = 8;

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
        Some(Completed {
            results: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
            expected: Expected {
                fork: BranchPosition::of(branch)?.number,
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
    pub(crate) async fn commit_scope(&self, mut commit: Commit) -> Result<Committed> {
        let attempt = self.attempt();
        // The revision that was read, before that of the record.
        let rev = commit.scope.rev;
        commit.scope.rev += 1;
        let commit = &commit;
        let parts = CommitParts::of(commit);
        let mut known = self.known().take(&commit.lease.read);
        for round in 0..PLANS_MAX {
            if let Some(known) = &known {
                let is_fresh = known.reread.is_some();
                match self.planned(commit, &parts, known, rev, attempt)? {
                    Ok(planned) => {
                        let Planned {
                            script,
                            call,
                            plan,
                            effects,
                        } = planned;
                        let answer = self.run(script, call).await;
                        let answer: Value = self.sure(answer, &commit.lease, attempt).await?;
                        let written = self.written(commit, &parts, plan, effects, answer);
                        if let Some(committed) = written.await? {
                            return Ok(committed);
                        }
                    }
                    Err(Unplanned::Answer(answer)) if is_fresh => {
                        if let (0, Some(fork)) = (rev, fork_of(commit.lease.scope.scope.as_str())) {
                            let instance = &commit.lease.scope.instance;
                            self.fork_bases().end_unread(instance, fork);
                        }
                        return self.answered(&commit.lease, known, answer).await;
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
            self.inner.second_reads.fetch_add(1, Ordering::Relaxed);
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

    async fn answered(&self, lease: &Lease, known: &Snapshot, answer: Answer) -> Result<Committed> {
        Ok(match answer {
            Answer::Refused { releases } => {
                let held = known.lease.as_deref().filter(|_| releases);
                if let Some(held) = held.and_then(holder) {
                    self.refresh_scope(&lease.scope, Some(held)).await?;
                }
                Committed::Refused
            }
            Answer::InboxChanged => Committed::InboxChanged,
            Answer::Full(kib) => Committed::Full(Room {
                bytes: kib << 10,
                limit: self.options().instance_bytes,
            }),
        })
    }

    /// Returns the result of a commit. If there is no response, the commit may have been carried out with a lease that
    /// no process knows about, so the lease is released.
    pub(crate) async fn sure(
        &self,
        answer: Result<Value>,
        lease: &Lease,
        attempt: u64,
    ) -> Result<Value> {
        if answer.is_err() && !lease.is_taken() {
            let attempt = attempt.to_string();
            let held = Some((self.process(), attempt.as_str()));
            let given_back = self.refresh_scope(&lease.scope, held).await;
            tracing::debug!(scope = %lease.scope, ok = given_back.is_ok(), "the outcome of a commit is unknown");
        }
        answer
    }

    /// Reads the function's response. Returns `None` if nothing was written.
    pub(crate) async fn written(
        &self,
        commit: &Commit,
        parts: &CommitParts<'_>,
        plan: Plan<'_>,
        effects: Vec<Cow<'_, Command>>,
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
                if !effects.is_empty() {
                    let first: u64 = first.parse().map_err(|_| bad())?;
                    let effects = effects.into_iter().zip(first..);
                    outbox.extend(effects.map(|(effect, id)| OutboxEntry {
                        instance: scope.instance.clone(),
                        id,
                        command: effect.into_owned(),
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
                complete = Some((is_large, ScopeId::new(parent)));
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
                unread: Unread::of(fork),
                fork: Arc::new(fork.clone()),
                fork_bytes: plan.fork_bytes,
                bytes: bytes + plan.fork_bytes,
            };
            self.fork_bases().share(&scope.instance, &name, fork_base);
        }
        for fork in plan.closed {
            self.fork_bases().end_unread(&scope.instance, &fork);
        }
        let of = |name: ScopeId| ScopeRef {
            instance: scope.instance.clone(),
            scope: name,
        };
        let (joins, parent): (Vec<_>, Vec<_>) =
            complete.into_iter().partition(|(is_large, _)| *is_large);
        let named = plan.woken.into_iter().chain(plan.begins);
        let named = named.chain(parent.into_iter().map(|(_, parent)| parent));
        let own = plan.is_woken.then(|| scope.clone());
        let mut wake: Vec<ScopeRef> = others.into_iter().chain(named.map(of)).chain(own).collect();
        let joins: Vec<ScopeRef> = joins.into_iter().map(|(_, parent)| of(parent)).collect();
        let freed = freed(commit);
        self.take_kept(scope, waits::taken(commit)).await;
        if let Some(waits) = waits {
            self.update_wait_index(&scope.instance, &freed, mark, waits, &mut wake)
                .await;
        }
        // The holder of the scope sees new inputs when it releases the scope.
        if !plan.released {
            wake.retain(|found| found != scope);
        }
        if !plan.released {
            self.known().put(&commit.lease.read, after);
        }
        Ok(Some(Committed::Done {
            outbox,
            wake,
            joins,
            released: plan.released,
            token,
        }))
    }

    /// Updates the index of events after a commit. `mark` is empty if the commit changed no waits; otherwise `waits`
    /// has them.
    pub(crate) async fn update_wait_index(
        &self,
        instance: &InstanceId,
        freed: &[String],
        mark: String,
        waits: Reply,
        wake: &mut Vec<ScopeRef>,
    ) {
        let updated = async {
            for digest in freed {
                self.release_event(instance, digest).await?;
            }
            if !freed.is_empty() {
                self.reindex(instance, wake).await
            } else if !mark.is_empty() {
                self.index_waits(instance, mark, waits, wake).await
            } else {
                Ok(())
            }
        };
        if let Err(error) = updated.await {
            // The commit is valid; the reconciler handles the mark that the script left.
            tracing::warn!(%instance, %error, "the index of events could not be updated yet");
        }
    }

    /// How often commits had to read their scope again.
    pub fn second_reads(&self) -> u64 {
        self.inner.second_reads.load(Ordering::Relaxed)
    }
}
