//! Runs tests: builds all test programs, then runs several at a time.
//!
//! Cargo runs one program after another. Programs that start servers mostly wait for them, so the processors would be
//! idle half of the time.
//!
//! Tests that failed run once more, alone, when all others have ended. One that passes then is unsteady: a note names it,
//! and it has to be repaired, but it doesn't hold up a change that has nothing to do with it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;

use crate::finding::Finding;
use crate::{cargo, tools};

/// A test program that was built.
struct Program {
    /// For example, `swirl-cli tests/main.rs`.
    name: String,
    executable: PathBuf,
    /// The folder of its package, in which cargo would run it.
    folder: PathBuf,
    starts_servers: bool,
}

/// If more tests than this fail, that is no accident, and they aren't run again.
const UNSTEADY_MAX: usize = 5;

/// A program that failed.
struct Failure {
    program: Program,
    error: anyhow::Error,
    /// The failed tests. Empty if the output names none, after a crash for example.
    tests: Vec<String>,
}

/// These take more than a minute. They are started first, so that they don't run alone at the end.
const LONGEST: [&str; 5] = [
    "swirl-cli tests/main.rs",
    "swirl-authoring tests/schema.rs",
    "swirl-redis tests/main.rs",
    "swirl-simulation tests/main.rs",
    "swirl-simulation src/lib.rs",
];

/// Runs the tests that these arguments of `cargo test` select, and doc tests if `chosen` selects no kind of target.
/// `servers`: the packages whose tests start servers.
///
/// Returns notes about unsteady tests.
pub fn run(chosen: &[&str], servers: &[String]) -> Result<Vec<Finding>> {
    run_some(chosen, servers, |_| true, &tools::path())
}

