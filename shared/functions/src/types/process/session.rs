//! A process that is spoken to line by line. Dropping it kills it, with the processes that it has started.

use std::io;
use std::time::Duration;

use swirl_model::Data;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::SemaphorePermit;
use tokio::task::JoinSet;

use super::ProcessCaller;
use super::arguments::{listed, pairs};
use super::folders::{self, Folder};
use crate::types::custom::exec::{self, Group};
use crate::{CallError, CallErrorKind};

/// Its last words are waited for no longer than this.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub(crate) struct Session<'a> {
    child: Child,
    _group: Group,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Reads standard error, and keeps its end.
    stderr: JoinSet<io::Result<Vec<u8>>>,
    /// The bytes that may still come.
    left: usize,
    what: &'a str,
    _folder: Folder,
    _place: Option<SemaphorePermit<'a>>,
}

impl<'a> Session<'a> {
    /// `described`: `command`, `arguments` and `environment`.
    ///
    /// # Errors
    /// It can't be started.
    pub(crate) async fn start(
        caller: &'a ProcessCaller,
        described: &Data,
        what: &'a str,
    ) -> Result<Session<'a>, CallError> {
        // The semaphore is never closed, and if it were, continuing would do no harm.
        let place = caller.places.acquire().await.ok();
        let program = described.get("command").map(|command| command.to_text());
        let program = program.filter(|program| !program.is_empty());
        let program = program.ok_or_else(|| CallError::arguments("`command` is missing"))?;
        let failed = |error: io::Error| {
            let message = format!("{what}: `{program}` cannot be started: {error}");
            CallError::new(CallErrorKind::Connection, message)
        };
        let folder = caller.folders.make().map_err(failed)?;
        let words = [vec![program.clone()], listed(described)?].concat();
        let environment = pairs(described, "environment")?;
        let started = exec::start(&words, &[], |command| {
            folders::enter(command.envs(environment), folder.path());
        });
        let (mut child, group) = started.map_err(failed)?;
        let pipe = || failed(io::Error::other("it has no output"));
        let stdout = child.stdout.take().ok_or_else(pipe)?;
        let mut stderr = JoinSet::new();
        stderr.spawn(exec::end(child.stderr.take()));
        Ok(Session {
            _group: group,
            stdin: child.stdin.take(),
            stdout: BufReader::new(stdout),
            stderr,
            left: caller.output_bytes_max,
            what,
            child,
            _folder: folder,
            _place: place,
        })
    }

    /// Writes a line, and reads lines until one of them is an answer, which `read` says. `read` may reply.
    ///
    /// # Errors
    /// The process ends, or writes more than it may.
    pub(crate) async fn ask<T>(
        &mut self,
        line: &str,
        mut read: impl FnMut(&str) -> Read<T>,
    ) -> Result<T, CallError> {
        let mut pending = format!("{line}\n").into_bytes();
        let mut written = 0;
        let mut found = Vec::new();
        loop {
            let rest = self.left.saturating_sub(found.len()).saturating_add(1) as u64;
            let (stdin, stdout) = (&mut self.stdin, &mut self.stdout);
            // A process may write before it has read all of its input.
            tokio::select! {
                wrote = write_some(stdin, &pending[written..]), if written < pending.len() => {
                    match wrote {
                        Ok(count) => written += count,
                        // It has ended, and its last words say why.
                        Err(_) => written = pending.len(),
                    }
                    continue;
                }
                got = read_some(stdout, rest, &mut found) => match got {
                    Ok(0) => return Err(self.ended().await),
                    Ok(_) => {}
                    Err(error) => return Err(self.broken(&error.to_string())),
                },
            }
            if found.len() > self.left {
                let message = format!("{}: it writes more than is allowed", self.what);
                return Err(CallError::new(CallErrorKind::Limit, message));
            }
            if found.last() != Some(&b'\n') {
                continue;
            }
            self.left -= found.len();
            let text = String::from_utf8_lossy(&std::mem::take(&mut found)).into_owned();
            match read(text.trim()) {
                Read::Answer(answer) => return Ok(answer),
                Read::Reply(reply) => {
                    pending.drain(..written);
                    written = 0;
                    pending.extend_from_slice(reply.as_bytes());
                    pending.push(b'\n');
                }
                Read::Other => {}
            }
        }
    }

    /// Closes its input, and waits this long for its end.
    pub(crate) async fn close(mut self, limit: Duration) {
        self.stdin = None;
        let _ = tokio::time::timeout(limit, self.child.wait()).await;
    }

    fn broken(&self, reason: &str) -> CallError {
        let message = format!("{}: {reason}", self.what);
        CallError::new(CallErrorKind::Connection, message)
    }

    async fn ended(&mut self) -> CallError {
        let words = tokio::time::timeout(LAST_WORDS, self.stderr.join_next()).await;
        let words = match words {
            Ok(Some(Ok(Ok(bytes)))) => exec::last_lines(&bytes),
            _ => String::new(),
        };
        match words.is_empty() {
            true => self.broken("the process ended without an answer"),
            false => self.broken(&format!("the process ended without an answer: {words}")),
        }
    }
}

/// A line that the process wrote.
pub(crate) enum Read<T> {
    Answer(T),
    /// It asks for this line.
    Reply(String),
    Other,
}

async fn write_some(stdin: &mut Option<ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Adds what is there, up to the end of a line, and returns its length: 0 at the end. Nothing is lost if it is dropped.
async fn read_some(
    stdout: &mut BufReader<ChildStdout>,
    limit: u64,
    found: &mut Vec<u8>,
) -> io::Result<usize> {
    let mut limited = stdout.take(limit);
    let there = limited.fill_buf().await?;
    let end = there.iter().position(|byte| *byte == b'\n');
    let count = end.map_or(there.len(), |end| end + 1);
    found.extend_from_slice(&there[..count]);
    limited.consume(count);
    Ok(count)
}
