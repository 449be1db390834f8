//! A connector that is a command.
//!
//! The call is written to its stdin, and the result is read from its stdout. A call that ends early (because of a
//! timeout, a cancellation, or an answer that is too long) kills the command and its child processes.

use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};

use crate::secrets::PREFIX;
use crate::{CallError, CallErrorKind};

/// The number of bytes of stderr that are kept. The end is kept, because it usually names the failure.
const STDERR_BYTES_MAX: usize = 4 * 1024;

/// The variables that a command gets: for finding programs, files and certificates, for the encoding of texts, and for
/// the proxy. Connectors don't get other variables of this process, such as passwords of its servers.
const ENVIRONMENT: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TEMP",
    "TMP",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SystemRoot",
    "PATHEXT",
    "ComSpec",
];

/// The number of lines of stderr that an error shows.
const STDERR_LINES_MAX: usize = 5;

/// A command's answer.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// The last lines of stderr, joined to one line.
    pub(crate) stderr: String,
}

/// Runs a command until it has ended and its output is closed. `environment`: variables in addition to the usual ones.
/// `what` names the command in errors.
pub(crate) async fn run(
    words: &[String],
    environment: &[String],
    input: &[u8],
    stdout_bytes_max: usize,
    what: &str,
) -> Result<Finished, CallError> {
    let started = start(words, environment, |_| {});
    let (mut child, _group) = started.map_err(|error| {
        let message = format!("{what}: it cannot be started: {error}");
        CallError::new(CallErrorKind::Connection, message)
    })?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let broken = |error: io::Error| {
        let message = format!("{what}: {error}");
        CallError::new(CallErrorKind::Connection, message)
    };
    let ((), stdout, stderr) = tokio::try_join!(
        async { feed(stdin, input).await.map_err(broken) },
        async {
            let read = read_within(stdout, stdout_bytes_max)
                .await
                .map_err(broken)?;
            read.ok_or_else(|| {
                let message = format!("{what}: the answer is larger than {stdout_bytes_max} bytes");
                CallError::new(CallErrorKind::Limit, message)
            })
        },
        async { end(stderr).await.map_err(broken) },
    )?;
    let status = child.wait().await.map_err(broken)?;
    Ok(Finished {
        status,
        stdout,
        stderr: last_lines(&stderr),
    })
}

/// Starts a command with a clean environment, which it shares with all that it starts, as it does its group. `change`
/// may set more.
pub(crate) fn start(
    words: &[String],
    environment: &[String],
    change: impl FnOnce(&mut Command),
) -> io::Result<(Child, Group)> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::Error::other("there is no program"));
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    with_clean_environment(&mut command, environment);
    #[cfg(unix)]
    command.process_group(0);
    change(&mut command);
    let child = command.spawn()?;
    let group = Group::of(&child);
    Ok((child, group))
}

/// Writes all of the input and closes it. A command need not read it.
pub(crate) async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> io::Result<()> {
    let Some(mut stdin) = stdin else {
        return Ok(());
    };
    match stdin.write_all(input).await {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Gives a command the usual variables and these of this process. It gets the arguments of one call, but not the secrets
/// of all workflows.
fn with_clean_environment(command: &mut Command, environment: &[String]) {
    command.env_clear();
    let named = environment.iter().map(String::as_str);
    let named = named.filter(|name| !name.starts_with(PREFIX));
    for name in ENVIRONMENT.into_iter().chain(named) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// Reads everything, or returns `None` if it exceeds `limit`.
pub(crate) async fn read_within(
    stream: Option<impl AsyncRead + Unpin>,
    limit: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let limit = limit as u64;
        stream
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .await?;
    }
    Ok((bytes.len() <= limit).then_some(bytes))
}

/// Returns the last bytes of a stream.
pub(crate) async fn end(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(mut stream) = stream else {
        return Ok(bytes);
    };
    let mut chunk = [0; 1024];
    loop {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&chunk[..count]);
        let surplus = bytes.len().saturating_sub(STDERR_BYTES_MAX);
        bytes.drain(..surplus);
    }
}

pub(crate) fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(STDERR_LINES_MAX)..];
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    last.join("; ").chars().map(clean).collect()
}

/// Kills a command's process group when a call ends early. It does nothing after the command has ended and its output
/// is closed, because then no part of the call is left.
pub(crate) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Group {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group {
            leader: id.and_then(rustix::process::Pid::from_raw),
        }
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Group {
        Group {}
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // It fails if the group no longer exists, which is fine.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_the_last_lines() {
        let text = (1..=9)
            .map(|line| format!("line {line}\n\n"))
            .collect::<String>();
        assert_eq!(
            last_lines(text.as_bytes()),
            "line 5; line 6; line 7; line 8; line 9"
        );
        assert_eq!(last_lines(b"\n a\tb \xff\n"), "a b \u{fffd}");
    }

    #[tokio::test]
    async fn only_the_end_of_a_stream_is_kept() {
        let long = [vec![b'a'; 100_000], b"end".to_vec()].concat();
        let kept = end(Some(&long[..])).await.unwrap();
        assert!(kept.len() == STDERR_BYTES_MAX && kept.ends_with(b"aend"));
        assert_eq!(read_within(Some(&long[..]), 100_002).await.unwrap(), None);
        assert_eq!(
            read_within(Some(&long[..]), 100_003).await.unwrap(),
            Some(long)
        );
    }
}