/// The same, but only of programs that `is_wanted` by their names, and with this search path, in which they find servers.
pub fn run_some(
    chosen: &[&str],
    servers: &[String],
    is_wanted: impl Fn(&str) -> bool,
    path: &OsStr,
) -> Result<Vec<Finding>> {
    let mut programs = build(chosen, servers)?;
    programs.retain(|program| is_wanted(&program.name));
    programs.sort_by_key(|program| {
        let is_long = LONGEST.contains(&program.name.as_str());
        (!is_long, !program.starts_servers)
    });
    let count = programs.len();
    let at_once = cores();
    println!("{count} test programs, {at_once} at a time");
    let open = Mutex::new(VecDeque::from(programs));
    let failed = Mutex::new(Vec::new());
    // Outputs are printed as a whole, one at a time.
    let printing = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(program) = next(&open) {
                    let (text, result) = run_one(&program, &[], path, &printing);
                    if let Err(error) = result {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(Failure {
                            program,
                            error,
                            tests: failed_tests(&text),
                        });
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (mut failed, notes) = run_again(failed, path, &printing);
    if !chosen
        .iter()
        .any(|arg| matches!(*arg, "--lib" | "--bins" | "--test"))
    {
        let docs = ["test", "--doc", "--no-fail-fast"];
        if let Err(error) = cargo::run_with(&[&docs, chosen].concat(), cargo::linting()) {
            failed.push(format!("{error:#}"));
        }
    }
    if failed.is_empty() {
        return Ok(notes);
    }
    failed.sort();
    bail!("tests failed:\n  {}", failed.join("\n  "))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

fn next(open: &Mutex<VecDeque<Program>>) -> Option<Program> {
    open.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop_front()
}

fn build(chosen: &[&str], servers: &[String]) -> Result<Vec<Program>> {
    let members = cargo::members()?;
    let args = [
        "test",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ];
    let args = [&args, chosen].concat();
    println!("$ cargo {}", args.join(" "));
    let mut child = cargo::command(&args)
        .envs(cargo::linting().iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let stdout = child.stdout.take().context("no output of cargo")?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(stdout)) {
        let Message::CompilerArtifact(artifact) = message.context("the output of cargo")? else {
            continue;
        };
        let (true, Some(executable)) = (artifact.profile.test, artifact.executable) else {
            continue;
        };
        let package = members
            .packages
            .iter()
            .find(|it| it.id == artifact.package_id);
        let Some((package, folder)) =
            package.and_then(|package| Some((package, package.manifest_path.parent()?)))
        else {
            continue;
        };
        let source = &artifact.target.src_path;
        let source = source.strip_prefix(folder).unwrap_or(source);
        programs.push(Program {
            name: format!("{} {source}", package.name),
            executable: executable.into_std_path_buf(),
            folder: folder.as_std_path().to_owned(),
            starts_servers: servers.iter().any(|name| *name == *package.name),
        });
    }
    let status = child.wait().context("cargo")?;
    if !status.success() {
        bail!("the tests could not be built ({status})");
    }
    Ok(programs)
}

/// Runs failed tests again, alone. Returns what failed for good, and notes about the rest.
fn run_again(
    failed: Vec<Failure>,
    path: &OsStr,
    printing: &Mutex<()>,
) -> (Vec<String>, Vec<Finding>) {
    let count: usize = failed.iter().map(|failure| failure.tests.len()).sum();
    let mut for_good = Vec::new();
    let mut notes = Vec::new();
    for Failure {
        program,
        error,
        tests,
    } in failed
    {
        let name = &program.name;
        if tests.is_empty() {
            for_good.push(format!("{name}: {error:#}"));
            continue;
        }
        let mut still = tests.clone();
        if count <= UNSTEADY_MAX {
            let mut args = vec!["--exact", "--test-threads=1"];
            args.extend(tests.iter().map(String::as_str));
            let (text, result) = run_one(&program, &args, path, printing);
            still = match result {
                Ok(()) => Vec::new(),
                Err(_) => Some(failed_tests(&text))
                    .filter(|tests| !tests.is_empty())
                    .unwrap_or(still),
            };
        }
        for test in tests {
            if still.contains(&test) {
                for_good.push(format!("{name}: {test}"));
            } else {
                notes.push(Finding::note(
                    format!("{name}: {test}"),
                    "unsteady: failed beside others, passed alone",
                ));
            }
        }
    }
    (for_good, notes)
}

/// The tests that failed, by the output of their program.
fn failed_tests(output: &str) -> Vec<String> {
    let names = output.lines().filter_map(|line| {
        let name = line.strip_prefix("---- ")?;
        name.strip_suffix(" stdout ----")
    });
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// Runs a program, prints its output after it has ended, and returns the output.
fn run_one(
    program: &Program,
    args: &[&str],
    path: &OsStr,
    printing: &Mutex<()>,
) -> (String, Result<()>) {
    println!(
        "     Began {} ({})",
        program.name,
        program.executable.display()
    );
    let begun = Instant::now();
    let written = program.executable.with_extension("log");
    let status = execute(program, args, path, &written);
    let text = std::fs::read(&written).unwrap_or_default();
    std::fs::remove_file(&written).ok();
    let text = String::from_utf8_lossy(&text).into_owned();
    let _alone = printing.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = begun.elapsed().as_secs_f64();
    println!("\n     Running {}", program.name);
    println!("{text}     Took {seconds:.1} s");
    (text, status)
}

fn execute(program: &Program, args: &[&str], path: &OsStr, written: &Path) -> Result<()> {
    let file = File::create(written).with_context(|| written.display().to_string())?;
    // Tests that start servers mostly wait for them.
    let threads = cores() + usize::from(program.starts_servers);
    let status = Command::new(&program.executable)
        .args(args)
        .env("RUST_TEST_THREADS", threads.to_string())
        .current_dir(&program.folder)
        .env("PATH", path)
        .env("CARGO", cargo::program())
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()?;
    if !status.success() {
        bail!("{status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_read_from_the_output() {
        let output = "\
running 3 tests
test a::works ... ok
test a::fails ... FAILED
test b::fails ... FAILED

failures:

---- b::fails stdout ----
thread 'b::fails' panicked at src/b.rs:3:5:

---- a::fails stdout ----
left: ---- 1 stdout

failures:
    a::fails
    b::fails
";
        assert_eq!(failed_tests(output), ["a::fails", "b::fails"]);
        assert!(failed_tests("Segmentation fault").is_empty());
    }
}
