//! `swirl migrate --to 1.0 --scenario FILE`: a scenario is migrated with its documents, and both are run.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::json;
use swirl_migrate::{Assume, Target, yaml};
use swirl_scenario::migrate::{MigrateError, MigratedScenario, migrate};
use swirl_scenario::report::details;
use swirl_scenario::run::VirtualRunner;
use swirl_scenario::{Observed, Runner, Scenario};

use super::{Args, To, refusal};
use crate::terminal::{Output, Terminal};

pub fn run(
    args: &Args,
    file: &Path,
    target: &Target,
    assume: Assume,
    terminal: &Terminal,
) -> anyhow::Result<u8> {
    if args.to != To::V1_0 {
        bail!("'--scenario' is for DSL 1.0: add '--to 1.0'");
    }
    let content =
        std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let mut migrated = match migrate(&content, file, target, assume) {
        Ok(migrated) => migrated,
        Err(MigrateError::Document {
            path, obstacles, ..
        }) => {
            let at = path.as_deref().unwrap_or(file);
            terminal.message(&refusal(at, args.to, None, &obstacles));
            return Ok(1);
        }
        Err(error) => {
            terminal.message(&format!("error: {}: {error}", file.display()));
            return Ok(1);
        }
    };
    let named = migrated.documents.iter().any(|document| {
        let path = document.path.as_ref();
        path.is_some_and(|path| is_same(path, &args.file))
    });
    if !named {
        let (scenario, file) = (file.display(), args.file.display());
        bail!("{scenario} doesn't have '{file}' among its workflows");
    }
    let old = Scenario::parse(&content, file)?;
    let Some(_) = passed(&old, "as it is", terminal) else {
        return Ok(1);
    };
    let new = migrated.scenario(file)?;
    let Some(observed) = passed(&new, "migrated", terminal) else {
        return Ok(1);
    };
    let differences = migrated.take_tasks(&observed);
    if !differences.is_empty() {
        terminal.message(&format!(
            "{}, migrated: {}",
            file.display(),
            differences.join("\n")
        ));
        return Ok(1);
    }
    save(args, file, &migrated)?;
    tell(&migrated, terminal)
}

/// Whether both name one file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Runs a scenario, and reports why it doesn't pass.
fn passed(scenario: &Scenario, what: &str, terminal: &Terminal) -> Option<Observed> {
    let file = scenario.path.display();
    match VirtualRunner.run(scenario) {
        Ok(observed) => {
            let differences = scenario.expect.check(&observed);
            if differences.is_empty() {
                return Some(observed);
            }
            terminal.message(&format!(
                "{file}, {what}, doesn't pass; nothing was written\n{}",
                details(&differences)
            ));
        }
        Err(error) => terminal.message(&format!(
            "{file}, {what}, cannot run; nothing was written: {error}"
        )),
    }
    None
}

/// Writes the scenario and its documents into the folder, under their names.
fn save(args: &Args, file: &Path, migrated: &MigratedScenario) -> anyhow::Result<()> {
    let folder = args.out.clone().unwrap_or_default();
    if folder.is_file() {
        bail!("'{}' is not a folder", folder.display());
    }
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for document in &migrated.documents {
        let (Some(path), Some(done)) = (&document.path, &document.migrated) else {
            continue;
        };
        files.push((
            folder.join(path.file_name().unwrap_or_default()),
            done.text.clone(),
        ));
    }
    let mut text = format!("# Migrated to DSL 1.0 from {}.\n", file.display());
    for note in &migrated.notes {
        text.push_str(&format!("# - {note}\n"));
    }
    text.push_str(&yaml(&migrated.content));
    files.push((folder.join(file.file_name().unwrap_or_default()), text));
    if let Some((taken, _)) = files.iter().find(|(file, _)| file.exists()) {
        bail!("{} already exists; use another folder", taken.display());
    }
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("{} cannot be created", folder.display()))?;
    for (file, text) in files {
        std::fs::write(&file, text)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    Ok(())
}

fn tell(migrated: &MigratedScenario, terminal: &Terminal) -> anyhow::Result<u8> {
    let done = migrated.documents.iter();
    let done = done.filter_map(|document| document.migrated.as_ref());
    if terminal.output == Output::Json {
        let documents = migrated.documents.iter().map(|document| {
            let done = document.migrated.as_ref();
            json!({
                "id": document.ids.1,
                "notes": done.map(|done| &done.notes),
            })
        });
        let report = json!({
            "migrated": true, "proved": true,
            "documents": documents.collect::<Vec<_>>(), "notes": migrated.notes,
        });
        terminal.result(&format!("{report:#}\n"))?;
        return Ok(0);
    }
    let count = done.count();
    terminal.message(&format!(
        "the scenario passes with {count} documents as they are and migrated"
    ));
    Ok(0)
}
