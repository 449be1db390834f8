//! `swirl replay`

use std::path::{Path, PathBuf};

use anyhow::bail;
use serde_json::{Value, json};
use swirl_documents::render::{self, Colour};
use swirl_recording::record::Export;
use swirl_recording::replay::{Changed, Replayed, replay};

use super::record;
use super::validate::Read;
use crate::client::Server;
use crate::terminal::{Output, Terminal};

/// Shows where a recorded instance would take a different path with a changed definition.
///
/// The recorded definition and the changed one run in the same virtual time, with the calls, events and operator
/// actions of the recording. Their histories are compared, and the first difference and a different outcome are shown.
/// A call gets the answer that was recorded for it, even if its arguments have changed. A call that was never recorded
/// has no answer.
///
/// Exit code 0 if the run takes the same path; 1 if it takes a different one, the definition is refused or the history
/// is incomplete; 2 if a file could not be read or the server could not be reached.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl record 2f6c0d9b --export order-7.json
  swirl replay order-7.json --definition order.sw.yaml
  swirl replay recordings/*.json --definition order.sw.yaml --definition ship.sw.yaml
  swirl replay --id orders/order-7 --definition order.sw.yaml")]
pub struct Args {
    /// Exports, as 'swirl record ID --export FILE' writes them.
    #[arg(value_name = "EXPORT", required_unless_present = "id")]
    exports: Vec<PathBuf>,

    /// A changed definition that replaces the recorded one of the same workflow; may be repeated.
    #[arg(long, required = true, value_name = "FILE")]
    definition: Vec<PathBuf>,

    /// An instance on a server instead of an export: its id or its beginning, or WORKFLOW/KEY.
    #[arg(long, value_name = "ID", conflicts_with = "exports")]
    id: Option<String>,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    if let Some(name) = &args.id {
        return args.server.run(async |client| {
            let id = client.instance(name).await?;
            match record::export(&client, &id).await? {
                Ok(export) => all(&[export], args, terminal),
                Err(problem) => record::refused(problem, terminal),
            }
        });
    }
    let exports = args.exports.iter().map(|file| record::read_export(file));
    let exports: Vec<Export> = exports.collect::<anyhow::Result<_>>()?;
    all(&exports, args, terminal)
}

fn all(exports: &[Export], args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut replays: Vec<Replayed> = Vec::new();
    for export in exports {
        let mut changed = Vec::new();
        for file in &args.definition {
            match definition(file, export)? {
                Ok(read) => changed.push(read),
                Err(findings) => {
                    terminal.message(&findings);
                    return Ok(1);
                }
            }
        }
        let replayed = match replay(export, &changed) {
            Ok(replayed) => replayed,
            Err(error) => return record::missing(error, terminal),
        };
        if terminal.output == Output::Text {
            terminal.result(&replayed.text())?;
            for note in &replayed.notes {
                terminal.message(&format!("note: {note}"));
            }
        }
        replays.push(replayed);
    }
    let same = replays.iter().filter(|one| one.is_same()).count();
    let different = replays.len() - same;
    if terminal.output == Output::Json {
        let shown: Vec<Value> = replays.iter().map(Replayed::json).collect();
        let whole = json!({"same": same, "different": different, "replays": shown});
        terminal.result(&format!("{whole:#}\n"))?;
    } else if replays.len() > 1 {
        terminal.result(&format!("{same} same, {different} different\n"))?;
    }
    Ok(u8::from(different > 0))
}

/// Reads a definition, with the external documents that the recorded definitions were deployed with. Returns its
/// findings if it isn't valid.
fn definition(file: &Path, export: &Export) -> anyhow::Result<Result<Changed, String>> {
    let resources = export.definitions.iter().flat_map(|one| &one.resources);
    let given = resources.filter(|(uri, _)| uri.contains("://"));
    let given: Vec<(String, String)> = given
        .map(|(uri, text)| (uri.clone(), text.clone()))
        .collect();
    let Read { text, reading, .. } = Read::file_with(file, &given)?;
    let path = file.display().to_string();
    let Some(workflow) = reading.workflow else {
        let findings = reading.diagnostics.into_vec();
        return Ok(Err(render::human(&path, &text, &findings, Colour::No)));
    };
    let recorded: Vec<&str> = export
        .definitions
        .iter()
        .map(|one| one.id.as_str())
        .collect();
    if !recorded.contains(&workflow.id.as_str()) {
        bail!(
            "{path} defines '{}', and the recording is of {}",
            workflow.id,
            recorded.join(", ")
        );
    }
    Ok(Ok(Changed {
        path,
        text,
        workflow,
    }))
}
