//! Runs tests: builds all test programs, then runs several at a time.
//!
//! Cargo runs one program after another. Programs that start servers mostly wait for them, so the processors would be
//! idle half of the time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cargo_metadata::Message;

use crate::{cargo, tools};

/// A test program that was built.
struct Program {
    /// For example, `swirl-cli tests/dev.rs`.
    name: String,
    executable: PathBuf,
    /// The folder of its package, in which cargo would run it.
    folder: PathBuf,
    starts_servers: bool,
}

/// These take more than a minute. They are started first, so that they don't run alone at the end.
const LONGEST: [&str; 4] = [
    "swirl-cli tests/cluster.rs",
    "swirl-redis tests/plain/main.rs",
    "swirl-simulation tests/mutants.rs",
    "swirl-simulation src/lib.rs",
];

/// Runs the tests that these arguments of `cargo test` select, and doc tests if `chosen` selects no kind of target.
/// `servers`: the packages whose tests start servers.
pub fn run(chosen: &[&str], servers: &[String]) -> Result<()> {
    let mut programs = build(chosen, servers)?;
    programs.sort_by_key(|program| {
        let is_long = LONGEST.contains(&program.name.as_str());
        (!is_long, !program.starts_servers)
    });
    let count = programs.len();
    let at_once = std::thread::available_parallelism().map_or(2, |cores| cores.get() + 1);
    println!("{count} test programs, {at_once} at a time");
    let open = Mutex::new(VecDeque::from(programs));
    let failed = Mutex::new(Vec::new());
    // Outputs are printed as a whole, one at a time.
    let printing = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(program) = next(&open) {
                    let result = run_one(&program, &printing);
                    if let Err(error) = result {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(format!("{}: {error:#}", program.name));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !chosen
        .iter()
        .any(|arg| matches!(*arg, "--lib" | "--bins" | "--test"))
    {
        let docs = ["test", "--doc", "--no-fail-fast"];
        if let Err(error) = cargo::run(&[&docs, chosen].concat()) {
            failed.push(format!("{error:#}"));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    failed.sort();
    bail!("tests failed:\n  {}", failed.join("\n  "))
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

/// Runs a program, and prints its output after it has ended.
fn run_one(program: &Program, printing: &Mutex<()>) -> Result<()> {
    println!(
        "     Began {} ({})",
        program.name,
        program.executable.display()
    );
    let begun = Instant::now();
    let written = program.executable.with_extension("log");
    let status = execute(program, &written);
    let text = std::fs::read(&written).unwrap_or_default();
    std::fs::remove_file(&written).ok();
    let _alone = printing.lock().unwrap_or_else(PoisonError::into_inner);
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n     Running {}", program.name)?;
    out.write_all(&text)?;
    writeln!(out, "     Took {:.1} s", begun.elapsed().as_secs_f64())?;
    status
}

fn execute(program: &Program, written: &Path) -> Result<()> {
    let file = File::create(written).with_context(|| written.display().to_string())?;
    let status = Command::new(&program.executable)
        .current_dir(&program.folder)
        .env("PATH", tools::path())
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
