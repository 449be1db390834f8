//! `swirl migrate`

mod proof;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use swirl_authoring::sonataflow;
use swirl_migrate::{
    Assume, Format, Migrated, Obstacle, Target, migrate, migrate_to_tasks, refused,
};
use swirl_spec::Reading;
use swirl_spec::edition::Edition;
use swirl_spec::resource::FileResources;
use swirl_spec::vocabulary::is_label;

use super::validate::{self, Read};
use crate::functions::GivenArgs;
use crate::terminal::{Output, Terminal};

/// Rewrites a definition of an older edition as one of edition 0.8, or of DSL 1.0.
///
/// The new document behaves like the old one. In edition 0.8, it is read again and compared before anything is written.
/// For DSL 1.0, '--scenario' proves it: the scenario is migrated with its documents, and both must pass. If the new
/// edition cannot express something, its location is reported and nothing is written. The document still runs
/// unchanged, because every edition is supported.
///
/// Documents that the definition refers to, for example for its functions and events, become part of it. Names of retry
/// policies and comments are lost.
///
/// In edition 0.8, branches and iterations that run several states become separate definitions, which the new one runs
/// as sub-workflows. All are written into a folder.
///
/// Exit code 0 if the document was written, 1 if the new edition cannot express it, it isn't valid or the scenarios
/// don't pass, 2 if a file could not be read or written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl migrate order.sw.yaml > order-0.8.sw.yaml
  swirl migrate order.sw.json -o order-0.8.sw.json
  swirl migrate order.sw.yaml --functions functions.yaml -o order-0.8.sw.yaml
  swirl migrate parallel.sw.json -o migrated/     # a folder, for a definition that becomes several
  swirl migrate --from sonataflow order.sw.yaml -o order-swirl.sw.yaml
  swirl migrate greet.sw.json --assume objects -o greet-0.8.sw.json
  swirl migrate --to 1.0 order.sw.yaml -o order.yaml
  swirl migrate --to 1.0 --namespace shop order.sw.yaml --scenario order.scenario.yaml -o new/
  swirl migrate order.sw.yaml --output json       # the report, and the document in it")]
pub struct Args {
    /// The definition, YAML or JSON.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The edition to write.
    #[arg(long, value_enum, default_value_t)]
    to: To,

    /// The runtime that the definition was written for. Its own forms (`$SECRET.x`, expressions without
    /// `${ }`, `defaultCondition: NAME`, ...) are rewritten in place, and the edition stays. In YAML each
    /// change gets a comment.
    #[arg(long, value_enum, value_name = "RUNTIME", conflicts_with_all = ["to", "assume", "functions", "output_format"])]
    from: Option<From>,

    /// The output format. The default is the one of the file name given with -o, or yaml.
    #[arg(long, value_enum)]
    output_format: Option<OutputFormat>,

    /// The file or the folder to write into, instead of stdout.
    #[arg(long = "out", short, value_name = "FILE|DIR")]
    out: Option<PathBuf>,

    /// An assumption that the definition doesn't state. `objects` (0.8): functions return objects or
    /// nothing. In 0.1 any other result replaces the state data, and 0.8 has no short form of that.
    /// `sequential` (1.0): iterations may run one after another, because DSL 1.0 has no others.
    /// `starts` (1.0): each start event begins an instance, also one that correlates with an active one.
    #[arg(long, value_enum, value_name = "WHAT")]
    assume: Vec<Assumption>,

    /// The namespace of the new document, for DSL 1.0.
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,

    /// A scenario of the definition, for DSL 1.0. It is migrated with all of its documents, and nothing is
    /// written unless both scenarios pass.
    #[arg(long, value_name = "FILE", requires = "out", conflicts_with_all = ["from", "output_format"])]
    scenario: Option<PathBuf>,

    #[command(flatten)]
    given: GivenArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum To {
    #[default]
    #[value(name = "0.8")]
    V0_8,
    #[value(name = "1.0")]
    V1_0,
}

impl To {
    fn edition(self) -> Edition {
        match self {
            To::V0_8 => Edition::V0_8,
            To::V1_0 => Edition::V1_0,
        }
    }

