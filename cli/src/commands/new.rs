//! `swirl new`

use std::io::Write;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::PossibleValuesParser;
use serde_json::json;
use swirl_authoring::operations;
use swirl_authoring::templates::{EDITIONS, TEMPLATES, Template};
use swirl_spec::edition::Edition;

use crate::terminal::{Output, Terminal};

/// Creates a workflow: a definition, and a scenario that passes.
///
/// The files are NAME.sw.yaml and NAME.scenario.yaml, and NAME.service.yaml if the template calls a service: the service's
/// OpenAPI document. Existing files are not overwritten.
///
/// Exit code 0 if the files were written, otherwise 2.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl new order
  swirl new trip --template saga --folder workflows
  swirl new order --edition 0.8            # with states, in the older form of the language
  swirl new order --openapi shop.yaml      # calls each operation of the document
  swirl new --list                         # all templates, with a line about each")]
pub struct Args {
    /// The workflow's name (in edition 0.8 its id), and the name of its files.
    #[arg(required_unless_present = "list")]
    name: Option<String>,

    /// The template to start from.
    #[arg(long, short, value_name = "TEMPLATE", default_value = TEMPLATES[0].name, value_parser = PossibleValuesParser::new(TEMPLATES.iter().map(|template| template.name)))]
    template: String,

    /// The edition of the language.
    #[arg(long, value_name = "EDITION", default_value = "1.0", value_parser = PossibleValuesParser::new(EDITIONS.map(|edition| edition.to_string())))]
    edition: String,

    /// The folder for the files; it is created if it doesn't exist.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,

    /// An OpenAPI document, JSON or YAML. In place of a template, the workflow calls each of its operations.
    #[arg(long, value_name = "FILE", conflicts_with = "template")]
    openapi: Option<PathBuf>,

    /// Lists the templates.
    #[arg(long, conflicts_with = "name")]
    list: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let Some(name) = &args.name else {
        terminal.result(&list(terminal.output))?;
        return Ok(0);
    };
    let Some(template) = TEMPLATES
        .iter()
        .find(|template| template.name == args.template)
    else {
        bail!("there is no template '{}'", args.template);
    };
    let edition = EDITIONS
        .into_iter()
        .find(|edition| edition.to_string() == args.edition);
    let Some(edition) = edition else {
        bail!("there are no templates of edition {}", args.edition);
    };
    let written = begin(args, name, template, edition)?;
    match terminal.output {
        Output::Json => {
            let name = |index: usize| written.get(index).map(|path| path.display().to_string());
            let mut body =
                json!({"definition": name(0), "scenario": name(1), "edition": args.edition});
            if args.openapi.is_none() {
                body["template"] = json!(template.name);
            }
            if let Some(service) = name(2) {
                body["service"] = json!(service);
            }
            terminal.result(&format!("{body:#}\n"))?;
        }
        _ => {
            for path in &written {
                terminal.result(&format!("{}\n", path.display()))?;
            }
            terminal.message(&format!("next: swirl test {}", written[1].display()));
        }
    }
    Ok(0)
}

/// Writes the definition, the scenario and, if there is one, the service's document.
fn begin(
    args: &Args,
    name: &str,
    template: &Template,
    edition: Edition,
) -> anyhow::Result<Vec<PathBuf>> {
    let files = match &args.openapi {
        None => template.files(name, edition)?,
        Some(path) => {
            let shown = path.display();
            let document = swirl_documents::files::read(path, swirl_documents::files::BYTES_MAX)
                .with_context(|| format!("{shown} cannot be read"))?;
            let found = operations::operations(&document)
                .with_context(|| format!("{shown} cannot be used"))?;
            operations::files(name, edition, &uri(path, &args.folder)?, &found)?
        }
    };
    let texts = [
        ("sw", Some(files.definition)),
        ("scenario", Some(files.scenario)),
        ("service", files.service),
    ];
    let texts = texts.into_iter().filter_map(|(kind, text)| {
        let path = args.folder.join(format!("{name}.{kind}.yaml"));
        Some((path, text?))
    });
    let texts: Vec<(PathBuf, String)> = texts.collect();
    for (path, _) in &texts {
        if path.try_exists()? {
            bail!(
                "{} already exists: choose another name, or remove it",
                path.display()
            );
        }
    }
    std::fs::create_dir_all(&args.folder)
        .with_context(|| format!("{} cannot be created", args.folder.display()))?;
    for (path, text) in &texts {
        write(path, text)?;
    }
    Ok(texts.into_iter().map(|(path, _)| path).collect())
}

/// The document's name in the definition: relative to the definition's folder, so that both can be moved together. Its
/// absolute path if they share no folder.
fn uri(path: &Path, folder: &Path) -> anyhow::Result<String> {
    let whole = plain(&std::path::absolute(path)?);
    let folder = plain(&std::path::absolute(folder)?);
    let shared = whole
        .components()
        .zip(folder.components())
        .take_while(|(a, b)| a == b)
        .count();
    let is_root = |part: &Component<'_>| matches!(part, Component::RootDir | Component::Prefix(_));
    if whole.components().take(shared).all(|part| is_root(&part)) {
        return Ok(whole.to_string_lossy().replace('\\', "/"));
    }
    let up = folder
        .components()
        .skip(shared)
        .map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(whole.components().skip(shared)).collect();
    Ok(relative.to_string_lossy().replace('\\', "/"))
}

/// An absolute path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Writes a new file, and fails if it exists.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = std::fs::File::create_new(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("{} cannot be written", path.display()))
}

fn list(output: Output) -> String {
    if output == Output::Json {
        let rows = TEMPLATES
            .iter()
            .map(|template| json!({"template": template.name, "summary": template.summary}));
        return format!("{:#}\n", serde_json::Value::from(rows.collect::<Vec<_>>()));
    }
    let width = TEMPLATES
        .iter()
        .map(|template| template.name.len())
        .max()
        .unwrap_or(0);
    let rows = TEMPLATES
        .iter()
        .map(|template| format!("{:width$}  {}\n", template.name, template.summary));
    rows.collect()
}
