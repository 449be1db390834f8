//! Runs a process until it has ended and its output is closed. Dropping the future kills it, with the processes that it
//! has started.

use std::path::Path;
use std::process::Stdio;

use super::folders;
use crate::types::custom::exec;
use crate::{CallError, CallErrorKind};

/// A process that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A command line with what it gets.
pub(super) struct Line<'a> {
    pub(super) words: &'a [String],
    /// Variables besides the usual ones.
    pub(super) environment: &'a [(String, String)],
    pub(super) stdin: Option<&'a [u8]>,
    pub(super) folder: &'a Path,
}

/// `what` names the process in errors.
pub(super) async fn run(line: &Line<'_>, limit: usize, what: &str) -> Result<Ended, CallError> {
    let failed = |error: &dyn std::fmt::Display| {
        CallError::new(CallErrorKind::Connection, format!("{what}: {error}"))
    };
    let program = line.words.first().map_or("", String::as_str);
    let started = exec::start(line.words, &[], |command| {
        let variables = line.environment.iter();
        command.envs(variables.map(|(name, value)| (name, value)));
        folders::enter(command, line.folder);
        if line.stdin.is_none() {
            command.stdin(Stdio::null());
        }
    });
    let (mut child, _group) =
        started.map_err(|error| failed(&format!("`{program}` cannot be started: {error}")))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = exec::feed(stdin, line.stdin.unwrap_or_default());
    let too_long = |name: &str| {
        let message = format!("{what}: its {name} is larger than {limit} bytes");
        CallError::new(CallErrorKind::Limit, message)
    };
    let ((), stdout, stderr) = tokio::try_join!(
        async { feed.await.map_err(|error| failed(&error)) },
        async {
            let read = exec::read_within(stdout, limit).await;
            let read = read.map_err(|error| failed(&error))?;
            read.ok_or_else(|| too_long("standard output"))
        },
        async {
            let read = exec::read_within(stderr, limit).await;
            let read = read.map_err(|error| failed(&error))?;
            read.ok_or_else(|| too_long("standard error"))
        },
    )?;
    let status = child.wait().await.map_err(|error| failed(&error))?;
    Ok(Ended {
        code: code(status),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// The exit code; of a process that a signal ended, the one that a shell reports.
fn code(status: std::process::ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(-1)
}
