//! Commits: on the fast path (`write.rs`) if it can write them, otherwise by the general function (`lua/commit.lua`),
//! whose arguments are put together here.

use redis::{Cmd, Value};
use swirl_model::attribute::Attributes;
use swirl_model::data::json_bytes;
use swirl_model::event::{Command, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, Room};
use swirl_ports::{Commit, Committed, InboxItem, Lease, OutboxEntry, Result};

use crate::Redis;
use crate::attributes;
use crate::commit_parts::is_gone;
use crate::events::event_digest;
use crate::following;
use crate::keys::Span;
use crate::record::{encode, end_letter, flags, kind, timer_kind};
use crate::recorded::{self, first_due};
use crate::reply::Reply;
use crate::script::{Lazy, Script};
use crate::snapshot::Snapshot;

static COMMIT: Lazy = Lazy::new(commit);
/// A commit that ends an instance frees memory.
static LAST_COMMIT: Lazy = Lazy::new(|| commit().freeing());

fn commit() -> Script {
    Script::of_instance(&[
        include_str!("lua/leases.lua"),
        include_str!("lua/scopes.lua"),
        include_str!("lua/listing.lua"),
        include_str!("lua/commands.lua"),
        include_str!("lua/commit.lua"),
    ])
}

pub(crate) fn freeing() -> &'static Script {
    &LAST_COMMIT
}

/// Whether the commit ends the instance.
pub(crate) fn is_last(commands: &[Command]) -> bool {
    commands
        .iter()
        .any(|command| matches!(command, Command::End { .. }))
}

/// Whether the instance's size limit applies. A commit that closes a fork frees more than it uses.
pub(crate) fn is_bounded(commit: &Commit, instance_bytes: usize) -> bool {
    let closes = |command: &Command| matches!(command, Command::CloseFork(_) | Command::End { .. });
    instance_bytes > 0 && !commit.fits && !commit.commands.iter().any(closes)
}

/// The size in KiB. Anything smaller counts as zero.
pub(crate) fn kib(bytes: usize) -> usize {
    bytes >> 10
}

/// The size that these commands add to an instance, in KiB.
fn added_by(commands: &[Command]) -> usize {
    let added = commands.iter().map(|command| match command {
        Command::Fork(fork) => kib(json_bytes(fork)),
        Command::Report(result) if result.is_done() => kib(result.bytes()),
        Command::Detach(scope) => kib(json_bytes(scope)),
        _ => 0,
    });
    added.sum()
}

/// The arguments of the general function, while they are put together.
pub(crate) struct Arguments<'a> {
    call: Cmd,
    scope: &'a ScopeRef,
    /// The instance's search attributes.
    attributes: &'a Attributes,
    limit: usize,
    /// The effects to which the script assigns numbers.
    effects: Vec<Command>,
}

