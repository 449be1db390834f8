//! The fast path for most commits: a function that does nothing else (`lua/plain.lua`). It reports commits that
//! need the general function after all.

use std::sync::atomic::Ordering;

use redis::Cmd;
use swirl_model::event::Command;
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Fork, Role, Scope};
use swirl_ports::{Commit, Committed, Lease, Result};

use crate::Redis;
use crate::commit::{is_bounded, is_last, kib};
use crate::connect::damaged;
use crate::record::{encode, end_letter, flags};
use crate::reply::text;
use crate::script::{Lazy, Script};

/// More branches or lines of history at once are for the general function (`WIDE` in the script).
const WIDE: usize = 500;

static PLAIN: Lazy = Lazy::new(plain);
static LAST_PLAIN: Lazy = Lazy::new(|| plain().freeing());

fn plain() -> Script {
    Script::alone(include_str!("lua/plain.lua"))
}

pub(crate) fn freeing() -> &'static Script {
    &LAST_PLAIN
}

/// A commit that ends its instance frees memory.
fn script(commit: &Commit) -> &'static Script {
    match is_last(&commit.commands) {
        true => &LAST_PLAIN,
        false => &PLAIN,
    }
}

/// The steps of such a commit in addition to storing the record.
#[derive(Default)]
struct Steps<'a> {
    close: Option<u32>,
    fork: Option<&'a Fork>,
    report: Option<&'a Command>,
    end: Option<&'a Command>,
}

impl<'a> Steps<'a> {
    /// `None`: the commit needs the general function.
    fn of(commit: &'a Commit) -> Option<Steps<'a>> {
        let name = commit.lease.scope.scope.as_str();
        let is_root = name == "r";
        // `r.<fork>.<branch>`
        let is_branch = !is_root && name.bytes().filter(|byte| *byte == b'.').count() == 2;
        let scope = &commit.scope;
        if !(is_root || is_branch)
            || matches!(scope.role, Role::Detached { .. })
            || !commit.refused.is_empty()
            || commit.history.len() > WIDE
        {
            return None;
        }
        let mut steps = Steps::default();
        for command in &commit.commands {
            match command {
                Command::CloseFork(fork) if is_root && steps.is_before_fork() => {
                    if steps.close.replace(*fork).is_some() {
                        return None;
                    }
                }
                Command::Fork(fork) if is_root && steps.is_before_fork() => {
                    let open = fork.open.min(fork.total) as usize;
                    if fork.parent != scope.id || !(1..=WIDE).contains(&open) {
                        return None;
                    }
                    steps.fork = Some(fork);
                }
                Command::Report(_) if is_branch && steps.report.is_none() => {
                    steps.report = Some(command);
                }
                Command::End { status, .. }
                    if is_root && steps.end.is_none() && *status != EndStatus::Faulted =>
                {
                    steps.end = Some(command);
                }
                Command::Yield => {}
                Command::Drop if is_branch => {}
                _ => return None,
            }
        }
        // A root that is gone has ended, and vice versa.
        let gone = is_gone(&commit.scope, &commit.commands);
        if is_root && gone != steps.end.is_some() || gone && !commit.release {
            return None;
        }
        Some(steps)
    }

    fn is_before_fork(&self) -> bool {
        self.fork.is_none() && self.end.is_none()
    }

    fn letters(&self, commit: &Commit) -> String {
        let letters = [
            (commit.if_quiet, 'q'),
            (commit.release, 'r'),
            (self.close.is_some(), 'c'),
            (self.fork.is_some(), 'f'),
            (self.report.is_some(), 'p'),
            (self.end.is_some(), 'e'),
        ];
        let there = letters.iter().filter(|(there, _)| *there);
        there.map(|(_, letter)| letter).collect()
    }
}

/// Nothing of the scope is kept, apart from the record of a root.
pub(crate) fn is_gone(scope: &Scope, commands: &[Command]) -> bool {
    scope.ended() || commands.contains(&Command::Drop)
}

impl Redis {
    /// `None`: it is for the general function; nothing has been written. `rev`: the revision that was
    /// read, before that of the record.
    pub(crate) async fn commit_plainly(
        &self,
        commit: &Commit,
        rev: u64,
        attempt: u64,
    ) -> Option<Result<Committed>> {
        if !self.options().plain {
            return None;
        }
        let call = self.plain_call(commit, rev, attempt);
        let call = match call {
            Ok(call) => call?,
            Err(error) => return Some(Err(error)),
        };
        let answer = self.run(script(commit), call).await;
        let answer = match self.sure(answer, &commit.lease, attempt).await {
            Ok(answer) => answer,
            Err(error) => return Some(Err(error)),
        };
        let committed = match text(answer) {
            Ok(answer) if answer == "general" => return None,
            answer => answer.and_then(|answer| read(&answer, &commit.lease.scope)),
        };
        self.inner.plain.fetch_add(1, Ordering::Relaxed);
        Some(committed)
    }

