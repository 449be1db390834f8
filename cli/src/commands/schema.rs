//! `swirl schema`

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::json;
use swirl_authoring::schema::schema;
use swirl_documents::suggest::did_you_mean;
use swirl_spec::edition::Edition;

use crate::terminal::{Output, Terminal};
use crate::text::table;

/// Prints the JSON Schema of an edition, for editors.
///
/// It accepts what the reader accepts, because it is generated from the reader. Mistakes that depend on other parts of
/// a document are found only by 'swirl validate' and 'swirl lsp': undefined or duplicate names, more than one starting
/// state, unreachable states, wrong expressions, broken rules of compensation. The schema is written in draft 7.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl schema > serverless-workflow-0.8.json
  swirl schema --edition 0.5 -o .vscode/workflow-0.5.json
  swirl schema --list")]
pub struct Args {
    /// The edition; '--list' shows all.
    #[arg(
        long,
        default_value = "0.8",
        value_name = "EDITION",
        conflicts_with = "list"
    )]
    pub edition: String,

    /// The file to write, instead of stdout.
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with = "list")]
    pub out: Option<PathBuf>,

    /// Lists the editions that have a schema.
    #[arg(long)]
    pub list: bool,
}

/// The editions by their names on the command line.
const NAMES: [(&str, Edition); 10] = [
    ("0.1-early", Edition::V0_1Early),
    ("0.1-draft", Edition::V0_1),
    ("0.1", Edition::V0_1Release),
    ("tasks", Edition::Tasks),
    ("0.5", Edition::V0_5),
    ("0.6", Edition::V0_6),
    ("0.7", Edition::V0_7),
    ("0.8", Edition::V0_8),
    ("0.9", Edition::V0_9),
    ("1.0", Edition::V1_0),
];

/// A description of an edition whose name alone isn't clear.
fn about(edition: Edition) -> &'static str {
    match edition {
        Edition::V0_1Early => "the early draft of 0.1, October 2019",
        Edition::V0_1 => "the draft of 0.1, November 2019",
        Edition::V0_1Release => "the release of 0.1, April 2020",
        Edition::Tasks => "the draft with tasks, May 2020",
        Edition::V0_5 => "November 2020",
        Edition::V1_0 => "DSL 1.0",
        Edition::V0_6 | Edition::V0_7 | Edition::V0_8 | Edition::V0_9 => "the release",
    }
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    if args.list {
        terminal.result(&list(terminal.output))?;
        return Ok(0);
    }
    let named = NAMES.iter().find(|(name, _)| *name == args.edition);
    let Some((_, edition)) = named else {
        let names = || NAMES.iter().map(|(name, _)| *name);
        let all: Vec<&str> = names().collect();
        match did_you_mean(&args.edition, names()) {
            Some(best) => bail!(
                "there is no edition '{}': did you mean '{best}'?",
                args.edition
            ),
            None => bail!(
                "there is no edition '{}': use {}",
                args.edition,
                all.join(", ")
            ),
        }
    };
    let text = format!("{:#}\n", schema(*edition));
    match &args.out {
        None => terminal.result(&text)?,
        Some(file) => {
            std::fs::write(file, text)
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
    }
    Ok(0)
}

fn list(output: Output) -> String {
    if output == Output::Json {
        let all = NAMES
            .iter()
            .map(|(name, edition)| json!({"edition": name, "about": about(*edition)}));
        return format!("{:#}\n", json!({"editions": all.collect::<Vec<_>>()}));
    }
    let mut rows = vec![["EDITION".to_owned(), "ABOUT".to_owned()]];
    rows.extend(
        NAMES
            .iter()
            .map(|(name, edition)| [(*name).to_owned(), about(*edition).to_owned()]),
    );
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edition_has_a_name() {
        for edition in Edition::ALL {
            assert_eq!(
                NAMES.iter().filter(|(_, known)| *known == edition).count(),
                1
            );
        }
    }
}
