//! `swirl record`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;
use swirl_api::Problem;
use swirl_api::definitions::{self, GetQuery, LATEST, Version};
use swirl_api::instance::{GET, InstanceId};
use swirl_api::schedules::Workflow;
use swirl_authoring::format;
use swirl_model::ids::DefinitionId;
use swirl_recording::record::{
    self, Export, Exported, ExportedDefinition, Files, Made, RecordError,
};
use swirl_scenario::report::details;

use super::validate::Read;
use crate::client::{Answered, Client, Server};
use crate::private;
use crate::terminal::{Output, Terminal};

/// The maximum number of instances in one recording, including sub-workflows and continuations.
const INSTANCES_MAX: usize = 1000;

/// Creates a scenario file from an instance, so that its history becomes a test.
///
/// The scenario has the calls with their answers and times, the received events and the operators' actions. It expects
/// the same outcome, also of sub-workflows. Values of secrets are replaced by '***'. Before the file is written, a run
/// in virtual time is compared with the recording.
///
/// The answers of calls and the events are in the history only if 'history.data' is 'all'. 'swirl dev' keeps them
/// unless '--history-data' says otherwise; SWIRL_HISTORY_DATA=all sets it for workers and coordinators.
///
/// Exit code 0 if the scenario passes, 1 if it fails or the history is incomplete, 2 if the server could not be reached
/// or a file could not be written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl record 2f6c0d9b                                  # the scenario, to stdout
  swirl record 2f6c0d9b -o order-7.scenario.yaml
  swirl record orders/order-7 -o order-7.scenario.yaml --definition order.sw.yaml
  swirl record 2f6c0d9b --export order-7.json            # what the server says, as it is
  swirl record --from order-7.json -o order-7.scenario.yaml")]
pub struct Args {
    /// The instance's id or its beginning, or WORKFLOW/KEY.
    #[arg(value_name = "ID", required_unless_present = "from")]
    id: Option<String>,

    /// Read an export instead of asking a server.
    #[arg(long, value_name = "FILE", conflicts_with = "id")]
    from: Option<PathBuf>,

    /// The file to write, instead of stdout.
    #[arg(long = "out", short, value_name = "FILE")]
    out: Option<PathBuf>,

    /// A definition that the scenario refers to as a file, so that the test follows its changes; may be repeated.
    /// All other definitions become part of the scenario as they were deployed.
    #[arg(long, value_name = "FILE")]
    definition: Vec<PathBuf>,

    /// Write the server's export of the instance to a file, and create no scenario.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "definition", "from"])]
    export: Option<PathBuf>,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    if let Some(from) = &args.from {
        return write(&read_export(from)?, args, terminal);
    }
    args.server.run(async |client| {
        let name = args.id.as_deref().unwrap_or_default();
        let id = client.instance(name).await?;
        let export = match export(&client, &id).await? {
            Ok(export) => export,
            Err(problem) => return refused(problem, terminal),
        };
        let Some(file) = &args.export else {
            return write(&export, args, terminal);
        };
        let text = serde_json::to_string_pretty(&export)?;
        private::write(file, &format!("{text}\n"))?;
        let count = export.instances.len();
        terminal.message(&format!(
            "{} has instance {id}, {count} in all",
            file.display()
        ));
        say_what_was_cut(&export, terminal);
        Ok(0)
    })
}

/// Reports the server's refusal, with exit code 1.
///
/// # Errors
/// The output failed.
pub fn refused(problem: Problem, terminal: &Terminal) -> anyhow::Result<u8> {
    Answered::<()>(Err(problem)).show(terminal, |()| String::new())
}

/// # Errors
/// The file cannot be read, or is not an export.
pub fn read_export(file: &Path) -> anyhow::Result<Export> {
    let content = swirl_documents::files::read(file, swirl_documents::files::BYTES_MAX)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let parsed = Export::parse(&content);
    parsed.map_err(|error| {
        let reason = record::printable(&error.to_string());
        anyhow::anyhow!("{}: {reason}", file.display())
    })
}

/// Requests an instance and those that it started from the server. The error gives the reason if the server refuses.
///
/// # Errors
/// The request failed, or there are too many instances.
pub async fn export(client: &Client, id: &str) -> anyhow::Result<Result<Export, Problem>> {
    let mut export = Export::new();
    let mut wanted = vec![id.to_owned()];
    let mut known: BTreeSet<String> = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        if !known.insert(id.clone()) {
            continue;
        }
        if export.instances.len() == INSTANCES_MAX {
            bail!(
                "the instance started more than {INSTANCES_MAX} others: that is too many for one scenario"
            );
        }
        let call = GET.at(&InstanceId { id: id.clone() });
        let instance = match client.ask(call).await?.0 {
            Ok(instance) => instance,
            Err(problem) if export.instances.is_empty() => return Ok(Err(problem)),
            // A sub-workflow may never have begun, or may have been removed.
            Err(_) => continue,
        };
        let history = match super::history::whole(id, client).await?.0 {
            Ok(history) => history,
            Err(problem) => return Ok(Err(problem)),
        };
        let index = export.instances.len();
        let definition = DefinitionId {
            workflow: instance.workflow.as_str().into(),
            version: instance.version.as_str().into(),
        };
        export.instances.push(Exported { instance, history });
        if export.definition(&definition).is_none() {
            match fetched(client, &definition).await? {
                Ok(found) => export.definitions.push(found),
                Err(refused) => return Ok(Err(refused)),
            }
        }
        let started = record::started_by(&export, index)?;
        wanted.extend(started.iter().rev().map(ToString::to_string));
    }
    Ok(Ok(export))
}