    /// As messages name it.
    fn name(self) -> &'static str {
        match self {
            To::V0_8 => "edition 0.8",
            To::V1_0 => "DSL 1.0",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum From {
    Sonataflow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Assumption {
    Objects,
    Sequential,
    Starts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    Yaml,
    Json,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    if let Some(From::Sonataflow) = args.from {
        return from_sonataflow(args, terminal);
    }
    let target = target(args)?;
    let assume = Assume {
        objects: args.assume.contains(&Assumption::Objects),
        sequential: args.assume.contains(&Assumption::Sequential),
        starts: args.assume.contains(&Assumption::Starts),
    };
    if let Some(scenario) = &args.scenario {
        return proof::run(args, scenario, &target, assume, terminal);
    }
    let read = Read::file_with(&args.file, &args.given.resources()?)?;
    let Reading {
        workflow: Some(workflow),
        edition: Some(detected),
        root: Some(root),
        ..
    } = &read.reading
    else {
        if terminal.output == Output::Json {
            let findings = swirl_documents::render::json(
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
    if detected.edition == args.to.edition() {
        let (file, name) = (args.file.display(), args.to.name());
        let detail = format!("{file} is already a document of {name}");
        terminal.failure(&detail, &format!("error: {detail}"));
        return Ok(1);
    }
    let format = format(args);
    let done = match args.to {
        To::V0_8 => migrate(workflow, root, format, assume),
        To::V1_0 => {
            let done = migrate_to_tasks(workflow, root, format, &target, assume);
            done.and_then(|migrated| {
                let folder = args.file.parent().unwrap_or(Path::new(""));
                let files = FileResources::new(folder, swirl_documents::files::BYTES_MAX);
                match refused(&migrated.text, root, &files.anywhere()) {
                    obstacles if obstacles.is_empty() => Ok(migrated),
                    obstacles => Err(obstacles),
                }
            })
        }
    };
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
                let text = refusal(
                    &args.file,
                    args.to,
                    Some(detected.edition.as_str()),
                    obstacles,
                );
                terminal.message(&text);
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

/// The namespace must be one that DSL 1.0 allows.
fn target(args: &Args) -> anyhow::Result<Target> {
    let name = &args.namespace;
    if !is_label(name) {
        bail!(
            "'--namespace {name}' must be at most 63 letters, digits and dashes, without a dash at either end"
        );
    }
    Ok(Target {
        namespace: name.clone(),
    })
}

/// Rewrites the forms of SonataFlow, see [`sonataflow`].
fn from_sonataflow(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let file = args.file.display();
    let text = swirl_documents::files::read(&args.file, swirl_documents::files::BYTES_MAX)
        .with_context(|| format!("{file} cannot be read"))?;
    let text = String::from_utf8(text).with_context(|| format!("{file} cannot be read"))?;
    let rewritten = match sonataflow::rewrite(&text) {
        Ok(rewritten) => rewritten,
        Err(error) => {
            let detail = format!("{file}:{}: {}", error.line, error.message);
            terminal.failure(&detail, &detail);
            return Ok(1);
        }
    };
    let changes = &rewritten.changes;
    if let Some(out) = &args.out {
        std::fs::write(out, &rewritten.text)
            .with_context(|| format!("{} cannot be written", out.display()))?;
    }
    if terminal.output == Output::Json {
        let changes = changes.iter();
        let changes = changes
            .map(|one| json!({"line": one.line, "column": one.column, "message": one.message}));
        let report = json!({
            "document": rewritten.text, "changes": changes.collect::<Vec<_>>(),
        });
        terminal.result(&format!("{report:#}\n"))?;
        return Ok(0);
    }
    if args.out.is_none() {
        terminal.result(&rewritten.text)?;
    }
    for change in changes {
        let (line, column) = (change.line, change.column);
        terminal.message(&format!("{file}:{line}:{column}: {}", change.message));
    }
    if changes.is_empty() {
        terminal.message(&format!("{file}: nothing to rewrite"));
    }
    Ok(0)
}

/// Writes the files specified by `-o`.
fn save(args: &Args, migrated: &Migrated, format: Format, output: Output) -> anyhow::Result<()> {
    let count = migrated.parts.len() + 1;
    let Some(path) = &args.out else {
        if count > 1 && output != Output::Json {
            bail!("the definition becomes {count} documents: name a folder for them with -o DIR/");
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

fn refusal(file: &Path, to: To, edition: Option<&str>, obstacles: &[Obstacle]) -> String {
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
    let stays = match edition {
        Some(edition) => {
            format!("the document was not written, and still runs as edition {edition}")
        }
        None => "nothing was written".to_owned(),
    };
    let name = to.name();
    text.push_str(&format!(
        "{file}: {name} cannot express this ({count}); {stays}\n"
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
