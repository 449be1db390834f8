//! `swirl run`

use std::path::PathBuf;

use crate::terminal::Terminal;

/// Runs a workflow and prints its output.
///
/// The output is JSON on stdout, and nothing else is. Exit code 1 when the workflow ends otherwise
/// than completed; its error is told on stderr then.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl run hello.sw.yaml --input '{\"name\": \"Ada\"}'
  swirl run order.sw.yaml --input @order.json
  swirl run parent.sw.yaml --with child.sw.yaml
  swirl run order.sw.yaml --store ./data        # goes on after a crash")]
pub struct Args {
    /// The definition, YAML or JSON.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The input, a JSON object: as it is, '@FILE', or '-' for stdin.
    #[arg(long, short, default_value = "{}", value_name = "JSON")]
    pub input: String,

    /// Another definition that the workflow runs as its sub-workflow; may be given again.
    #[arg(long, value_name = "FILE")]
    pub with: Vec<PathBuf>,

    /// The folder to keep the instance in, so that it outlives this process.
    #[arg(long, value_name = "FOLDER")]
    pub store: Option<PathBuf>,

    /// A secret, as NAME=VALUE or NAME=@FILE; may be given again.
    #[arg(long, value_name = "NAME=VALUE")]
    pub secret: Vec<String>,

    /// A host that functions may be fetched from, beside this machine; may be given again.
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<String>,
}

pub fn run(args: &Args, _terminal: &Terminal) -> anyhow::Result<u8> {
    anyhow::bail!(
        "this build of swirl cannot run {}: it has no engine",
        args.file.display()
    )
}