impl Redis {
    pub(crate) async fn commit_scope(&self, mut commit: Commit) -> Result<Committed> {
        let attempt = self.attempt();
        let rev = commit.scope.rev;
        commit.scope.rev += 1;
        let is_bounded = is_bounded(&commit, self.options().instance_bytes);
        if self.options().plain {
            return self.commit_plainly(&commit, rev, attempt).await;
        }
        let Commit {
            lease,
            scope,
            consumed,
            refused,
            history,
            commands,
            at,
            require_unchanged_inbox,
            release,
            lease_ms,
            ..
        } = commit;
        let id = &lease.scope.instance;
        let gone = is_gone(&scope, &commands);
        let (keeps, goes) = (!release && !gone, scope.goes_on());
        let mut keys = self.keys().of(id, Span::All);
        let lists = |command: &Command| matches!(command, Command::End { .. } | Command::Reopen);
        if commands.iter().any(lists) {
            keys.extend(self.keys().listings(self.keys().shard(id)));
        }
        let unread = self.follows().then(|| {
            keys.push(self.keys().index(self.keys().shard(id), following::INDEX));
            keys.len().to_string()
        });
        let due = first_due(&history).map(|due| {
            keys.push(self.keys().index(self.keys().shard(id), recorded::INDEX));
            (keys.len().to_string(), due.to_string())
        });
        if commands.contains(&Command::Index) {
            keys.push(self.keys().index(self.keys().shard(id), attributes::INDEX));
        }
        let limit = self.options().record_max;
        let script = match is_last(&commands) {
            true => &LAST_COMMIT,
            false => &COMMIT,
        };
        let mut call = self.call_scope(script, &keys, &lease.scope);
        call.arg(lease.token).arg(rev);
        let record = self.encode_scope(&scope, &lease)?;
        let adds = match is_bounded {
            true => kib(if gone { 0 } else { record.len() }) + added_by(&commands),
            false => 0,
        };
        let record_bytes = record.len();
        call.arg(record);
        call.arg(flags(&scope)).arg(u8::from(gone)).arg(at.0);
        call.arg(self.options().history_max.max(1));
        call.arg(match (require_unchanged_inbox, release) {
            (false, false) => "",
            (true, false) => "q",
            (false, true) => "r",
            (true, true) => "qr",
        });
        // For a lease that this commit takes.
        call.arg(lease_ms).arg(self.process()).arg(attempt);
        call.arg(match lease.read_stamp {
            // For a branch without a record, the stamp of its fork.
            0 => lease.fork_stamp,
            seen => seen,
        });
        call.arg(adds).arg(kib(self.options().instance_bytes));
        call.arg(unread.unwrap_or_default());
        let (index, due) = due.unwrap_or_default();
        call.arg(index).arg(due);
        call.arg(consumed.len()).arg(&consumed);
        let freed: Vec<String> = refused.iter().map(event_digest).collect();
        call.arg(freed.len()).arg(&freed);
        let again = scope.timers.iter().filter(|timer| {
            let id = Input::Timer { seq: timer.seq }.id();
            consumed.contains(&id)
        });
        let again: Vec<_> = again.collect();
        call.arg(again.len());
        for timer in again {
            call.arg(timer.seq).arg(timer.due.0);
            call.arg(timer_kind(timer.kind));
        }
        crate::history::add(&mut call, &history, id, limit)?;
        let mut arguments = Arguments::new(call, &lease.scope, &scope.attributes, limit);
        for command in commands {
            arguments.add(command)?;
        }
        let Arguments { call, effects, .. } = arguments;
        let answer = self.run(script, call).await;
        let answer = self.sure(answer, &lease, attempt).await?;
        let committed = self
            .committed(Reply::new(answer)?, &lease.scope, effects, &freed)
            .await?;
        if keeps && matches!(committed, Committed::Done { .. }) {
            Snapshot::held(Some(record_bytes), goes).put(&lease);
        }
        Ok(committed)
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

    async fn committed(
        &self,
        mut reply: Reply,
        scope: &ScopeRef,
        effects: Vec<Command>,
        freed: &[String],
    ) -> Result<Committed> {
        match reply.text()?.as_str() {
            "refused" => return Ok(Committed::Refused),
            "news" => return Ok(Committed::InboxChanged),
            "full" => {
                let kib: usize = reply.number()?;
                let limit = self.options().instance_bytes;
                let bytes = kib << 10;
                return Ok(Committed::Full(Room { bytes, limit }));
            }
            _ => {}
        }
        let instance = &scope.instance;
        let mut effects = effects.into_iter();
        let mut outbox = Vec::new();
        let mut numbers = reply.list()?;
        while !numbers.is_empty() {
            let id = numbers.number()?;
            let child = numbers.text()?;
            let command = match effects.next() {
                Some(effect) if child.is_empty() => Some(effect),
                _ if child.is_empty() => None,
                // The ends of children come last, after the effects that the caller knows.
                _ => Some(Command::EndInstance {
                    id: InstanceId::new(child),
                    status: EndStatus::Terminated,
                }),
            };
            outbox.extend(command.map(|command| OutboxEntry {
                instance: instance.clone(),
                id,
                command,
            }));
        }
        let mut wake = self.read_scopes(instance, reply.value()?)?;
        let mark = reply.text()?;
        let released = reply.text()? == "1";
        let token: u64 = reply.number()?;
        let waits = reply.list()?;
        let joins = self.large_joins(instance, reply.list()?)?;
        self.update_wait_index(instance, freed, mark, waits, &mut wake)
            .await;
        // The holder of the scope sees new inputs when it releases the scope.
        if !released {
            wake.retain(|found| found != scope);
        }
        // The scope sees its own joins as its next input.
        let (joins, wake) = wake
            .into_iter()
            .partition(|woken| woken != scope && joins.contains(woken));
        Ok(Committed::Done {
            outbox,
            wake,
            joins,
            released,
            token: (token != Lease::SNAPSHOT).then_some(token),
        })
    }
}

impl Redis {
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
}

impl<'a> Arguments<'a> {
    pub fn new(
        call: Cmd,
        scope: &'a ScopeRef,
        attributes: &'a Attributes,
        limit: usize,
    ) -> Arguments<'a> {
        Arguments {
            call,
            scope,
            attributes,
            limit,
            effects: Vec::new(),
        }
    }

