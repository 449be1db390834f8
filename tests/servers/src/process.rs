//! A server's process: starts, waits, stops and kills it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// The time limit for a server's start, even on a busy machine.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(120);
/// The time limit for a server's end after it is asked to stop.
const STOP_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);
/// The number of times that a server is started again because another process was faster to take its port.
pub(crate) const ATTEMPTS: usize = 5;

/// The process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: &'static str,
    log: PathBuf,
}

impl Process {
    /// Starts a program, whose output is written to `log`.
    pub fn start<S: AsRef<OsStr>>(
        program: &'static str,
        package: &str,
        args: impl IntoIterator<Item = S>,
        log: &Path,
    ) -> Result<Process> {
        let output = File::options().create(true).append(true).open(log)?;
        let child = command(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|error| missing(program, package, error))?;
        Ok(Process {
            child,
            name: program,
            log: log.to_owned(),
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns when `ready` says so. Fails if the process ends or takes too long.
    pub fn wait_until(&mut self, what: &str, mut ready: impl FnMut() -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}: {}", self.name, self.last_words());
            }
            if ready() {
                return Ok(());
            }
            if begun.elapsed() > START_LIMIT {
                let limit = START_LIMIT.as_secs();
                bail!(
                    "{}: no {what} within {limit} s: {}",
                    self.name,
                    self.last_words()
                );
            }
            std::thread::sleep(POLL);
        }
    }

    /// The end of its output.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        // It hasn't been waited for yet, so the id still belongs to this child.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.context("a process without an id")?;
        kill_process(pid, signal).with_context(|| format!("{} takes no signal", self.name))
    }

    /// Asks it to stop, and waits for that.
    pub fn terminate(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        self.signal(Signal::CONT)?;
        self.signal(Signal::TERM)?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > STOP_LIMIT {
                return self.kill();
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// `kill -9`, and waits for the end.
    pub fn kill(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
            self.child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that ends has no use for the error.
        let _ = self.kill();
    }
}

/// Debian installs servers in folders that may be missing from an ordinary user's search path.
pub(crate) fn command(program: &str) -> Command {
    let beside = Path::new("/usr/sbin").join(program);
    let in_path = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    });
    if !in_path && beside.is_file() {
        return Command::new(beside);
    }
    Command::new(program)
}

fn missing(program: &str, package: &str, error: std::io::Error) -> anyhow::Error {
    if error.kind() == ErrorKind::NotFound {
        return anyhow::anyhow!(
            "{program} isn't installed: the tests need it, `apt-get install {package}` brings it"
        );
    }
    anyhow::Error::new(error).context(format!("{program} cannot be started"))
}

/// Runs a program to its end and returns its output.
pub(crate) fn output(program: &str, package: &str, args: &[&str]) -> Result<String> {
    let done = command(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| missing(program, package, error))?;
    let text = String::from_utf8_lossy(&done.stdout).trim_end().to_owned();
    if !done.status.success() {
        let error = String::from_utf8_lossy(&done.stderr);
        bail!("{program} {}: {text}{error}", args.join(" "));
    }
    Ok(text)
}