async fn fetched(
    client: &Client,
    id: &DefinitionId,
) -> anyhow::Result<swirl_api::Answer<ExportedDefinition>> {
    let query = GetQuery {
        contents: true,
        ..GetQuery::default()
    };
    let workflow = Workflow {
        id: id.workflow.to_string(),
    };
    let exact = Version {
        id: workflow.id.clone(),
        version: id.version.to_string(),
    };
    let latest = LATEST.at(&workflow).query(query.clone());
    let mut found = match id.version.is_empty() {
        true => client.ask(latest.clone()).await?.0,
        false => {
            client
                .ask(definitions::GET.at(&exact).query(query))
                .await?
                .0
        }
    };
    let is_missing = found.as_ref().is_err_and(|problem| problem.status == 404);
    // If the version is an expression, the instances have its value.
    if is_missing
        && !id.version.is_empty()
        && let Ok(other) = client.ask(latest).await?.0
        && other.head.version.contains("${")
    {
        found = Ok(other);
    }
    Ok(found.map(|found| ExportedDefinition {
        id: exact.id,
        version: exact.version,
        document: found.document,
        resources: found.contents.unwrap_or_default(),
    }))
}

fn write(export: &Export, args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let path = args
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("recorded.scenario.yaml"));
    let files = files(&args.definition, &path)?;
    let made = match record::record(export, &files, &path) {
        Ok(made) => made,
        Err(error) => return missing(error, terminal),
    };
    let text = format::format(made.text.as_bytes()).unwrap_or_else(|_| made.text.clone());
    if let Some(out) = &args.out {
        private::write(out, &text)?;
    }
    match (terminal.output, &args.out) {
        (Output::Json, _) => {
            let shown = serde_json::to_string_pretty(&Shown::new(&made, &text))?;
            terminal.result(&format!("{shown}\n"))?;
        }
        (_, None) => terminal.result(&text)?,
        (_, Some(out)) => {
            terminal.message(&format!("{} is written", out.display()));
            say_what_was_cut(export, terminal);
        }
    }
    for note in &made.notes {
        terminal.message(&record::printable(&format!("note: {note}")));
    }
    if made.differences.is_empty() {
        return Ok(0);
    }
    let differences = details(&made.differences);
    terminal.message(&format!(
        "error: the scenario does not pass: its run differs from what was recorded\n{}",
        record::printable(&differences)
    ));
    Ok(1)
}

fn say_what_was_cut(export: &Export, terminal: &Terminal) {
    terminal.message("note: only you can read this file");
    for line in record::cut_out(&export.cut()).lines() {
        terminal.message(&record::printable(&format!("note: {line}")));
    }
}

/// Reports the facts that are missing in a history, with exit code 1.
///
/// # Errors
/// Any other error.
pub fn missing(error: RecordError, terminal: &Terminal) -> anyhow::Result<u8> {
    let RecordError::Missing(reasons) = error else {
        return Err(anyhow::anyhow!(record::printable(&error.to_string())));
    };
    for reason in &reasons {
        terminal.message(&record::printable(&format!("error: {reason}")));
    }
    Ok(1)
}

/// The result, in JSON.
#[derive(Serialize)]
struct Shown<'m> {
    scenario: &'m str,
    passes: bool,
    differences: Option<String>,
    notes: &'m [String],
}

impl<'m> Shown<'m> {
    fn new(made: &'m Made, text: &'m str) -> Shown<'m> {
        Shown {
            scenario: text,
            passes: made.differences.is_empty(),
            differences: (!made.differences.is_empty()).then(|| details(&made.differences)),
            notes: &made.notes,
        }
    }
}

/// Definitions by the workflow that they define, as paths from the scenario's folder.
fn files(definitions: &[PathBuf], scenario: &Path) -> anyhow::Result<Files> {
    let mut files = Files::new();
    for file in definitions {
        let read = Read::file_with(file, &[])?;
        let Some(workflow) = &read.reading.workflow else {
            bail!(
                "{} is not a valid definition: see 'swirl validate'",
                file.display()
            );
        };
        let from = scenario.parent().unwrap_or(Path::new(""));
        let path = relative(file, from)?;
        files.insert(workflow.id.clone(), path);
    }
    Ok(files)
}

/// A path as it is written in a file of another folder.
fn relative(file: &Path, folder: &Path) -> anyhow::Result<String> {
    let whole = |path: &Path| {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        path.canonicalize()
            .with_context(|| format!("{} cannot be read", path.display()))
    };
    let (file, folder) = (whole(file)?, whole(folder)?);
    let common = file.components().zip(folder.components());
    let common = common.take_while(|(left, right)| left == right).count();
    let up = folder.components().skip(common).map(|_| "..".to_owned());
    let down = file.components().skip(common);
    let down = down.map(|part| part.as_os_str().to_string_lossy().into_owned());
    Ok(up.chain(down).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("tests/new")).unwrap();
        std::fs::write(root.join("w.sw.yaml"), "").unwrap();
        let to = |from: &str| relative(&root.join("w.sw.yaml"), &root.join(from)).unwrap();
        assert_eq!(to(""), "w.sw.yaml");
        assert_eq!(to("tests/new"), "../../w.sw.yaml");
    }
}
