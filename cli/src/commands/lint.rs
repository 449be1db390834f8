//! `swirl lint`

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use swirl_authoring::lint::{self, Finding, RULES, Rule};
use swirl_deployment::{Loader, RESOURCE_BYTES_MAX};
use swirl_functions::types;
use swirl_spec::resource::{FileResources, Resources};

use super::validate::{self, Read};
use crate::functions::GivenArgs;
use crate::terminal::{Output, Terminal};

/// Finds parts of a definition that are valid, but probably a mistake.
///
/// Examples are waits that may never end, retries without a delay, and functions that nothing calls. 'swirl explain
/// RULE' explains a rule. A rule can be switched off with --allow, or for a part of a definition with 'metadata:
/// {lintAllow: RULE}' in that part.
///
/// Exit code 0 if nothing was found, 1 if something was found or a definition isn't valid, 2 if a file could not be
/// read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl lint order.sw.yaml
  swirl lint workflows/                        # the definitions in it, recursively
  swirl lint --allow repeated-call workflows/
  swirl lint --rules                           # all rules, with a line about each")]
pub struct Args {
    /// Files, or folders that are searched.
    #[arg(required_unless_present = "rules", value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// A rule that is switched off; may be repeated.
    #[arg(long, value_name = "RULE", value_parser = lint::known)]
    allow: Vec<&'static Rule>,

    /// Lists the rules.
    #[arg(long, conflicts_with = "paths")]
    rules: bool,

    /// Don't fetch documents of functions. Local files are still read.
    #[arg(long)]
    offline: bool,

    /// A host from which documents may be fetched, in addition to this machine; may be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    #[command(flatten)]
    given: GivenArgs,
}

/// The findings of a file.
struct Linted {
    read: Read,
    /// `None` if the definition isn't valid.
    findings: Option<Vec<Finding>>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    if args.rules {
        terminal.result(&rules(terminal.output))?;
        return Ok(0);
    }
    let mut unreadable = false;
    let mut trouble = |message: String| {
        unreadable = true;
        terminal.message(&format!("error: {message}"));
    };
    let files = validate::definitions(&args.paths, &mut trouble);
    let given = args.given.resources()?;
    let loader = validate::loader_unless(args.offline, &args.allow_host)?;
    let mut all = Vec::new();
    for file in files {
        match Read::file_as(&file, &given, true) {
            Ok(read) => {
                let mut findings = linted(&read, loader.as_ref(), &given);
                for found in findings.iter_mut() {
                    found.retain(|finding| {
                        args.allow.iter().all(|rule| rule.name != finding.rule.name)
                    });
                }
                all.push(Linted { read, findings });
            }
            Err(error) => trouble(format!("{error:#}")),
        }
    }
    match terminal.output {
        Output::Json => terminal.result(&format!("{:#}\n", as_json(&all)))?,
        _ => terminal.result(&human(&all))?,
    }
    let is_clean = |one: &Linted| one.findings.as_ref().is_some_and(Vec::is_empty);
    Ok(match (unreadable, all.iter().all(is_clean)) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    })
}

fn linted(
    read: &Read,
    loader: Option<&Loader>,
    given: &[(String, String)],
) -> Option<Vec<Finding>> {
    let workflow = read.reading.workflow.as_ref()?;
    let root = read.reading.root.as_ref()?;
    let folder = read.file.parent().unwrap_or(Path::new(""));
    let files = FileResources::new(folder, RESOURCE_BYTES_MAX).anywhere();
    let documents = match loader {
        Some(loader) => loader.documents(workflow, files, given).0,
        None => {
            let uris = workflow.functions.iter().filter_map(types::document);
            let fetch = |uri: &str| {
                let bytes = files.fetch(uri, None).ok()?;
                Some((uri.to_owned(), String::from_utf8(bytes).ok()?))
            };
            uris.filter_map(fetch).collect()
        }
    };
    Some(lint::lint(workflow, root, &documents))
}

fn human(all: &[Linted]) -> String {
    let mut text = String::new();
    let mut count = 0;
    let mut invalid = 0;
    for Linted { read, findings } in all {
        let name = read.file.display();
        let Some(findings) = findings else {
            invalid += 1;
            text.push_str(&format!("{name}: not valid: see 'swirl validate {name}'\n"));
            continue;
        };
        count += findings.len();
        for finding in findings {
            let place = &finding.place;
            text.push_str(&format!(
                "{name}:{}:{}: warning[{}]: {}\n  = hint: {}\n",
                place.line, place.column, finding.rule.name, finding.message, finding.hint
            ));
        }
    }
    let plural = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let of = plural(all.len(), "definition");
    text.push_str(&format!("{} in {of}", plural(count, "finding")));
    if invalid > 0 {
        text.push_str(&format!(", {invalid} not valid"));
    }
    text.push('\n');
    text
}

fn as_json(all: &[Linted]) -> Value {
    let files = all.iter().map(|Linted { read, findings }| {
        let rows = findings.iter().flatten().map(|finding| {
            json!({
                "rule": finding.rule.name,
                "message": finding.message,
                "hint": finding.hint,
                "path": finding.place.pointer,
                "line": finding.place.line,
                "column": finding.place.column,
            })
        });
        json!({
            "file": read.file.display().to_string(),
            "valid": findings.is_some(),
            "findings": rows.collect::<Vec<_>>(),
        })
    });
    json!({"files": files.collect::<Vec<_>>()})
}

fn rules(output: Output) -> String {
    if output == Output::Json {
        let rows = RULES
            .iter()
            .map(|rule| json!({"rule": rule.name, "summary": rule.summary}));
        return format!("{:#}\n", Value::from(rows.collect::<Vec<_>>()));
    }
    let width = RULES.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    let rows = RULES
        .iter()
        .map(|rule| format!("{:width$}  {}\n", rule.name, rule.summary));
    rows.collect()
}