    /// The number of commits on the fast path.
    pub fn plain_commits(&self) -> u64 {
        self.inner.plain.load(Ordering::Relaxed)
    }

    fn plain_call(&self, commit: &Commit, rev: u64, attempt: u64) -> Result<Option<Cmd>> {
        let Some(steps) = Steps::of(commit) else {
            return Ok(None);
        };
        let lease = &commit.lease;
        let id = &lease.scope.instance;
        let limit = self.options().record_max;
        let keys = self.keys().of_plain(
            id,
            steps.end.map(|end| match end {
                Command::End { status, .. } => end_letter(*status),
                _ => "",
            }),
        );
        let mut call = self.call_scope(script(commit), &keys, &lease.scope);
        let gone = is_gone(&commit.scope, &commit.commands);
        call.arg(lease.token).arg(rev);
        let record = match gone && steps.end.is_none() {
            true => Vec::new(),
            false => self.encode_scope(&commit.scope, lease)?,
        };
        let fork = steps.fork.map(|fork| {
            let what = || format!("a fork of {}", lease.scope);
            Ok((fork, encode(fork, what, limit)?))
        });
        let fork = fork.transpose()?;
        let result = match steps.report {
            Some(Command::Report(result)) => {
                let what = || format!("the result of {}", lease.scope);
                Some((result.is_done(), encode(result, what, limit)?))
            }
            _ => None,
        };
        let adds = match is_bounded(commit, self.options().instance_bytes) {
            true => {
                let of_fork = fork.as_ref().map_or(0, |(_, record)| kib(record.len()));
                let of_result = match &result {
                    Some((true, result)) => kib(result.len()),
                    _ => 0,
                };
                kib(if gone { 0 } else { record.len() }) + of_fork + of_result
            }
            false => 0,
        };
        call.arg(record);
        call.arg(flags(&commit.scope))
            .arg(u8::from(gone))
            .arg(commit.at.0);
        call.arg(self.options().history_max.max(1));
        call.arg(steps.letters(commit));
        call.arg(commit.lease_ms)
            .arg(self.process())
            .arg(attempt)
            .arg(lease.seen);
        call.arg(adds).arg(kib(self.options().instance_bytes));
        call.arg(commit.consumed.len()).arg(&commit.consumed);
        crate::history::add(&mut call, &commit.history, id, limit)?;
        if let Some(number) = steps.close {
            call.arg(number);
        }
        if let Some((fork, record)) = fork {
            call.arg(fork.fork).arg(record);
            call.arg(fork.total)
                .arg(fork.open.min(fork.total))
                .arg(fork.needed)
                .arg(fork.results_max);
        }
        if let Some((_, result)) = result {
            call.arg(result);
        }
        if let Some(Command::End {
            status,
            output,
            error,
        }) = steps.end
        {
            call.arg(end_letter(*status));
            match output {
                Some(output) => call.arg(encode(output, || format!("the output of {id}"), limit)?),
                None => call.arg(""),
            };
            match error {
                Some(error) => call.arg(encode(error, || format!("the error of {id}"), limit)?),
                None => call.arg(""),
            };
        }
        Ok(Some(call))
    }
}

fn read(answer: &str, scope: &ScopeRef) -> Result<Committed> {
    let bad = || damaged("the answer to a commit", format!("'{answer}'"));
    let mut parts = answer.split_ascii_whitespace();
    let released = match parts.next() {
        Some("0") => false,
        Some("1") => true,
        _ => return Err(bad()),
    };
    let token = parts.next().and_then(|token| token.parse().ok());
    let token: u64 = token.ok_or_else(bad)?;
    let wake = parts.map(|name| ScopeRef {
        instance: scope.instance.clone(),
        scope: ScopeId::new(name),
    });
    Ok(Committed::Done {
        outbox: Vec::new(),
        wake: wake.collect(),
        released,
        token: (token != Lease::UNTAKEN).then_some(token),
    })
}
