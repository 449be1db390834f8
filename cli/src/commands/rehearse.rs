//! `swirl rehearse`, a hidden command: the process in which a server rehearses a definition.
//!
//! It reads a request from stdin and writes the answer to stdout. Both the definition and its mocks come from clients of
//! the server. So before it reads them, it gives up what it doesn't need: it can get little memory, and it can open no
//! files and no connections, since it has the largest number of open files already.

use std::io::{Read, Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use swirl_api::rehearsals::{BYTES_MAX, Rehearsal};

use crate::terminal::Terminal;

/// How long a run may take. The server waits for two seconds more.
const TIME_MAX: Duration = Duration::from_secs(8);

/// The stack of the thread that waits until this time is over, in bytes.
const STACK_BYTES: usize = 128 << 10;

/// Rehearses a definition, for a server.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl rehearse < request.json")]
pub struct Args {
    /// The process has its limits already.
    #[arg(long, hide = true)]
    limited: bool,
}

pub fn run(args: &Args, _: &Terminal) -> anyhow::Result<u8> {
    limits::apply(args.limited)?;
    let mut request = Vec::new();
    // The server writes the request anew, and may write numbers with more digits than the client did.
    let bytes_max = u64::try_from(5 * BYTES_MAX)?;
    stdin().lock().take(bytes_max).read_to_end(&mut request)?;
    let asked: Rehearsal = serde_json::from_slice(&request).context("the request")?;
    let over = Arc::new(AtomicBool::new(false));
    let ending = over.clone();
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            std::thread::sleep(TIME_MAX);
            ending.store(true, Ordering::Relaxed);
        })?;
    let answer = swirl_scenario::rehearse(&asked, over);
    let mut out = stdout().lock();
    serde_json::to_writer(&mut out, &answer)?;
    out.flush()?;
    Ok(0)
}

#[cfg(unix)]
mod limits {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::path::PathBuf;
    use std::process::Command;

    use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

    /// The memory besides the program's own code, in bytes.
    const MEMORY_MAX: u64 = 256 << 20;
    /// The processor time, in seconds, if nobody stops it before.
    const PROCESSOR_TIME_MAX: u64 = 15;

    /// `limited`: the process has those limits that have to be there from its beginning.
    pub fn apply(limited: bool) -> io::Result<()> {
        match limited {
            true => close(),
            false => Err(restart()),
        }
    }

    fn limit(resource: Resource, most: u64) -> io::Result<()> {
        // A process may not raise a limit that its supervisor has set.
        let most = getrlimit(resource)
            .maximum
            .map_or(most, |max| max.min(most));
        let both = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        Ok(setrlimit(resource, both)?)
    }

    /// Starts this program again, with these limits: the allocator has reserved more already. Returns only if that
    /// fails.
    fn restart() -> io::Error {
        let limited = || {
            // The server's own work comes first, and if memory is short, this process ends and not the server. A
            // supervisor may forbid both.
            let _ = nice(10);
            let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
            limit(Resource::Core, 0)?;
            limit(Resource::Fsize, 0)?;
            limit(Resource::Cpu, PROCESSOR_TIME_MAX)?;
            // Only Linux tells this, and only there it is a limit.
            if let Some(code) = code_bytes() {
                limit(Resource::As, code + MEMORY_MAX)?;
            }
            // Also after the file has been replaced.
            let itself = PathBuf::from("/proc/self/exe");
            match itself.exists() {
                true => Ok(itself),
                false => std::env::current_exe(),
            }
        };
        match limited() {
            Ok(program) => Command::new(program).args(["rehearse", "--limited"]).exec(),
            Err(error) => error,
        }
    }

    /// The address space of the program and its libraries.
    fn code_bytes() -> Option<u64> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let of_files = maps.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (from, to) = words.next()?.split_once('-')?;
            let is_file = words.nth(3)? != "0";
            let number = |text| u64::from_str_radix(text, 16).ok();
            is_file.then_some(number(to)? - number(from)?)
        });
        Some(of_files.sum())
    }

    /// From now on no file, pipe or connection can be opened.
    fn close() -> io::Result<()> {
        const STANDARD: u64 = 3;
        limit(Resource::Nofile, STANDARD)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_program_has_code() {
            assert!(!cfg!(target_os = "linux") || code_bytes().unwrap() > 1 << 20);
        }
    }
}

#[cfg(not(unix))]
mod limits {
    pub fn apply(_: bool) -> std::io::Result<()> {
        Ok(())
    }
}
