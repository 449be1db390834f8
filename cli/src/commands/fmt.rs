//! `swirl fmt`

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use swirl_authoring::format::{self, Error};
use swirl_scenario::discover;

use crate::definitions::{self, is_definition};
use crate::terminal::{Output, Terminal};

/// The maximum input from stdin. No document may be larger.
const STDIN_BYTES_MAX: u64 = 16 << 20;

/// Formats definitions and scenario files, YAML and JSON.
///
/// Comments, the order of keys and the meaning are preserved: each result is read again and compared with the original.
/// If they differ, the file stays unchanged and a message says so. Formatting twice changes nothing.
///
/// Exit code 0 if all files are formatted, 1 if a file is not valid YAML or JSON or, with --check, not formatted, 2 if
/// a file could not be read or written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl fmt order.sw.yaml
  swirl fmt workflows/               # definitions and scenario files, recursively
  swirl fmt --check workflows/       # changes nothing, and lists the files that are not formatted
  swirl fmt - < order.sw.yaml        # from stdin to stdout, for editors")]
pub struct Args {
    /// Files, or folders that are searched; '-' alone is stdin.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Write nothing. List the files that are not formatted, and exit with 1 if there are any.
    #[arg(long)]
    check: bool,
}

/// The outcome for a file.
enum Done {
    /// The file was formatted already.
    Same,
    /// The file was changed, or would be without `--check`.
    Changed,
    /// The file can't be formatted.
    Refused(Error),
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    if args.paths == [Path::new("-")] {
        return stdin(args.check, terminal);
    }
    let mut unreadable = false;
    let mut trouble = |message: String| {
        unreadable = true;
        terminal.message(&format!("error: {message}"));
    };
    let mut files = Vec::new();
    for path in &args.paths {
        let before = files.len();
        let wanted = |path: &Path| discover::is_scenario(path) || is_definition(path);
        match discover::collect(path, &mut files, &wanted) {
            Err(error) => trouble(error.to_string()),
            Ok(()) if files.len() == before => trouble(format!(
                "{}: this folder contains neither definitions nor scenarios; names of scenarios end in .scenario.yaml or .scenario.json; of definitions, {}",
                path.display(),
                definitions::WHAT
            )),
            Ok(()) => {}
        }
    }
    let mut rows = Vec::new();
    for file in files {
        match one(&file, args.check) {
            Ok(done) => rows.push((file.display().to_string(), done)),
            Err(error) => trouble(format!("{error:#}")),
        }
    }
    match terminal.output {
        Output::Json => terminal.result(&format!("{:#}\n", as_json(&rows)))?,
        _ => report(&rows, args.check, terminal)?,
    }
    let failed = |done: &Done| match done {
        Done::Same => false,
        Done::Changed => args.check,
        Done::Refused(_) => true,
    };
    Ok(
        match (unreadable, rows.iter().any(|(_, done)| failed(done))) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        },
    )
}

fn one(file: &Path, check: bool) -> anyhow::Result<Done> {
    let bytes = swirl_documents::files::read(file, swirl_documents::files::BYTES_MAX)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let formatted = match format::format(&bytes) {
        Ok(formatted) => formatted,
        Err(error) => return Ok(Done::Refused(error)),
    };
    if formatted.as_bytes() == bytes {
        return Ok(Done::Same);
    }
    if !check {
        std::fs::write(file, formatted)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    Ok(Done::Changed)
}

fn stdin(check: bool, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(STDIN_BYTES_MAX);
    input
        .read_to_end(&mut bytes)
        .context("stdin cannot be read")?;
    match format::format(&bytes) {
        Ok(formatted) if check => Ok(u8::from(formatted.as_bytes() != bytes)),
        Ok(formatted) => {
            terminal.result(&formatted)?;
            Ok(0)
        }
        Err(error) => {
            terminal.message(&refusal("stdin", &error));
            Ok(1)
        }
    }
}

fn report(rows: &[(String, Done)], check: bool, terminal: &Terminal) -> anyhow::Result<()> {
    let mut changed = 0;
    for (file, done) in rows {
        match done {
            Done::Same => {}
            Done::Changed => {
                changed += 1;
                terminal.result(&format!("{file}\n"))?;
            }
            Done::Refused(error) => terminal.message(&refusal(file, error)),
        }
    }
    let files = |count: usize| match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let verb = if check { "not formatted" } else { "formatted" };
    terminal.message(&format!("{changed} of {} {verb}", files(rows.len())));
    Ok(())
}

fn refusal(file: &str, error: &Error) -> String {
    match error {
        Error::Unreadable(finding) => {
            format!(
                "{file}:{}:{}: error: {}",
                finding.line, finding.column, finding.message
            )
        }
        other => format!("{file}: error: {other}"),
    }
}

fn as_json(rows: &[(String, Done)]) -> Value {
    let files = rows.iter().map(|(file, done)| match done {
        Done::Same => json!({"file": file, "changed": false}),
        Done::Changed => json!({"file": file, "changed": true}),
        Done::Refused(error) => json!({"file": file, "changed": false, "error": error.to_string()}),
    });
    json!({"files": files.collect::<Vec<_>>()})
}
