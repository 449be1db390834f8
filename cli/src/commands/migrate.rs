//! `swirl migrate`

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use swirl_spec::Reading;
use swirl_spec::edition::Edition;
use swirl_spec::migrate::{Assume, Format, Migrated, Obstacle, migrate};

use super::validate::{self, Read};
use crate::functions::GivenArgs;
use crate::terminal::{Output, Terminal};

/// Rewrites a definition of another edition as one of edition 0.8.
///
/// The new document behaves like the old one: before anything is written, it is read again and compared. If edition 0.8
/// cannot express something, its location is reported and nothing is written. The document still runs unchanged,
/// because every edition is supported.
///
/// Documents that the definition refers to, for example for its functions and events, become part of it. Names of retry
/// policies and comments are lost.
///
/// Branches and iterations that run several states become separate definitions, which the new one runs as
/// sub-workflows. All are written into a folder.
///
/// Exit code 0 if the document was written, 1 if 0.8 cannot express it or it isn't valid, 2 if a file could not be read
/// or written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl migrate order.sw.yaml > order-0.8.sw.yaml
  swirl migrate order.sw.json -o order-0.8.sw.json
  swirl migrate order.sw.yaml --functions functions.yaml -o order-0.8.sw.yaml
  swirl migrate parallel.sw.json -o migrated/     # a folder, for a definition that becomes several
  swirl migrate greet.sw.json --assume objects -o greet-0.8.sw.json
  swirl migrate order.sw.yaml --output json       # the report, and the document in it")]
pub struct Args {
    /// The definition, YAML or JSON.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The edition to write.
    #[arg(long, value_enum, default_value_t)]
    to: To,

    /// The output format. The default is the one of the file name given with -o, or yaml.
    #[arg(long, value_enum)]
    output_format: Option<OutputFormat>,

    /// The file or the folder to write into, instead of stdout.
    #[arg(long = "out", short, value_name = "FILE|DIR")]
    out: Option<PathBuf>,

    /// An assumption that the definition doesn't state. `objects`: functions return objects or
    /// nothing. In 0.1 any other result replaces the state data, and 0.8 has no short form of that.
    #[arg(long, value_enum, value_name = "WHAT")]
    assume: Vec<Assumption>,

    #[command(flatten)]
    given: GivenArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum To {
    #[default]
    #[value(name = "0.8")]
    V0_8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Assumption {
    Objects,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    Yaml,
    Json,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let To::V0_8 = args.to;
    let read = Read::file_with(&args.file, &args.given.resources()?)?;
    let Reading {
        workflow: Some(workflow),
        edition: Some(detected),
        root: Some(root),
        ..
    } = &read.reading
    else {
        if terminal.output == Output::Json {
            let findings = swirl_spec::render::json(
                &args.file.display().to_string(),
                read.reading.diagnostics.as_slice(),
            );
            let findings: Value = serde_json::from_str(&findings).unwrap_or_default();
            terminal.result(&format!(
                "{:#}\n",
                json!({"migrated": false, "invalid": findings})
            ))?;
        } else {
            terminal.message(&validate::human(&read, false));
        }
        return Ok(1);
    };
    if detected.edition == Edition::V0_8 {
        let file = args.file.display();
        terminal.message(&format!("error: {file} is of edition 0.8 already"));
        return Ok(1);
    }
    let format = format(args);
    let assume = Assume {
        objects: args.assume.contains(&Assumption::Objects),
    };
    let done = migrate(workflow, root, format, assume);
    if let Ok(migrated) = &done {
        save(args, migrated, format, terminal.output)?;
    }
    if terminal.output == Output::Json {
        let report = as_json(detected.edition.as_str(), &done);
        terminal.result(&format!("{report:#}\n"))?;
    } else {
        match &done {
            Ok(migrated) if args.out.is_none() => terminal.result(&migrated.text)?,
            Ok(_) => {}
            Err(obstacles) => {
                terminal.message(&refusal(&args.file, detected.edition.as_str(), obstacles));
            }
        }
        if let (Ok(migrated), Format::Json) = (&done, format) {
            // In YAML, the notes are comments above the document.
            for note in &migrated.notes {
                terminal.message(&format!("note: {note}"));
            }
        }
    }
    Ok(u8::from(done.is_err()))
}

/// Writes the files specified by `-o`.
fn save(args: &Args, migrated: &Migrated, format: Format, output: Output) -> anyhow::Result<()> {
    let count = migrated.parts.len() + 1;
    let Some(path) = &args.out else {
        if count > 1 && output != Output::Json {
            bail!("the definition becomes {count} documents; give a folder for them: -o DIR/");
        }
        return Ok(());
    };
    let is_folder = path.is_dir() || path.to_string_lossy().ends_with('/');
    if !is_folder && count > 1 {
        let path = path.display();
        bail!("the definition becomes {count} documents, and '{path}' is not a folder: -o {path}/");
    }
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
    };
    if !is_folder {
        return write(path, &migrated.text);
    }
    let ending = match format {
        Format::Yaml => "yaml",
        Format::Json => "json",
    };
    let own = args.file.with_extension(ending);
    let own = path.join(own.file_name().unwrap_or_default());
    let mut files = vec![(own, &migrated.text)];
    for part in &migrated.parts {
        files.push((path.join(format!("{}.sw.{ending}", part.id)), &part.text));
    }
    if let Some((taken, _)) = files.iter().find(|(file, _)| file.exists()) {
        bail!("{} already exists; use another folder", taken.display());
    }
    std::fs::create_dir_all(path)
        .with_context(|| format!("{} cannot be created", path.display()))?;
    files.iter().try_for_each(|(file, text)| write(file, text))
}

fn format(args: &Args) -> Format {
    let by_name = args.out.as_ref().and_then(|path| path.extension());
    match args.output_format {
        Some(OutputFormat::Json) => Format::Json,
        None if by_name.is_some_and(|ending| ending == "json") => Format::Json,
        Some(OutputFormat::Yaml) | None => Format::Yaml,
    }
}

fn refusal(file: &Path, edition: &str, obstacles: &[Obstacle]) -> String {
    let file = file.display();
    let mut text = String::new();
    for obstacle in obstacles {
        let place = &obstacle.place;
        let state = obstacle.state.as_ref();
        let state = state.map_or(String::new(), |name| format!("state '{name}': "));
        text.push_str(&format!(
            "{file}:{}:{}: {state}{}\n",
            place.line, place.column, obstacle.message
        ));
    }
    let count = match obstacles.len() {
        1 => "1 point".to_owned(),
        count => format!("{count} points"),
    };
    text.push_str(&format!(
        "{file}: edition 0.8 cannot express this ({count}); the document was not written, and still runs as edition {edition}\n"
    ));
    text
}

fn as_json(edition: &str, done: &Result<Migrated, Vec<Obstacle>>) -> Value {
    match done {
        Ok(migrated) => json!({
            "migrated": true,
            "edition": edition,
            "document": migrated.text,
            "parts": migrated.parts.iter().map(|part| json!({"id": part.id, "document": part.text})).collect::<Vec<_>>(),
            "notes": migrated.notes,
            "obstacles": [],
        }),
        Err(obstacles) => {
            let obstacles: Vec<Value> = obstacles
                .iter()
                .map(|obstacle| {
                    json!({
                        "pointer": obstacle.place.pointer,
                        "line": obstacle.place.line,
                        "column": obstacle.place.column,
                        "state": obstacle.state,
                        "message": obstacle.message,
                    })
                })
                .collect();
            json!({"migrated": false, "edition": edition, "notes": [], "obstacles": obstacles})
        }
    }
}