    pub fn into_call(self) -> Cmd {
        self.call
    }

    fn record(&mut self, value: &impl serde::Serialize, what: &str) -> Result<()> {
        let scope = self.scope;
        let record = encode(value, || format!("{what} of {scope}"), self.limit)?;
        self.call.arg(record);
        Ok(())
    }

    fn optional(&mut self, value: Option<&impl serde::Serialize>, what: &str) -> Result<()> {
        match value {
            Some(value) => self.record(value, what),
            None => {
                self.call.arg("");
                Ok(())
            }
        }
    }

    pub fn add(&mut self, command: Command) -> Result<()> {
        let call = &mut self.call;
        match command {
            Command::Arm(timer) => {
                call.arg("arm").arg(timer.seq).arg(timer.due.0);
                call.arg(timer_kind(timer.kind));
            }
            Command::Disarm(seq) => {
                call.arg("disarm").arg(seq);
            }
            Command::Subscribe(subscription) => {
                call.arg("subscribe").arg(subscription.wait);
                self.record(&subscription.slots, "a wait")?;
            }
            Command::Unsubscribe(wait) => {
                call.arg("unsubscribe").arg(wait);
            }
            Command::Correlate(values) => {
                for (name, value) in values {
                    call.arg("correlate").arg(name.to_ascii_lowercase());
                    call.arg(value);
                }
            }
            Command::Fork(fork) => {
                call.arg("fork").arg(fork.parent.as_str()).arg(fork.fork);
                self.record(&fork, "a fork")?;
                let open = fork.open.min(fork.total);
                self.call.arg(fork.total).arg(open).arg(fork.needed);
                self.call.arg(fork.results_max);
            }
            Command::ExtendFork { fork, open, needed } => {
                call.arg("extend").arg(fork).arg(open).arg(needed);
            }
            Command::CloseFork(fork) => {
                call.arg("close").arg(fork);
            }
            Command::ReviveBranch {
                fork,
                index,
                input,
                others,
            } => {
                let item = InboxItem::new(*input);
                call.arg("revive")
                    .arg(fork)
                    .arg(index)
                    .arg(u8::from(others));
                call.arg(&item.id).arg(kind(&item.input));
                self.record(&item.input, "an input")?;
            }
            Command::Detach(scope) => {
                call.arg("detach").arg(scope.id.as_str());
                self.record(&scope, "a detached scope")?;
                self.call.arg(scope.rev).arg(flags(&scope));
            }
            Command::Report(result) => {
                call.arg("report");
                self.record(&result, "the result")?;
            }
            Command::End {
                status,
                output,
                error,
            } => {
                call.arg("end").arg(end_letter(status));
                self.optional(output.as_ref(), "the output")?;
                self.optional(error.as_ref(), "the error")?;
            }
            Command::Index => {
                call.arg("index").arg(attributes::heads(self.attributes));
            }
            Command::Reopen => {
                call.arg("reopen");
            }
            Command::Publish(_)
            | Command::Start(_)
            | Command::EndInstance { .. }
            | Command::SuspendAwaited
            | Command::Send { .. } => {
                call.arg("effect");
                self.record(&command, "an effect")?;
                self.effects.push(command);
            }
            // The driver queues a scope that yields after releasing the lease. A dropped scope is removed after
            // everything else.
            Command::Yield | Command::Drop => {}
        }
        Ok(())
    }
}
