//! `swirl new`

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::PossibleValuesParser;
use serde_json::json;
use swirl_authoring::templates::{self, TEMPLATES, Template};

use crate::terminal::{Output, Terminal};

/// Creates a workflow: a definition, and a scenario that passes.
///
/// The files are NAME.sw.yaml and NAME.scenario.yaml. Existing files are not overwritten.
///
/// Exit code 0 if the files were written, otherwise 2.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl new order
  swirl new trip --template saga --folder workflows
  swirl new order --openapi shop.yaml      # with a function for each operation of the document
  swirl new --list                         # all templates, with a line about each")]
pub struct Args {
    /// The workflow's id, and the name of its files.
    #[arg(required_unless_present = "list")]
    name: Option<String>,

    /// The template to start from.
    #[arg(long, short, value_name = "TEMPLATE", default_value = TEMPLATES[0].name, value_parser = PossibleValuesParser::new(TEMPLATES.iter().map(|template| template.name)))]
    template: String,

    /// The folder for the files; it is created if it doesn't exist.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,

    /// An OpenAPI document, JSON or YAML. The definition gets a function for each of its operations.
    #[arg(long, value_name = "FILE")]
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
    let written = begin(args, name, template)?;
    match terminal.output {
        Output::Json => {
            let names = written.each_ref().map(|path| path.display().to_string());
            let body =
                json!({"template": template.name, "definition": names[0], "scenario": names[1]});
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

fn begin(args: &Args, name: &str, template: &Template) -> anyhow::Result<[PathBuf; 2]> {
    let mut files = template.files(name)?;
    if let Some(path) = &args.openapi {
        let shown = path.display();
        let document = std::fs::read(path).with_context(|| format!("{shown} cannot be read"))?;
        let operations =
            templates::operations(&document).with_context(|| format!("{shown} cannot be used"))?;
        files.add_functions(&uri(path, &args.folder)?, &operations);
    }
    let definition = args.folder.join(format!("{name}.sw.yaml"));
    let scenario = args.folder.join(format!("{name}.scenario.yaml"));
    for path in [&definition, &scenario] {
        if path.try_exists()? {
            bail!(
                "{} already exists: choose another name, or remove it",
                path.display()
            );
        }
    }
    std::fs::create_dir_all(&args.folder)
        .with_context(|| format!("{} cannot be created", args.folder.display()))?;
    write(&definition, &files.definition)?;
    write(&scenario, &files.scenario)?;
    Ok([definition, scenario])
}

/// The document's name in the definition: relative to the definition's folder if it is inside, otherwise its absolute
/// path.
fn uri(path: &Path, folder: &Path) -> anyhow::Result<String> {
    let whole = std::path::absolute(path)?;
    let folder = std::path::absolute(folder)?;
    let path = whole.strip_prefix(&folder).unwrap_or(&whole);
    Ok(path.to_string_lossy().replace('\\', "/"))
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
